//! Replays every input of the corpus and fixed changes of it, on any compiler, in seconds. Inputs
//! found by guided search (`run.sh`) are run unchanged.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};

use laggard_fuzz::random::Random;
use laggard_fuzz::target;

/// Targets share files, and the analysis its threads.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    let lock = ONE_AT_A_TIME.lock();
    let lock = lock.unwrap_or_else(|poisoned| poisoned.into_inner());
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("replay");
    // SAFETY: under the lock, before anything of this process reads it.
    unsafe { std::env::set_var("LAGGARD_FUZZ_DIR", directory) };
    // One thread pool for all tests: an analysis would take its test's thread, which ends.
    let _ = rayon::ThreadPoolBuilder::new()
        .num_threads(1)
        .build_global();
    lock
}

/// Inputs of a target by name: of `corpus`, made by hand or real, or of `found`, which is empty
/// before a search.
fn inputs(kind: &str, name: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join(kind).join(name);
    if kind == "found" && !directory.exists() {
        return Vec::new();
    }
    let files = fs::read_dir(&directory).expect("a corpus");
    let mut paths: Vec<PathBuf> = files.map(|file| file.expect("an entry").path()).collect();
    paths.sort();
    assert!(!paths.is_empty(), "{name}: no inputs");
    let read = |path: PathBuf| {
        let bytes = fs::read(&path).expect("an input");
        (path, bytes)
    };
    paths.into_iter().map(read).collect()
}

/// Runs the corpus, and `changes` changed inputs. An input that breaks the target is in the file
/// `last-NAME` below cargo's directory for tests.
fn replay(name: &str, changes: u64) {
    let _lock = alone();
    let target = target(name).expect("a target");
    let last = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("last-{name}"));
    let run = |input: &[u8]| {
        fs::write(&last, input).expect("the input kept");
        (target.run)(input);
    };
    let inputs = inputs("corpus", name);
    for (path, input) in inputs.iter().chain(&self::inputs("found", name)) {
        eprintln!("{}", path.display());
        assert!(
            input.len() <= target.limit,
            "{} is too long",
            path.display()
        );
        run(input);
    }
    let mut input = Vec::new();
    for n in 0..changes {
        let mut random = Random::new(n);
        // Some changes add up: after the first one another may become possible.
        if n % 4 == 0 {
            input = inputs[random.below(inputs.len())].1.clone();
        }
        let mut plain = Random::new(!n);
        let mut scramble = |bytes: &mut Vec<u8>, limit| plain.scramble(bytes, limit);
        input = target.mutate(&input, target.limit, &mut random, &mut scramble);
        run(&input);
    }
    let _ = fs::remove_file(&last);
}

#[test]
fn location() {
    replay("location", 6000);
}

#[test]
fn node() {
    replay("node", 3000);
}

#[test]
fn analysis() {
    replay("analysis", 600);
}

#[test]
fn exports() {
    replay("exports", 300);
}

#[test]
fn anchor() {
    replay("anchor", 3000);
}

#[test]
fn archive() {
    replay("archive", 4000);
}

#[test]
fn baseline() {
    replay("baseline", 5000);
}

#[test]
fn report() {
    replay("report", 3000);
}

#[test]
fn rules() {
    replay("rules", 3000);
}

#[test]
fn questions() {
    replay("questions", 10_000);
}

#[test]
fn parts() {
    replay("parts", 10_000);
}

#[test]
fn packets() {
    replay("packets", 5000);
}

#[test]
fn connections() {
    replay("connections", 5000);
}

#[test]
fn symbols() {
    replay("symbols", 2000);
}

/// Mutations of a trace are useful: many are still traces, and different ones.
#[test]
fn changes_get_past_the_checksums() {
    let target = target("location").expect("a target");
    let inputs = inputs("corpus", "location");
    let (mut opened, mut undamaged, mut other) = (0, 0, 0);
    for n in 0..1000 {
        let mut random = Random::new(n);
        let input = &inputs[random.below(inputs.len())].1;
        let mut plain = Random::new(!n);
        let mut scramble = |bytes: &mut Vec<u8>, limit| plain.scramble(bytes, limit);
        let changed = target.mutate(input, target.limit, &mut random, &mut scramble);
        other += u32::from(changed != *input);
        if let Ok(location) = laggard_trace::Location::from_bytes("changed".as_ref(), &changed) {
            opened += 1;
            let is_whole = location.chunks.iter().all(|chunk| location.verify(chunk));
            let spoiled =
                |damage: &laggard_trace::Damage| damage.what == laggard_trace::DamageKind::Checksum;
            undamaged += u32::from(is_whole && !location.damage.iter().any(spoiled));
        }
    }
    assert!(other > 900, "{other} of 1000 are changed");
    assert!(opened > 700, "{opened} of 1000 can be opened");
    assert!(undamaged > 600, "{undamaged} of 1000 have good checksums");
}
