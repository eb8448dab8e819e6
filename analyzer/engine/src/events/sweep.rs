//! All that each location did, slab by slab: its calls and its waits.

use std::ops::Range;

use laggard_trace::Signature;
use rayon::prelude::*;

use super::Events;
use crate::collectives::group::Groups;
use crate::replay::agent::{Agent, PutAway};
use crate::replay::rank::Rank;
use crate::replay::rounds::Rounds;
use crate::stream::columns::{Columns, Stream};
use crate::stream::looks::NotedLook;
use crate::waits::log::{ShortLog, ShortWait};

/// Takes what one location did.
pub trait Sweep: Send {
    /// The next calls, in order.
    fn calls(&mut self, calls: &SlabOfCalls<'_>);
    /// A wait of a call that was given before. Their order does not depend on the number of threads.
    fn wait(&mut self, wait: &ShortWait);
}

/// Successive calls of a location, those of one slab. Positions are among these.
pub struct SlabOfCalls<'s> {
    columns: &'s Columns,
    stream: &'s Stream<'s>,
    looks: &'s [NotedLook],
}

impl SlabOfCalls<'_> {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.columns.enter.len() - self.columns.first
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Enter, leave and signature of some of them, times in ns.
    #[inline]
    pub fn some(&self, positions: Range<usize>) -> impl Iterator<Item = (i64, i64, u32)> {
        let (columns, first) = (self.columns, self.columns.first);
        let places = first + positions.start..first + positions.end;
        let times = columns.enter[places.clone()].iter();
        let times = times.zip(&columns.leave[places.clone()]);
        let calls = times.zip(&columns.signature[places]);
        calls.map(|((&enter, &leave), &signature)| (enter, leave, signature))
    }

    /// Positions of records that stand for several calls, and the time inside these, ns.
    pub fn repeated(&self) -> impl Iterator<Item = (usize, i64)> {
        let extended = self.columns.extended.iter();
        extended.filter_map(|(at, event)| {
            let (_, ticks) = event.repeated?;
            let inside = self.stream.length_ns(ticks.into());
            Some((at.checked_sub(self.columns.first)?, inside))
        })
    }

    /// Its looks, with their positions; none where no look is in vain.
    pub fn looks(&self) -> impl Iterator<Item = (usize, &NotedLook)> + Clone {
        let first = self.columns.first;
        let looks = self.looks.iter();
        looks.map(move |look| (look.position - first, look))
    }

    /// Chunks of which these are the first calls: number of the chunk's first call, its position among
    /// the calls, and its number in the file. The first call of the last one may be in the next slab.
    pub fn chunks(&self) -> impl Iterator<Item = (u64, usize, u32)> {
        let first = self.columns.number + self.columns.first as u64;
        let chunks = self.columns.chunks.iter();
        chunks.map(move |&(number, chunk)| (number, (number - first) as usize, chunk))
    }

    /// Signatures by number.
    pub fn signatures(&self) -> &[Signature] {
        self.stream.location().definitions.signatures()
    }
}

/// Goes over all locations once; `to` takes what they did, by location.
pub fn sweep<T: Sweep>(events: &Events, rounds: &Rounds, groups: Groups, to: &mut [T]) {
    let (mut agent, borders) = rounds.begin(&events.timeline, None, Some(groups));
    agent.ranks.iter_mut().for_each(Rank::note_in_short);
    let ends = borders.into_iter().map(Some).chain([None]);
    for end in ends {
        slab(&mut agent, end, to);
    }
}

/// Goes over what came since the agent was put away, and how far it had asked for calls, ns; all if there was
/// none. `to` take what is new. The run goes on.
pub fn go_on<T: Sweep>(
    events: &Events,
    rounds: &Rounds,
    groups: Groups,
    known: Option<(PutAway, i64)>,
    to: &mut [T],
) -> (PutAway, i64) {
    let since = known.as_ref().map_or(i64::MIN, |(_, until)| *until);
    let known = known.map(|(known, _)| known);
    let (mut agent, borders) = rounds.go_on(&events.timeline, groups, known);
    agent.ranks.iter_mut().for_each(Rank::note_in_short);
    let end = events.end_ns().saturating_add(1).max(since);
    let ends = borders
        .into_iter()
        .filter(|&border| since < border && border < end);
    for until in ends.chain([end]) {
        slab(&mut agent, Some(until), to);
    }
    (agent.put_away(), end)
}

/// One round: the calls entered before a moment, or all that are left.
fn slab<T: Sweep>(agent: &mut Agent<'_>, end: Option<i64>, to: &mut [T]) {
    let (until, is_last) = (end.unwrap_or(i64::MAX), end.is_none());
    agent.read(until, is_last);
    each(&mut agent.ranks, to, |rank, to| {
        for (thread, to) in rank.recorded.threads.iter().zip(to) {
            let (columns, stream) = (&thread.columns, &thread.stream);
            let looks = thread.polling.noted.as_deref().unwrap_or_default();
            to.calls(&SlabOfCalls {
                columns,
                stream,
                looks,
            });
        }
    });
    agent.ask_and_name(until, is_last);
    each(&mut agent.ranks, to, |rank, to| {
        for (charged, to) in rank.messages.asker.charged.iter_mut().zip(to) {
            let waits = charged.short.iter_mut().flat_map(ShortLog::drain);
            waits.for_each(|wait| to.wait(&wait));
        }
    });
}

/// Gives each rank with what belongs to its threads.
fn each<T: Send>(
    ranks: &mut [Rank<'_>],
    to: &mut [T],
    give: impl Fn(&mut Rank<'_>, &mut [T]) + Sync,
) {
    let mut parts = Vec::with_capacity(ranks.len());
    let mut rest = to;
    for rank in &*ranks {
        let (own, others) = rest.split_at_mut(rank.recorded.threads.len());
        parts.push(own);
        rest = others;
    }
    let ranks = ranks.par_iter_mut().zip(parts);
    ranks.for_each(|(rank, own)| give(rank, own));
}
