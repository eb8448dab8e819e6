//! A file is read without locks while it is written: what is there is complete, and stays. In the end its
//! writer cuts it to its length, whoever reads it.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use laggard_comm::signals;
use laggard_trace::{
    ClockPoint, DamageKind, Decoder, Definition, End, FileHeader, FileSpace, Location,
    LocationWriter, Signature, Subject,
};

/// So many calls share a signature.
const ALIKE: u64 = 40;

fn signature(id: u32) -> Definition {
    Definition::Signature(Signature {
        id,
        operation: 7,
        ..Signature::default()
    })
}

fn write(path: &Path, calls: u64) {
    let space = FileSpace::create(path, 1 << 18).expect("a file");
    let header = FileHeader {
        ranks: 1,
        ..FileHeader::new()
    };
    let mut writer = LocationWriter::new(space, header, None).expect("a window");
    writer.keep_open_call();
    for n in 0..calls {
        let id = (n / ALIKE) as u32 + 1;
        if n % ALIKE == 0 {
            writer.define(&[signature(id)]);
        }
        if n % (100 * ALIKE) == 7 {
            writer.clock(&[ClockPoint::default(); 20]);
        }
        writer.open_call().enter(10 * n + 1, 7, 0, &Subject::NONE);
        writer.push(10 * n + 1, 10 * n + 6, id);
        writer.open_call().leave();
    }
    writer.finish(End {
        calls,
        recorded: calls,
        ..End::default()
    });
}

/// The calls in a location, which must be the first ones.
#[track_caller]
fn calls(location: &Location) -> u64 {
    let mut n = 0;
    for chunk in &location.chunks {
        assert!(location.verify(chunk));
        let mut decoder = Decoder::new(location.records(chunk), chunk.base);
        while let Some(event) = decoder.next() {
            assert_eq!((event.enter, event.leave), (10 * n + 1, 10 * n + 6));
            assert_eq!(u64::from(event.signature), n / ALIKE + 1);
            let known = location.definitions.signatures();
            assert!((event.signature as usize) < known.len(), "{n}");
            n += 1;
        }
    }
    n
}

#[test]
fn what_is_read_meanwhile_is_complete_and_stays() {
    const CALLS: u64 = 300_000;
    signals::outlive_files();
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("rank000000.thread000.lgt");
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            write(&path, CALLS);
            is_over.store(true, Ordering::Release);
        });
        let mut read = Vec::new();
        let mut before = 0;
        loop {
            let was_over = is_over.load(Ordering::Acquire);
            // Its header may not be there yet.
            if let Ok(location) = Location::open(&path) {
                let open = |damage: &laggard_trace::Damage| damage.what == DamageKind::OpenBlock;
                assert!(location.damage.iter().all(open), "{:?}", location.damage);
                let found = calls(&location);
                assert!(found >= before, "{found} {before}");
                before = found;
                if let Some(call) = location.open_call_now() {
                    assert_eq!(call.enter % 10, 1);
                }
                read.push((found, location));
            }
            if was_over {
                break;
            }
        }
        assert_eq!(before, CALLS);
        let size = path.metadata().expect("a file").len();
        for (found, location) in &read {
            assert!(location.used() <= size, "{} {size}", location.used());
            assert_eq!(calls(location), *found);
        }
    });
}
