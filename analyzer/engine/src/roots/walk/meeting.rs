//! When a location met others: in which calls, and from when on what they do is compared.

use laggard_trace::calls::Shape;
use laggard_trace::{Event, flags};

use super::Walker;
use crate::basics::ends::NONE;
use crate::roots::comparable;
use crate::roots::members::{Members, Set};
use crate::roots::spent::Sums;
use crate::roots::synced::{Closed, Polled};
use crate::roots::teams::Team;
use crate::stream::call::CallAt;
use crate::stream::roles::Among;
use crate::stream::rows::Row;

/// A non-blocking collective under way that is complete when all members have come.
#[derive(Clone)]
pub(super) struct Started {
    /// Number of the request.
    post: u64,
    group: u32,
    /// After its start.
    sums: Sums,
}

/// Whom a call synchronised with.
#[derive(Clone, Copy)]
pub(super) struct Met {
    /// By number.
    pub(super) partner: u32,
    /// When the first of the two left, ns.
    pub(super) left: i64,
    /// How much later this one did if it waited for a message, ns.
    pub(super) later: i64,
    /// Whether the other one waited for what this one sent or took: this one may wait after that.
    pub(super) is_sent: bool,
    /// See [`Sums::team`].
    pub(super) team: Option<Set>,
    /// If the one that waited looked for the other one.
    pub(super) polled: Option<Polled>,
}

impl Walker<'_> {
    /// Notes what a call completes that begins.
    #[inline]
    pub(super) fn complete(&mut self, row: &Row, event: Option<&Event>) {
        if self.started.is_empty() {
            return;
        }
        let listed = self.thread.lists.get(row.completes as usize);
        let listed = listed.into_iter().flatten().map(|(delta, _)| *delta);
        let completed = event.map_or(&[][..], |event| &event.completed).iter();
        let own = completed.filter(|completion| completion.thread.is_none());
        let mut deltas = listed
            .chain(own.map(|completion| completion.delta))
            .peekable();
        let completes = deltas.peek().is_some();
        for delta in deltas {
            let post = self.posts.wrapping_sub(u64::from(delta));
            let at = self.started.iter().position(|started| started.post == post);
            self.completing.extend(at.map(|at| self.started.remove(at)));
        }
        if completes && self.completing.is_empty() {
            // The looks were for something else.
            self.met_all = None;
        }
    }

    /// The closed call may have started a non-blocking collective, or completed one: then all
    /// members have met. Who waited met them at the end of the wait. Others met them after their
    /// own start: what they did since then may have made somebody wait.
    #[inline]
    pub(super) fn meet(&mut self, signature: u32, members: &Members, call: &Closed) {
        let all_there = std::mem::replace(&mut self.all_there, i64::MIN);
        if all_there != i64::MIN {
            let met = self.met_all.insert(Sums::now(&self.spent));
            met.begin_at(all_there, call);
        }
        if !self.completing.is_empty() {
            let met = self.met_all.take();
            for done in std::mem::take(&mut self.completing) {
                // Whoever came to this one had come to those before it.
                self.started.retain(|other| {
                    other.group != done.group || other.sums.order > done.sums.order
                });
                let then = met.as_ref().filter(|met| met.order > done.sums.order);
                self.synced
                    .known(members.set(done.group), then.unwrap_or(&done.sums), members);
            }
        }
        let row = self.thread.rows.get(signature as usize);
        let Some(row) = row.filter(|row| row.has(flags::POSTS)) else {
            return;
        };
        let needs_all = row.needs_all() && (row.shape != Shape::AllToAll || row.has_bytes);
        if self.folds && row.has(flags::COLLECTIVE) && row.group != NONE && needs_all {
            self.spent.order += 2;
            self.started.push(Started {
                post: self.posts,
                group: row.group,
                sums: Sums::now(&self.spent),
            });
        }
        self.posts += 1;
    }

    /// The threads that met in the closed call, if all of them came.
    fn team_met(&mut self) -> Option<Team> {
        let event = self.open?.number;
        let until = self.teams.partition_point(|(of, _)| *of <= event);
        let (of, team) = self.teams.drain(..until).next_back()?;
        (of == event).then_some(team)
    }

    /// The calls of this slab in which it met threads of its rank, each with the key and size of that meeting.
    /// `position` is that of its thread in the rank.
    pub fn meetings(&self, position: usize) -> impl Iterator<Item = (CallAt, (u64, u32))> {
        let columns = &self.columns;
        let signatures = self.thread.stream.location().definitions.signatures();
        columns.extended.iter().filter_map(move |(at, event)| {
            let (end, leave) = columns.begin(position, *at);
            let row = self.thread.rows.get(end.signature as usize);
            let row = row.filter(|row| row.among == Among::Meets)?;
            let size = signatures.get(end.signature as usize)?.parameter as u32;
            let meeting = (event.value.unwrap_or(0), size);
            Some((CallAt::new(end, leave, row), meeting))
        })
    }

    /// In the call with this number, it met the threads of a team.
    pub fn met(&mut self, event: u64, team: Team) {
        self.teams.push_back((event, team));
    }

    /// The closed call synchronised with others.
    pub(super) fn synchronise(&mut self, row: Option<&Row>, members: &Members, call: &Closed) {
        let is_init = row.is_some_and(|row| row.shape == Shape::Init);
        if is_init {
            self.spent.order += 2;
            self.synced.start(&self.spent);
        } else if row.is_some_and(|row| row.among == Among::Meets)
            && let Some(team) = self.team_met()
        {
            self.spent.order += 2;
            self.synced.team(team, &self.spent);
        }
        let of_group = row.filter(|row| row.has(flags::COLLECTIVE) && row.group != NONE);
        let meets = of_group.filter(|row| row.is_meeting());
        // Of many calls members may leave before others come, as of `MPI_Comm_free`, or without data. That somebody
        // waited says that they did not.
        let meets = meets.filter(|row| match self.folds {
            true => row.meets || self.met_group,
            false => comparable::is_met(row),
        });
        let meets = meets.map(|row| members.set(row.group));
        if self.partners.is_empty() && !is_init && !self.met_group && meets.is_none() {
            return;
        }
        self.spent.order += 2;
        let is_all = meets.is_some_and(|set| members.is_all(set));
        if is_init && !self.has_begun || is_all {
            let mut left = self.left;
            if is_init && !self.has_begun {
                left = left.min(self.begun);
            }
            if is_init {
                self.startup.get_or_insert(call.number);
            }
            self.has_begun = true;
            self.synced.all(&self.spent).begin_at(left, call);
        } else {
            for (at, met) in self.partners.iter().enumerate() {
                // Who waited for this one in the same call, too, is not ahead of it.
                let others = &self.partners[..if met.later > 0 { at } else { 0 }];
                let both = others.iter().filter(|other| other.partner == met.partner);
                let later = both.map(|other| other.later).fold(met.later, i64::min);
                let sums = self.synced.pair(met.partner, &self.spent, met.polled);
                // A wait counts as a whole: that before the first of them left, too, if it is less.
                let after = match self.folds {
                    true => call.until.saturating_sub(met.left).clamp(0, call.waited),
                    false => call.waited,
                };
                match met.is_sent && after > call.waited / 2 {
                    true => sums.begin_before_wait(met.left, after, call),
                    false => sums.begin_at(met.left, call),
                }
                if !self.folds && met.is_sent {
                    let since = call.leave.saturating_sub(met.left).max(0);
                    sums.owe(call.number, after.saturating_sub(since));
                }
                (sums.later, sums.team) = (later, met.team);
            }
            let met = of_group.filter(|_| self.met_group);
            let met = met.map(|row| members.set(row.group));
            if let Some(set) = meets.or(met) {
                let is_root = meets.is_none();
                let sums = self.synced.set((set, is_root), &self.spent);
                // A root may wait for some after others have what they came for.
                let after = call.until.saturating_sub(self.left);
                let after = after.clamp(0, call.waited);
                match is_root && self.folds && after > call.waited / 2 {
                    true => sums.begin_before_wait(self.left, after, call),
                    false => sums.begin_at(self.left, call),
                }
            }
        }
        self.partners.clear();
        self.met_group = false;
        self.left = i64::MAX;
    }
}
