//! What calls depend on, while some of it is known: times by column.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::graph::Provider;

/// Locations that need a junction: mostly one.
pub type Waiters = SmallVec<[u32; 4]>;

/// Junctions under way.
pub struct Junctions {
    columns: usize,
    slots: FxHashMap<u64, u32>,
    free: Vec<u32>,
    states: Vec<State>,
    /// By slot and column: when the last provider came, ns.
    times: Vec<i64>,
    /// By slot and column: what that was.
    lates: Vec<u32>,
    /// Locations that cannot go on.
    waiters: FxHashMap<u64, Waiters>,
}

#[derive(Clone, Copy, Default)]
struct State {
    arrived: u32,
    providers: u32,
    /// Calls that have not used it yet.
    left: u32,
}

impl Junctions {
    pub fn new(columns: usize) -> Junctions {
        Junctions {
            columns,
            slots: FxHashMap::default(),
            free: Vec::new(),
            states: Vec::new(),
            times: Vec::new(),
            lates: Vec::new(),
            waiters: FxHashMap::default(),
        }
    }

    /// Where the times of a junction are, if all of its providers have come.
    #[inline]
    pub fn complete(&self, junction: u64) -> Option<usize> {
        let slot = *self.slots.get(&junction)? as usize;
        let state = &self.states[slot];
        (state.arrived >= state.providers).then_some(slot)
    }

    /// The times, and what came last, of a junction that is complete.
    #[inline]
    pub fn times(&self, slot: usize) -> (&[i64], &[u32]) {
        let columns = slot * self.columns..(slot + 1) * self.columns;
        (&self.times[columns.clone()], &self.lates[columns])
    }

    /// A location needs a junction.
    pub fn wait(&mut self, junction: u64, location: u32) {
        self.waiters.entry(junction).or_default().push(location);
    }

    /// A call has used a junction.
    #[inline]
    pub fn used(&mut self, junction: u64, slot: usize) {
        let left = &mut self.states[slot].left;
        *left = left.saturating_sub(1);
        if *left == 0 {
            self.slots.remove(&junction);
            self.free.push(slot as u32);
        }
    }

    /// A provider has come at these times, `before` ns earlier in each column. Gives those that wait
    /// for the junction, if it is complete now.
    #[inline]
    pub fn arrive(
        &mut self,
        provider: &Provider,
        now: &[i64],
        before: i64,
        late: impl Fn(usize) -> u32,
    ) -> Option<Waiters> {
        let (slots, free, states) = (&mut self.slots, &mut self.free, &mut self.states);
        let slot = *slots.entry(provider.junction).or_insert_with(|| {
            let slot = free.pop().unwrap_or(states.len() as u32);
            if slot as usize == states.len() {
                states.push(State::default());
            }
            states[slot as usize] = State {
                arrived: 0,
                providers: provider.providers,
                left: provider.consumers,
            };
            slot
        }) as usize;
        let range = slot * self.columns..(slot + 1) * self.columns;
        if self.times.len() < range.end {
            self.times.resize(range.end, i64::MIN);
            self.lates.resize(range.end, 0);
        }
        let (times, lates) = (&mut self.times[range.clone()], &mut self.lates[range]);
        let state = &mut self.states[slot];
        let is_first = state.arrived == 0;
        for (column, ((time, known), &now)) in times.iter_mut().zip(lates).zip(now).enumerate() {
            if is_first || now - before > *time {
                (*time, *known) = (now - before, late(column));
            }
        }
        state.arrived += 1;
        if state.arrived < state.providers {
            return None;
        }
        match self.waiters.is_empty() {
            true => Some(Waiters::new()),
            false => Some(self.waiters.remove(&provider.junction).unwrap_or_default()),
        }
    }
}
