//! Time between looks that counts as looking, by the rules of a report: where looks find something in the end, all
//! of it; where they never do, that of enough looks in a row.

use laggard_engine::events::{NONE, Operation};
use rustc_hash::FxHashMap;

use crate::index::{KeptWait, LocationIndex, Run, kind_of, scaled, within};
use crate::share::Share;

/// Time between looks at one place.
#[derive(Clone, Copy, Debug)]
pub struct Between {
    /// Number of their call, and of its call path.
    pub site: (u16, u32),
    /// The kind of time, see [`kind`](crate::index::kind).
    pub kind: usize,
    /// From when to when it is, ns.
    pub stretch: (i64, i64),
    /// How much of that counts, ns.
    pub time: i64,
}

/// Finds the time between looks of a location that counts, call by call.
pub struct Reader<'i> {
    index: &'i LocationIndex,
    /// By place.
    runs: FxHashMap<u32, Run<[Between; 2]>>,
    /// Where the last look was.
    last: (u16, u32),
}

impl<'i> Reader<'i> {
    /// Before the first call that is read.
    pub fn new(index: &'i LocationIndex) -> Reader<'i> {
        Reader {
            index,
            runs: FxHashMap::default(),
            last: (0, 0),
        }
    }

    /// Takes the next call. Returns whether more must be read to know what counts of the looks so far.
    pub fn take(&mut self, call: &Operation, mut give: impl FnMut(Between)) -> bool {
        let (Some(look), Some(at)) = (call.look, call.look_at) else {
            return false;
        };
        if at.place == NONE {
            return false;
        }
        // Calls that do nothing belong to the look before.
        if look.calls > 0 {
            self.last = (call.signature.operation, call.call_path);
        }
        let site = self.last;
        // Before it, and in a record of several.
        let parts = |before: i64| {
            let of = |stretch, time| Between {
                site,
                kind: kind_of(site.0),
                stretch,
                time,
            };
            let inside = look.between - look.before;
            [
                of((look.begin, call.enter), before),
                of((call.enter, call.leave), inside),
            ]
        };
        let mut give = |parts: [Between; 2]| {
            let parts = parts.into_iter();
            parts.filter(|part| part.time > 0).for_each(&mut give);
        };
        if call.enter <= self.index.found(at.place) {
            if look.is_vain || at.ends {
                give(parts(look.before));
            }
        } else if look.is_vain {
            let run = self.runs.entry(at.place).or_default();
            run.take((&look, at.row, call.leave - call.enter), parts, give);
        }
        // Other places may be looked at in the same row.
        self.runs.values().any(|run| run.is_open(at.row))
    }
}

/// Waits in looks: how much of each lies in which part of a stretch. All time in the looks of a wait is waiting.
pub struct Waited<'i> {
    /// With numbers of parts and ns, ascending.
    pub waits: Vec<(&'i KeptWait, Vec<(usize, i64)>)>,
    /// Those of each call and call path, ascending.
    of: FxHashMap<(u16, u32), Vec<usize>>,
}

impl<'i> Waited<'i> {
    /// Those of an own location that have something in a stretch.
    pub fn new(share: &'i Share, at: usize, stretch: (i64, i64)) -> Waited<'i> {
        let waits = share.index_of(at).waits(stretch);
        let waits = waits.filter(|wait| wait.is_spread());
        let waits: Vec<_> = waits.map(|wait| (wait, Vec::new())).collect();
        let mut of: FxHashMap<(u16, u32), Vec<usize>> = FxHashMap::default();
        for (number, (wait, _)) in waits.iter().enumerate() {
            let (call, path, _) = share.site_of(at, wait.signature);
            of.entry((call, path)).or_default().push(number);
        }
        Waited { waits, of }
    }

    /// Takes looks at a site, or the time between them, of which so much counts, ns.
    pub fn take(&mut self, site: (u16, u32), (begin, end): (i64, i64), time: i64, borders: &[i64]) {
        let Some(numbers) = self.of.get(&site).filter(|_| begin < end) else {
            return;
        };
        let first = numbers.partition_point(|&number| self.waits[number].0.until <= begin);
        for &number in &numbers[first..] {
            let (wait, parts) = &mut self.waits[number];
            if wait.since >= end {
                return;
            }
            let both = (begin.max(wait.since), end.min(wait.until));
            within(borders, both, |part, of| {
                let more = scaled(time, of, end - begin);
                match parts.last_mut().filter(|last| last.0 == part) {
                    Some(last) => last.1 += more,
                    None => parts.push((part, more)),
                }
            });
        }
    }

    /// All looks were taken: a wait that is in the stretch as a whole has all that it lost, another one at most that.
    pub fn settle(&mut self, borders: &[i64]) {
        let stretch = (borders[0], borders[borders.len() - 1]);
        for (wait, parts) in &mut self.waits {
            let sum: i64 = parts.iter().map(|(_, time)| time).sum();
            let is_whole = stretch.0 <= wait.since && wait.until <= stretch.1;
            if sum == 0 && is_whole {
                // Nobody knows its looks.
                wait.spread(borders, |part, time| parts.push((part, time)));
            } else if is_whole || sum > wait.lost {
                let (mut passed, mut told) = (0, 0);
                for (_, time) in parts {
                    passed += *time;
                    let up_to = scaled(wait.lost, passed, sum);
                    *time = up_to - std::mem::replace(&mut told, up_to);
                }
            }
        }
    }
}
