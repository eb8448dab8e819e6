//! What waiting locations did, on its way to the agents of the late parties.

use std::ops::Range;

use laggard_comm::Job;
use rustc_hash::FxHashMap;

use crate::basics::ends::NONE;
use crate::roots::activities::Shared;
use crate::roots::excess::Other;
use crate::roots::walk::Walker;
use crate::wire::links::{Side, Spending, Wholes};
use crate::wire::parcels::exchange;

/// Activities that were told to an agent, by the own number: the order in which they were.
type Told = FxHashMap<u32, u32>;

/// Activities that an agent told, in that order: keys, and which of the [`Wholes`] they belong to,
/// counted from 1.
type Heard = Vec<([u64; 2], u32)>;

/// Activities that agents have told each other, by agent: none is told twice.
pub(super) struct Spoken {
    told: Vec<Told>,
    heard: Vec<Heard>,
}

impl Spoken {
    pub(super) fn new(agents: usize) -> Spoken {
        Spoken {
            told: vec![Told::default(); agents],
            heard: vec![Heard::new(); agents],
        }
    }

    /// What the waiting locations did, by agent and number of what it told. Those that fold are
    /// added up. `told` is by wait; `waits` are the numbers of waits by agent and number; `counts` how many
    /// waits each agent told. Collective.
    pub(super) fn sides(
        &mut self,
        (job, counts): (&dyn Job, &[u32]),
        (walkers, shared): (&[Walker<'_>], &Shared),
        told: &[(u32, u32)],
        waits: Vec<Vec<u32>>,
    ) -> Vec<Sides> {
        let me = job.agent();
        let mut out: Vec<Sides> = waits.into_iter().map(Sides::expect).collect();
        for (lane, walker) in (0..).zip(walkers) {
            for (at, wait) in (0..).zip(&walker.waits) {
                let (agent, index) = told[wait.index as usize];
                if agent != NONE && wait.is_known {
                    out[agent as usize].add(index, Place { lane, at });
                }
            }
        }
        out.iter_mut().for_each(|sides| sides.fold(walkers));
        let own = std::mem::take(&mut out[me]);
        let told = out.iter().zip(&mut self.told);
        let mut spending: Vec<Spending> = told
            .map(|(sides, told)| sides.pack(walkers, shared, told))
            .collect();
        let received = exchange(job, &mut spending);
        let heard = received.iter().zip(&mut self.heard).zip(counts);
        let mut sides: Vec<Sides> = heard
            .map(|((parcel, heard), &count)| Sides::unpack(parcel, count, shared, heard))
            .collect();
        sides[me] = own;
        sides
    }
}

/// What waiting locations did, by number of what was told about their waits.
#[derive(Default)]
pub(super) struct Sides {
    /// By number: where it is, and of how many waits.
    of: Vec<(Place, u32)>,
    /// What no walker has.
    sides: Vec<Elsewhere>,
    /// Its times: the agent's numbers of activities, and ns.
    times: Vec<(u32, i64)>,
    /// Waits that fold, with their numbers.
    folding: Vec<(u32, Place)>,
}

impl Sides {
    /// How many are known.
    pub(super) fn count(&self) -> u32 {
        self.of.iter().filter(|(of, _)| of.at != NONE).count() as u32
    }

    /// So many waits have each number.
    fn expect(waits: Vec<u32>) -> Sides {
        let of = waits.into_iter().map(|waits| (Place::NOWHERE, waits));
        Sides {
            of: of.collect(),
            ..Sides::default()
        }
    }

    /// Adds the side of a wait.
    fn add(&mut self, index: u32, place: Place) {
        match &mut self.of[index as usize] {
            (known, 1) => *known = place,
            _ => self.folding.push((index, place)),
        }
    }

    /// All waits are there.
    fn fold(&mut self, walkers: &[Walker<'_>]) {
        let mut folding = std::mem::take(&mut self.folding);
        folding.sort_by_key(|(index, _)| *index);
        let mut sum = Other::default();
        for same in folding.chunk_by(|a, b| a.0 == b.0) {
            sum.clear();
            for (_, place) in same {
                if let Some(side) = self.at(*place, walkers) {
                    side.add_to(&mut sum);
                }
            }
            let (index, begin) = (same[0].0, self.times.len());
            self.times.extend(sum.times());
            self.of[index as usize].0 = Place::here(self.sides.len());
            self.sides.push(Elsewhere {
                wholes: sum.wholes,
                waits: sum.waits,
                times: begin..self.times.len(),
            });
        }
    }

    /// Most waits have one of few sets of activities. Times go column by column.
    fn pack(&self, walkers: &[Walker<'_>], shared: &Shared, told: &mut Told) -> Spending {
        let mut parcel = Spending::default();
        let mut sets: FxHashMap<Vec<u32>, u32> = FxHashMap::default();
        let (mut numbers, mut times) = (Vec::new(), Vec::new());
        let mut own_times: Vec<(u32, i64)> = Vec::new();
        // By set: where the times of its waits begin.
        let mut begins: Vec<Vec<usize>> = Vec::new();
        for index in 0..self.of.len() as u32 {
            let Some(own) = self.of(index, walkers) else {
                continue;
            };
            let (begin, waits) = (times.len(), own.waits);
            own_times.clear();
            let number = |number| own.numbers.map_or(number, |of| of[number as usize]);
            own_times.extend(own.times.iter().map(|&(at, time)| (number(at), time)));
            own_times.sort_unstable();
            numbers.clear();
            for &(number, time) in &own_times {
                numbers.push(number);
                times.push(time);
            }
            let set = sets.get(&numbers).copied().unwrap_or_else(|| {
                let next = begins.len() as u32;
                sets.insert(numbers.clone(), next);
                for &number in &numbers {
                    let next = told.len() as u32;
                    let known = *told.entry(number).or_insert(next);
                    if known == next {
                        parcel.keys.push(shared.keys.values[number as usize]);
                        let whole = shared.wholes[number as usize];
                        parcel
                            .wholes
                            .push(whole.map_or(0, |whole| whole as u32 + 1));
                    }
                    parcel.activities.push(known);
                }
                parcel.lengths.push(numbers.len() as u32);
                begins.push(Vec::new());
                next
            });
            begins[set as usize].push(begin);
            let count = numbers.len() as u32;
            parcel.sides.push(Side {
                index,
                waits,
                count,
            });
            parcel.sets.push(set);
        }
        for (begins, &length) in begins.iter().zip(&parcel.lengths) {
            for at in 0..length as usize {
                let column = begins.iter().map(|begin| times[begin + at]);
                parcel.times.extend(column);
            }
        }
        parcel
    }

    fn unpack(parcel: &Spending, count: u32, shared: &Shared, heard: &mut Heard) -> Sides {
        let keys = parcel.keys.iter().copied();
        heard.extend(keys.zip(parcel.wholes.iter().copied()));
        let mut of = vec![(Place::NOWHERE, 0); count as usize];
        let mut sides = Vec::with_capacity(parcel.sides.len());
        // By set: its waits.
        let mut sets: Vec<Vec<usize>> = vec![Vec::new(); parcel.lengths.len()];
        let mut end = 0;
        for (side, &set) in parcel.sides.iter().zip(&parcel.sets) {
            let (Some(set), Some((of, _))) =
                (sets.get_mut(set as usize), of.get_mut(side.index as usize))
            else {
                continue;
            };
            *of = Place::here(sides.len());
            set.push(sides.len());
            let begin = end;
            end += side.count as usize;
            sides.push(Elsewhere {
                wholes: Wholes::default(),
                waits: side.waits,
                times: begin..end,
            });
        }
        let mut times = vec![(NONE, 0); end];
        let mut activities = parcel.activities.iter();
        let mut columns = &parcel.times[..];
        for (set, &length) in sets.iter().zip(&parcel.lengths) {
            for at in 0..length as usize {
                let column;
                (column, columns) = columns.split_at(set.len().min(columns.len()));
                let activity = activities.next();
                let Some(&(key, whole)) = activity.and_then(|at| heard.get(*at as usize)) else {
                    break;
                };
                // Activities that no location of this agent has are in the sums of wholes only.
                let number = shared.find(key).unwrap_or(NONE);
                for (&side, &time) in set.iter().zip(column) {
                    let side: &mut Elsewhere = &mut sides[side];
                    if let Some(of) = times[side.times.clone()].get_mut(at) {
                        *of = (number, time);
                    }
                    let whole = (whole as usize).checked_sub(1);
                    if let Some(sum) = whole.and_then(|whole| side.wholes.get_mut(whole)) {
                        *sum = sum.saturating_add(time);
                    }
                }
            }
        }
        Sides {
            of,
            sides,
            times,
            folding: Vec::new(),
        }
    }

    /// The side of the wait with this number; `None` if it is unknown.
    pub(super) fn of<'w>(&'w self, index: u32, walkers: &'w [Walker<'_>]) -> Option<Of<'w>> {
        self.at(self.of.get(index as usize)?.0, walkers)
    }

    #[inline]
    fn at<'w>(&'w self, place: Place, walkers: &'w [Walker<'_>]) -> Option<Of<'w>> {
        let at = place.at as usize;
        Some(match walkers.get(place.lane as usize) {
            Some(walker) => {
                let wait = walker.waits.get(at)?;
                Of {
                    wholes: &wait.wholes,
                    waits: 1,
                    times: walker.listed(&wait.times),
                    numbers: Some(&walker.activities.shared),
                }
            }
            None => {
                let side = self.sides.get(at)?;
                Of {
                    wholes: &side.wholes,
                    waits: side.waits,
                    times: self.times.get(side.times.clone())?,
                    numbers: None,
                }
            }
        })
    }
}

/// What is known of the side of a wait, or of several together.
pub(super) struct Of<'w> {
    wholes: &'w Wholes,
    /// Number of waits.
    waits: u32,
    /// Times by activity: by the agent's number, or a walker's own.
    times: &'w [(u32, i64)],
    /// By number of the walker: the agent's.
    numbers: Option<&'w [u32]>,
}

impl Of<'_> {
    /// Adds it to others.
    #[inline]
    pub(super) fn add_to(&self, sum: &mut Other) {
        let times = self.times.iter();
        match self.numbers {
            Some(numbers) => {
                let times = times.map(|&(number, time)| (numbers[number as usize], time));
                sum.add(times, self.wholes, self.waits);
            }
            None => sum.add(times.copied(), self.wholes, self.waits),
        }
    }
}

/// The side of a wait at another agent, or of several together.
struct Elsewhere {
    /// See [`Wholes`].
    wholes: Wholes,
    /// Number of waits.
    waits: u32,
    /// Place of its times.
    times: Range<usize>,
}

/// Where the side of a wait is.
#[derive(Clone, Copy, Debug)]
struct Place {
    /// The walker that has it; `NONE` if none does.
    lane: u32,
    /// Its number there; `NONE` if it is unknown.
    at: u32,
}

impl Place {
    const NOWHERE: Place = Place {
        lane: NONE,
        at: NONE,
    };

    fn here(at: usize) -> Place {
        let at = at as u32;
        Place { lane: NONE, at }
    }
}
