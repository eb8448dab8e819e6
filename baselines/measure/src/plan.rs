//! Which cells are measured, in which order, and for how long.
//!
//! A cell is a benchmark in a group with messages of one size. Each is measured several times, far
//! apart, so that a temporary disturbance of the machine does not spoil it. Rank 0 decides what
//! comes next. It tells all ranks which group is at work, and the members of that group one cell
//! after the other. The other ranks sleep, ever longer.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use laggard_baselines::MeasureOptions;
use laggard_comm::waiting;

use super::Shown;
use super::benchmarks::{Benchmark, Kind, Shmem, Site, Volume};
use super::command::Cell;
use super::command::Command;
use super::cores::Cores;
use super::crowded::{self, Kept};
use super::groups::Group;
use super::offset;
use super::rounds::{self, Limits};
use super::world::Members;

/// How often each cell is measured.
const PASSES: usize = 3;
/// Least and most repetitions of a cell in a pass.
const REPETITIONS: (usize, usize) = (5, 400);
/// Time after which the clocks of several hosts are compared again.
const COMPARED: Duration = Duration::from_millis(50);
/// Bandwidths that differ by less count as equal.
const FLAT: f64 = 0.05;
/// Smaller messages may have any bandwidth.
const FLAT_FROM: u64 = 64 << 10;
/// In place of the group at work: the end.
const NOBODY: u64 = u64::MAX;

/// The plan, the same on all ranks.
pub struct Plan<'p> {
    /// The job.
    pub world: Members,
    /// Host of each rank.
    pub hosts: &'p [String],
    /// Groups that measure together.
    pub groups: &'p [Group],
    /// The benchmarks.
    pub benchmarks: &'p [&'static Benchmark],
    /// The options.
    pub options: &'p MeasureOptions,
    /// Cores of this rank.
    pub cores: Cores,
}

/// A turn of a cell.
#[derive(Clone, Copy)]
struct Turn {
    pass: usize,
    /// Position of the cell.
    at: usize,
    /// Whether its members wait for cores.
    crowded: bool,
}

/// One measurement of a cell, as rank 0 knows it.
#[derive(Clone, Debug)]
pub struct Run {
    /// The cell.
    pub cell: Cell,
    /// How far apart the members began each repetition, ns.
    pub skews: Vec<u32>,
}

/// A cell that this rank took part in.
#[derive(Clone, Copy, Debug)]
pub struct Own {
    /// Number of the run in the job.
    pub run: u32,
    /// Repetitions.
    pub count: usize,
    /// Whether this rank is the first of its group, which may act differently from the rest.
    pub is_first: bool,
}

/// The results.
#[derive(Default)]
pub struct Done {
    /// All runs, at rank 0.
    pub runs: Vec<Run>,
    /// This rank's runs, in order.
    pub own: Vec<Own>,
    /// Cells in all.
    pub cells: usize,
    /// Cells for which there was no time.
    pub left_out: usize,
    /// Groups in which nothing is measured, at rank 0.
    pub kept: Vec<Kept>,
}

/// Sizes up to `most`: 0, powers of two, and in every second gap one for a check. Quickly: fewer of
/// either.
fn sizes(most: u64, quickly: bool) -> Vec<u64> {
    let (step, further) = if quickly { (8, 64) } else { (2, 4) };
    let powers = std::iter::successors(Some(1u64), |size| size.checked_mul(step));
    let powers = powers.take_while(|&size| size <= most);
    let checks = std::iter::successors(Some(3u64), |size| size.checked_mul(further));
    let checks = checks.take_while(|&size| size <= most);
    let mut sizes: Vec<u64> = std::iter::once(0).chain(powers).chain(checks).collect();
    sizes.sort_unstable();
    sizes
}

/// Bytes that blocks may take, also those of two neighbours with a gap of the same size.
pub fn room(options: &MeasureOptions) -> usize {
    (options.max_bytes as usize).next_multiple_of(4096) * 2 + 4096
}

/// Whether a size serves as a check of its neighbours.
pub fn is_check(bytes: u64, options: &MeasureOptions) -> bool {
    options.sizes.is_empty() && bytes != 0 && !bytes.is_power_of_two()
}

impl Plan<'_> {
    /// All cells, small messages first.
    fn cells(&self) -> Vec<Cell> {
        let mut cells = Vec::new();
        for (benchmark, row) in self.benchmarks.iter().enumerate() {
            for (group, members) in self.groups.iter().enumerate() {
                let fits = match row.kind {
                    Kind::Pair => members.size() == 2,
                    Kind::Group => true,
                    Kind::ActiveSet => members.is_contiguous(),
                    Kind::Everybody => {
                        members.size() == self.hosts.len() && members.is_contiguous()
                    }
                };
                if !fits {
                    continue;
                }
                let cell = |bytes| Cell {
                    bytes,
                    group,
                    benchmark,
                };
                cells.extend(self.sizes(row, members).into_iter().map(cell));
            }
        }
        cells.sort();
        cells
    }

    /// Sizes of a benchmark in a group.
    fn sizes(&self, row: &Benchmark, group: &Group) -> Vec<u64> {
        let blocks = match row.volume {
            Volume::Fixed => return vec![0],
            Volume::Sized | Volume::Words => 1,
            Volume::Blocks | Volume::WordBlocks => group.size() as u64,
        };
        let most = self.options.max_bytes / blocks;
        let mut all = match self.options.sizes.is_empty() {
            true => sizes(most, self.options.quick),
            false => self.options.sizes.clone(),
        };
        let words = matches!(row.volume, Volume::Words | Volume::WordBlocks);
        all.retain(|&bytes| bytes <= most && (!words || bytes % 8 == 0 && bytes > 0));
        all
    }

    /// Measures. Collective.
    pub fn carry_out(&self, shown: Shown) -> Done {
        let memory = Memory::new(room(self.options));
        let mut done = Done {
            kept: self.try_crowded(),
            ..Done::default()
        };
        let mut clocks = Clocks::default();
        match self.world.rank {
            0 => self.conduct(&memory, &mut clocks, &mut done, shown),
            _ => while self.follow(&memory, &mut clocks, &mut done) {},
        }
        done
    }

    /// Groups whose members keep their cores while they wait, at rank 0. Collective.
    fn try_crowded(&self) -> Vec<Kept> {
        let mut kept = Vec::new();
        for group in (0..self.groups.len()).filter(|&group| self.is_crowded(group)) {
            if let Some(members) = &self.groups[group].members {
                self.place(group);
                let time = crowded::time_with_slices(members);
                kept.extend(time.map(|time| Kept { group, time }));
            }
            // All other ranks sleep meanwhile.
            self.world.broadcast_patiently(&mut [0]);
        }
        kept
    }

    /// Rank 0: decides what comes next.
    fn conduct(&self, memory: &Memory, clocks: &mut Clocks, done: &mut Done, shown: Shown) {
        let mut cells = self.cells();
        cells.retain(|cell| done.kept.iter().all(|kept| kept.group != cell.group));
        let began = Instant::now();
        let mut flat = Flat::default();
        let mut measured = vec![false; cells.len()];
        done.cells = cells.len();
        let turns = self.turns(&cells);
        let all = turns.len();
        // Groups whose members wait for cores would take all the time, or get none.
        let alone = turns.iter().filter(|turn| !turn.crowded).count();
        let half = match alone {
            0 => Duration::ZERO,
            _ if alone == all => self.options.time,
            _ => self.options.time / 2,
        };
        let mut at_work = None;
        for (number, turn) in turns.into_iter().enumerate() {
            let (at, cell) = (turn.at, cells[turn.at]);
            let (until, end) = match turn.crowded {
                false => (half, alone),
                true => (self.options.time, all),
            };
            let left = until.saturating_sub(began.elapsed());
            if left.is_zero() {
                continue;
            }
            if flat.is_beyond(&cell) {
                measured[at] = true;
                continue;
            }
            let row = self.benchmarks[cell.benchmark];
            shown(number as f64 / all as f64, row.calls[0]);
            self.change(&mut at_work, Some(cell.group));
            let spans_hosts = self.groups[cell.group].span == laggard_baselines::Span::InterNode;
            let command = Command {
                cell: Some(cell),
                run: done.runs.len() as u32,
                time: left / (end - number) as u32,
                compares: spans_hosts && clocks.are_due(cell.group),
            };
            self.tell(cell.group, command);
            let shortest = self.run(command, memory, clocks, done);
            measured[at] = true;
            if turn.pass == 0 && !is_check(cell.bytes, self.options) {
                flat.take(&cell, shortest);
            }
        }
        done.left_out = measured.iter().filter(|done| !**done).count();
        self.change(&mut at_work, None);
    }

    /// The order of the cells. Groups whose members wait for cores come last, with all passes of a
    /// size before the next larger one, since a cell that was measured once there is not used.
    fn turns(&self, cells: &[Cell]) -> Vec<Turn> {
        let groups = 0..self.groups.len();
        let crowded: Vec<bool> = groups.map(|group| self.is_crowded(group)).collect();
        let turn = |pass, at: usize| Turn {
            pass,
            at,
            crowded: crowded[cells[at].group],
        };
        let alone = (0..PASSES).flat_map(|pass| (0..cells.len()).map(move |at| turn(pass, at)));
        let mut turns: Vec<Turn> = alone.filter(|turn| !turn.crowded).collect();
        let mut first = 0;
        for of_size in cells.chunk_by(|a, b| a.bytes == b.bytes) {
            let all = first..first + of_size.len();
            first = all.end;
            let passes = (0..PASSES).flat_map(|pass| all.clone().map(move |at| turn(pass, at)));
            turns.extend(passes.filter(|turn| turn.crowded));
        }
        turns
    }

    /// Whether a host has more members of a group than cores, so that they cannot begin together.
    pub fn is_crowded(&self, group: usize) -> bool {
        crowded::is_crowded(&self.groups[group], self.hosts)
    }

    /// Rank 0: puts another group to work, or none at the end.
    fn change(&self, at_work: &mut Option<usize>, next: Option<usize>) {
        if next.is_some() && *at_work == next {
            return;
        }
        if let Some(group) = *at_work {
            let others = Command {
                cell: None,
                run: 0,
                time: Duration::ZERO,
                compares: false,
            };
            self.tell(group, others);
        }
        let number = next.map_or(NOBODY, |group| group as u64);
        self.world.broadcast_patiently(&mut number.to_ne_bytes());
        *at_work = next;
        if let Some(group) = next {
            self.place(group);
        }
    }

    /// Rank 0: sends a command to the members of a group.
    fn tell(&self, group: usize, command: Command) {
        if let Some(members) = &self.groups[group].members {
            members.broadcast(&mut command.pack());
        }
    }

    /// Other ranks: follow rank 0's commands, if their group is at work; `false` at the end.
    fn follow(&self, memory: &Memory, clocks: &mut Clocks, done: &mut Done) -> bool {
        let mut number = NOBODY.to_ne_bytes();
        self.world.broadcast_patiently(&mut number);
        let number = u64::from_ne_bytes(number);
        if number == NOBODY {
            return false;
        }
        let group = number as usize;
        let Some(members) = &self.groups[group].members else {
            return true;
        };
        self.place(group);
        loop {
            let mut bytes = [0; Command::BYTES];
            members.broadcast(&mut bytes);
            let command = Command::unpack(&bytes);
            if command.cell.is_none() {
                return true;
            }
            self.run(command, memory, clocks, done);
        }
    }

    /// The members of a group on this rank's host.
    fn beside(&self, group: usize) -> impl Iterator<Item = usize> {
        let here = &self.hosts[self.world.rank as usize];
        let ranks = self.groups[group].ranks.iter().copied();
        ranks.filter(|&rank| self.hosts[rank] == *here)
    }

    /// Binds this rank to its core while its group is at work.
    fn place(&self, group: usize) {
        waiting::set(self.is_crowded(group));
        let own = self.world.rank as usize;
        if let Some(number) = self.beside(group).position(|rank| rank == own) {
            self.cores.take(number);
        }
    }

    /// Measures a cell; returns the shortest time at rank 0, ns.
    fn run(&self, command: Command, memory: &Memory, clocks: &mut Clocks, done: &mut Done) -> i64 {
        let Some(cell) = command.cell else { return 0 };
        let group = &self.groups[cell.group];
        let Some(members) = &group.members else {
            return 0;
        };
        if command.compares {
            clocks.compare(cell.group, members, self.hosts, group);
        }
        let offset = clocks.offset(cell.group);
        let row = self.benchmarks[cell.benchmark];
        let site = Site {
            comm: members.comm,
            rank: members.rank,
            size: members.size,
            bytes: cell.bytes as usize,
            outgoing: memory.outgoing(),
            incoming: memory.incoming(),
            peer: group.ranks[usize::from(members.rank == 0)] as i32,
            shmem: Shmem::loaded(),
        };
        let mut steps = (row.prepare)(&site);
        let limits = Limits {
            least: REPETITIONS.0,
            most: REPETITIONS.1,
            time: command.time,
        };
        // The others sleep.
        let yields = self.is_crowded(cell.group);
        let found = rounds::repeat(members, &mut steps, limits, offset, yields);
        (steps.release)();
        done.own.push(Own {
            run: command.run,
            count: found.count,
            is_first: members.rank == 0,
        });
        if self.world.rank == 0 {
            done.runs.push(Run {
                cell,
                skews: found.skews,
            });
        }
        found.shortest
    }
}

/// The size from which on the bandwidth stays the same.
#[derive(Default)]
struct Flat {
    /// By benchmark and group: bytes, bandwidth, and how many times in a row it stayed the same.
    last: BTreeMap<(usize, usize), (u64, f64, usize)>,
}

impl Flat {
    fn take(&mut self, cell: &Cell, shortest: i64) {
        let bandwidth = cell.bytes as f64 / shortest.max(1) as f64;
        let key = (cell.benchmark, cell.group);
        let last = self.last.entry(key).or_default();
        let same = cell.bytes >= FLAT_FROM && (bandwidth / last.1 - 1.0).abs() < FLAT;
        *last = (cell.bytes, bandwidth, if same { last.2 + 1 } else { 0 });
    }

    fn is_beyond(&self, cell: &Cell) -> bool {
        let last = self.last.get(&(cell.benchmark, cell.group));
        last.is_some_and(|&(bytes, _, same)| same >= 2 && cell.bytes > bytes)
    }
}

/// This rank's clock minus rank 0's, by group.
#[derive(Default)]
struct Clocks {
    offsets: BTreeMap<usize, (i64, Option<Instant>)>,
}

impl Clocks {
    fn are_due(&self, group: usize) -> bool {
        let compared = self.offsets.get(&group).and_then(|(_, when)| *when);
        compared.is_none_or(|when| when.elapsed() >= COMPARED)
    }

    fn compare(&mut self, group: usize, members: &Members, hosts: &[String], of: &Group) {
        let far: Vec<bool> = of
            .ranks
            .iter()
            .map(|&rank| hosts[rank] != hosts[0])
            .collect();
        let offset = offset::offset(members, &far);
        self.offsets.insert(group, (offset, Some(Instant::now())));
    }

    fn offset(&self, group: usize) -> i64 {
        self.offsets.get(&group).map_or(0, |(offset, _)| *offset)
    }
}

/// Memory for messages.
struct Memory {
    words: Vec<u64>,
    incoming: usize,
}

impl Memory {
    fn new(room: usize) -> Memory {
        // Numbers that can be added up any number of times.
        let words = vec![0u64; 2 * room / size_of::<u64>()];
        Memory {
            incoming: room / size_of::<u64>(),
            words,
        }
    }

    fn outgoing(&self) -> *mut std::ffi::c_void {
        self.words.as_ptr().cast_mut().cast()
    }

    fn incoming(&self) -> *mut std::ffi::c_void {
        self.words[self.incoming..].as_ptr().cast_mut().cast()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_powers_of_two_with_checks_between() {
        assert_eq!(sizes(16, false), [0, 1, 2, 3, 4, 8, 12, 16]);
        assert_eq!(sizes(512, true), [0, 1, 3, 8, 64, 192, 512]);
        assert_eq!(sizes(0, false), [0]);
    }

    #[test]
    fn sizes_end_where_bandwidth_is_flat() {
        let mut flat = Flat::default();
        let cell = |bytes| Cell {
            bytes,
            group: 0,
            benchmark: 0,
        };
        // Twice in a row within 5 %: 9.6 and 9.8 bytes a ns after 9.3.
        for power in 10..=19 {
            let bytes = 1u64 << power;
            assert!(!flat.is_beyond(&cell(bytes)), "{bytes}");
            flat.take(&cell(bytes), 1000 + bytes as i64 / 10);
        }
        assert!(flat.is_beyond(&cell(1 << 20)));
        assert!(!flat.is_beyond(&cell(1 << 19)));
    }
}
