//! What a page asks `laggard serve`, the index that lies beside a trace, and what other agents answer.

use std::cell::OnceCell;
use std::path::PathBuf;
use std::sync::Arc;

use laggard_comm::Serial;
use laggard_engine::AnalyzeOptions;
use laggard_engine::events::Events;
use laggard_overlay::{Reply, Stop, Work};
use laggard_report::Report;
use laggard_serve::index::Index;
use laggard_serve::questions::{Question, answer, merged};
use laggard_serve::{Limits, Share, index};

use super::analysis::write;
use super::scratch;
use crate::shape::unpack;

/// Real traces that questions are about.
const TRACES: [&[u8]; 2] = [
    include_bytes!("../../corpus/analysis/neighbor"),
    include_bytes!("../../corpus/analysis/threads"),
];

/// Options, by bit: which of the traces, and whether the index of its first location follows.
const OTHER_TRACE: u8 = 1;
const INDEX: u8 = 2;

/// A trace that is served.
struct Served {
    directory: PathBuf,
    report: Arc<Report>,
    index: Index,
    share: Share,
}

thread_local! {
    static SERVED: [OnceCell<Served>; 2] = const { [OnceCell::new(), OnceCell::new()] };
}

impl Served {
    fn new(number: usize) -> Served {
        let directory = scratch().join(format!("served-{number}"));
        write(&directory, &unpack(&TRACES[number][1..]));
        let settings = AnalyzeOptions {
            threads: Some(1),
            debug_roots: Some(Vec::new()),
            ..AnalyzeOptions::default()
        };
        let analysis = laggard_engine::analyze(&directory, &settings).expect("a trace");
        let report = analysis.expect("the only agent has the report").report;
        let events = Events::open(&directory).expect("a trace");
        let index = index::build(&Serial, &events).expect("an index");
        let limits = Limits {
            whole: 1 << 30,
            replayed: 1 << 30,
        };
        let share = Share::new(&Serial, events, Some(report.clone()), (&directory, limits));
        Served {
            report: Arc::new(report),
            index,
            share: share.expect("a share"),
            directory,
        }
    }

    /// The same with another index of its first location, which no file needs to agree with.
    fn with_index(&self, bytes: &[u8]) -> Option<Share> {
        let mut index = self.index.clone();
        index.locations[0] = index::unpack(bytes)?;
        let events = Events::open(&self.directory).expect("a trace");
        Some(Share::growing(events, index, Some(self.report.clone())))
    }
}

/// Options, a question, and after the end of its line an index: each question has an answer, or an error of one
/// line.
pub fn questions(bytes: &[u8]) {
    let Some((options, rest)) = bytes.split_first() else {
        return;
    };
    let end = rest.iter().position(|&byte| byte == b'\n');
    let (text, index) = rest.split_at(end.unwrap_or(rest.len()));
    let Ok(question) = serde_json::from_slice::<Question>(text) else {
        return;
    };
    let number = usize::from(options & OTHER_TRACE);
    SERVED.with(|served| {
        let served = served[number].get_or_init(|| Served::new(number));
        match options & INDEX {
            0 => ask(&served.share, &question),
            _ => {
                if let Some(share) = served.with_index(index.get(1..).unwrap_or_default()) {
                    ask(&share, &question);
                }
            }
        }
    });
}

/// Of each kind one.
const KINDS: [&str; 20] = [
    r#"{"ask":"overview"}"#,
    r#"{"ask":"heat","metric":"waiting","width":20,"height":2}"#,
    r#"{"ask":"heat","metric":"late_sender","width":9,"height":1}"#,
    r#"{"ask":"alike","metric":"waiting","width":20,"height":2}"#,
    r#"{"ask":"course","metric":"waiting","width":20}"#,
    r#"{"ask":"line","width":40}"#,
    r#"{"ask":"line","first":0,"last":0,"width":9}"#,
    r#"{"ask":"path","width":20}"#,
    r#"{"ask":"messages"}"#,
    r#"{"ask":"selection"}"#,
    r#"{"ask":"selection","functions":"recv","until_s":0.1}"#,
    r#"{"ask":"call","location":0,"number":3,"at_s":0.01}"#,
    r#"{"ask":"changes"}"#,
    r#"{"ask":"meanwhile","location":1,"from_s":0.0,"until_s":0.5}"#,
    r#"{"ask":"tree","metric":"time","node":0}"#,
    r#"{"ask":"matrix","metric":"waiting"}"#,
    r#"{"ask":"matrix","metric":"messages","from_s":0.0,"until_s":0.5}"#,
    r#"{"ask":"matrix","metric":"bytes","hosts":true}"#,
    r#"{"ask":"topology","metric":"waiting"}"#,
    r#"{"ask":"what_if","changes":[["network","latency=0"]]}"#,
];
/// Instead of changes, the part of the other agent itself.
const PLAIN: u8 = 2;

/// Options, the number of a question, and changes of the own part, each a position of two bytes and a byte: the
/// part that another agent sends. The head has an answer, or an error of one line.
pub fn parts(bytes: &[u8]) {
    let [options, number, rest @ ..] = bytes else {
        return;
    };
    let text = KINDS[usize::from(*number) % KINDS.len()];
    let question: Question = serde_json::from_str(text).expect("a question");
    let packed = question.packed().expect("a question that was JSON");
    let number = usize::from(options & OTHER_TRACE);
    SERVED.with(|served| {
        let share = &served[number].get_or_init(|| Served::new(number)).share;
        let own = share.part(&packed, &Stop::default()).expect("a part");
        let mut other = own.clone();
        for change in rest.as_chunks::<3>().0 {
            let at = usize::from(u16::from_le_bytes([change[0], change[1]]));
            if let Some(byte) = other.get_mut(at % own.len().max(1)) {
                *byte ^= change[2];
            }
        }
        if options & PLAIN != 0 {
            other = rest.to_vec();
        }
        for (one, other) in [(&own, &other), (&other, &own)] {
            if let Ok(part) = merged(&packed, one, other) {
                told(share, &question, part);
            }
        }
    });
}

fn ask(share: &Share, question: &Question) {
    let packed = question.packed().expect("a question that was JSON");
    match share.part(&packed, &Stop::default()) {
        Ok(part) => told(share, question, part),
        Err(error) => is_line(&error),
    }
}

fn told(share: &Share, question: &Question, part: Vec<u8>) {
    let reply = Reply {
        part: Some(part),
        missing: Vec::new(),
    };
    if let Err(error) = answer(share, question, reply) {
        is_line(&error);
    }
}

fn is_line(error: &anyhow::Error) {
    assert!(!format!("{error:#}").contains('\n'), "{error:#}");
}
