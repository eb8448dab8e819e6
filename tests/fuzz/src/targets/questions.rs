//! What a page asks `laggard serve`, and the index that lies beside a trace.

use std::cell::OnceCell;
use std::path::PathBuf;
use std::sync::Arc;

use laggard_comm::Serial;
use laggard_engine::AnalyzeOptions;
use laggard_engine::events::Events;
use laggard_overlay::{Reply, Stop, Work};
use laggard_report::Report;
use laggard_serve::index::{self, Index};
use laggard_serve::{Question, Share, answer};

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
        let share = Share::new(&Serial, events, Some(report.clone()), &directory);
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

fn ask(share: &Share, question: &Question) {
    let packed = question.packed().expect("a question that was JSON");
    let part = share.part(&packed, &Stop::default());
    let answer = part.and_then(|part| {
        let reply = Reply {
            part: Some(part),
            missing: Vec::new(),
        };
        answer(share, question, reply)
    });
    if let Err(error) = answer {
        assert!(!format!("{error:#}").contains('\n'), "{error:#}");
    }
}
