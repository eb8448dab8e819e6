//! The critical path, followed through the waits of a trace as an analysis follows it: from the
//! location that ended last back, and at a wait on to the late party that came last, at that moment
//! (Böhme, de Supinski, Geimer, Schulz, Wolf: Scalable critical-path based performance analysis,
//! IPDPS 2012).
//!
//! *Constraints.* The waits of a long run are in a file without a name, by slab of time.

use anyhow::{Result, bail};
use laggard_engine::events::{Course, Events, Joined, NONE, Party, Piece, Spill, Wait};
use rustc_hash::FxHashMap;

/// Waits that are kept in memory.
const KEPT: usize = 1 << 18;

/// The critical path of a run, from its begin to its end.
///
/// # Errors
/// Temporary files cannot be written or read.
pub fn critical_path(events: &Events) -> Result<Vec<Stretch>> {
    let mut waits = OnlyWaits::default();
    events.join(&mut waits)?;
    waits.0.path(events)
}

/// Takes nothing but waits.
#[derive(Default)]
struct OnlyWaits(Waits);

impl Joined for OnlyWaits {
    fn begin(&mut self, borders: &[i64]) {
        self.0.begin(borders);
    }

    fn wants_messages(&self) -> bool {
        false
    }

    fn wait(&mut self, _: &Wait) -> Result<()> {
        Ok(())
    }

    fn wants_parties(&self) -> bool {
        true
    }

    fn party(&mut self, wait: &Wait, party: &Party) -> Result<()> {
        self.0.add(wait, party);
        Ok(())
    }
}

/// Time of the path on one location. ns
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// Position of the location.
    pub location: u32,
    /// When it began to be there.
    pub from: i64,
    /// When it went on elsewhere, or the run ended.
    pub until: i64,
}

/// A wait for a late party. All names are positions of locations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Row {
    location: u32,
    late: u32,
    /// Enter of the waiting call. Of looks in vain: when the party came. ns
    enter: i64,
    since: i64,
    time: i64,
}

impl Row {
    const BYTES: usize = 32;

    fn pack(&self, bytes: &mut Vec<u8>) {
        bytes.extend(self.location.to_le_bytes());
        bytes.extend(self.late.to_le_bytes());
        for time in [self.enter, self.since, self.time] {
            bytes.extend(time.to_le_bytes());
        }
    }

    fn unpack(bytes: &[u8; Row::BYTES]) -> Row {
        let (words, _) = bytes.as_chunks::<8>();
        let number = |at: usize| i64::from_le_bytes(words[at]);
        let names = number(0) as u64;
        Row {
            location: names as u32,
            late: (names >> 32) as u32,
            enter: number(1),
            since: number(2),
            time: number(3),
        }
    }
}

/// The waits of a run, by the slab in which their late party came.
#[derive(Default)]
pub struct Waits {
    /// The ends of all slabs but the last, ns.
    borders: Vec<i64>,
    pieces: Vec<Vec<Piece>>,
    recent: Vec<Row>,
    spill: Spill,
}

impl Waits {
    /// `borders` are the ends of all slabs but the last, ns.
    pub fn begin(&mut self, borders: &[i64]) {
        self.borders = borders.to_vec();
        self.pieces = vec![Vec::new(); borders.len() + 1];
    }

    /// Adds a late party of a wait.
    pub fn add(&mut self, wait: &Wait, party: &Party) {
        self.recent.push(Row {
            location: wait.location,
            late: party.location,
            enter: party.enter,
            since: party.since,
            time: party.time,
        });
        if self.recent.len() >= KEPT && !self.borders.is_empty() {
            self.put_away();
        }
    }

    fn put_away(&mut self) {
        let slab = |row: &Row| slab_of(&self.borders, row.time);
        let mut rows = std::mem::take(&mut self.recent);
        rows.sort_by_key(slab);
        let mut bytes = Vec::new();
        for rows in rows.chunk_by(|a, b| slab(a) == slab(b)) {
            bytes.clear();
            rows.iter().for_each(|row| row.pack(&mut bytes));
            self.pieces[slab(&rows[0])].push(self.spill.put(&bytes));
        }
    }

    /// The waits of a slab, in the order in which they came.
    fn of_slab(&mut self, slab: usize) -> Vec<Row> {
        let mut rows: Vec<Row> = Vec::new();
        for &piece in &self.pieces[slab] {
            let bytes = self.spill.get(piece);
            rows.extend(bytes.as_chunks().0.iter().map(Row::unpack));
        }
        let recent = self.recent.iter();
        rows.extend(recent.filter(|row| slab_of(&self.borders, row.time) == slab));
        rows
    }

    /// The path, from the run's begin to its end.
    ///
    /// # Errors
    /// The temporary file cannot be written or read.
    pub fn path(mut self, events: &Events) -> Result<Vec<Stretch>> {
        let courses = events.courses();
        let Some(mut path) = Path::new(&courses) else {
            return Ok(Vec::new());
        };
        let started = started(events, &courses);
        // A slab's waits are looked for in memory only if there are few.
        if self.pieces.iter().any(|pieces| !pieces.is_empty()) {
            self.put_away();
        }
        for slab in (0..self.pieces.len()).rev() {
            let started = started
                .iter()
                .filter(|jump| slab_of(&self.borders, jump.1) == slab)
                .copied()
                .collect::<Vec<_>>();
            path.follow(jumps(self.of_slab(slab), started));
        }
        if let Some(error) = self.spill.error.take() {
            bail!("no room for temporary files ({error}): set TMPDIR to a directory with more");
        }
        Ok(path.finish())
    }
}

/// The slab of this time; `borders` are the ends of all slabs but the last.
fn slab_of(borders: &[i64], time: i64) -> usize {
    borders.partition_point(|&border| border <= time)
}

/// Where the path leaves a location: its position, when, ns, and the position of the late party.
type Jump = (u32, i64, u32);

/// A thread's path goes on at the first thread of its rank, when that one was through its start-up.
fn started(events: &Events, courses: &[Course]) -> Vec<Jump> {
    let mut first: FxHashMap<u32, u32> = FxHashMap::default();
    let all = (0..).zip(courses);
    let jumps = all.filter_map(|(location, course)| {
        let rank = events.place(location as usize).rank;
        let first = *first.entry(rank).or_insert(location);
        Some((location, course.started?, first))
    });
    jumps.collect()
}

/// Where the path may leave locations, by location and time. Of the late parties of a call the last
/// one counts.
fn jumps(mut rows: Vec<Row>, started: Vec<Jump>) -> Vec<Jump> {
    rows.sort_by_key(|row| (row.location, row.enter, row.time));
    let calls = rows.chunk_by(|a, b| (a.location, a.enter) == (b.location, b.enter));
    let last = calls.filter_map(|parties| parties.last());
    let last = last.filter(|row| row.time > row.since);
    let jumps = last.map(|row| (row.location, row.time, row.late));
    let mut jumps: Vec<Jump> = jumps.chain(started).collect();
    jumps.sort_unstable();
    jumps
}

/// The path under way.
struct Path {
    /// When the run began, ns.
    start: i64,
    /// Where the path is, and until when, ns.
    at: u32,
    until: i64,
    /// The latest first.
    stretches: Vec<Stretch>,
}

impl Path {
    /// At the end of the run.
    fn new(courses: &[Course]) -> Option<Path> {
        // The run begins when the last rank starts the library: the others wait for it.
        let starts = courses.iter().filter(|course| course.starts_up);
        let start = starts.filter_map(|course| course.begin).max();
        let first = courses.iter().filter_map(|course| course.begin).min();
        let ends = (0u32..).zip(courses);
        let ends = ends.filter_map(|(at, course)| Some((course.end?, std::cmp::Reverse(at))));
        let (until, at) = ends.max()?;
        Some(Path {
            start: start.or(first)?,
            at: at.0,
            until,
            stretches: Vec::new(),
        })
    }

    /// Goes back through a slab with these `jumps`, by location and time.
    fn follow(&mut self, jumps: Vec<Jump>) {
        // By location: the jumps that the path has not passed.
        let mut left: FxHashMap<u32, &[Jump]> = FxHashMap::default();
        let of_locations = jumps.chunk_by(|a, b| a.0 == b.0);
        left.extend(of_locations.map(|of| (of[0].0, of)));
        // The path only goes back: what is later is not on it.
        while self.until > self.start
            && let Some(left) = left.get_mut(&self.at)
            && let passed = left.partition_point(|jump| jump.1 <= self.until)
            && let Some((&(_, time, late), before)) = left[..passed].split_last()
        {
            *left = before;
            if late != NONE && late != self.at {
                self.tell(time);
                (self.at, self.until) = (late, time);
            }
        }
    }

    /// The path is on its location from this moment on.
    fn tell(&mut self, from: i64) {
        let from = from.max(self.start);
        if from < self.until {
            self.stretches.push(Stretch {
                location: self.at,
                from,
                until: self.until,
            });
        }
    }

    fn finish(mut self) -> Vec<Stretch> {
        self.tell(self.start);
        self.stretches.reverse();
        self.stretches
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(location: u32, late: u32, enter: i64, time: i64) -> Row {
        Row {
            location,
            late,
            enter,
            since: enter,
            time,
        }
    }

    fn course(end: i64) -> Course {
        Course {
            begin: Some(0),
            end: Some(end),
            starts_up: true,
            started: None,
        }
    }

    #[test]
    fn it_goes_on_at_the_party_that_came_last() {
        let rows = vec![row(2, 0, 10, 20), row(2, 1, 10, 30), row(1, 0, 5, 25)];
        let mut path = Path::new(&[course(70), course(80), course(90)]).expect("an end");
        path.follow(jumps(rows, Vec::new()));
        let stretch = |(location, from, until)| Stretch {
            location,
            from,
            until,
        };
        assert_eq!(
            path.finish(),
            [(0, 0, 25), (1, 25, 30), (2, 30, 90)].map(stretch)
        );
    }

    #[test]
    fn rows_are_what_was_packed() {
        let known = row(3, NONE, -7, 1 << 40);
        let mut bytes = Vec::new();
        known.pack(&mut bytes);
        assert_eq!(
            bytes.as_chunks().0.iter().map(Row::unpack).next(),
            Some(known)
        );
    }
    #[test]
    fn waits_come_back_by_slab() {
        let mut waits = Waits::default();
        waits.begin(&[100, 200]);
        let rows = [(0, 250), (1, 99), (2, 100), (3, 5)].map(|(at, time)| row(at, 9, 0, time));
        waits.recent = rows[..3].to_vec();
        waits.put_away();
        waits.recent.push(rows[3]);
        assert_eq!(waits.of_slab(0), [rows[1], rows[3]]);
        assert_eq!(waits.of_slab(1), [rows[2]]);
        assert_eq!(waits.of_slab(2), [rows[0]]);
    }
}
