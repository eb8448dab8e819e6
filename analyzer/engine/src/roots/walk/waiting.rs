//! What a location did before a call that waited, or for which others waited, since it last met them.

use laggard_patterns::PatternId;
use laggard_trace::calls::Shape;
use laggard_trace::flags;

use super::{Late, Times, Waited, Walker};
use crate::basics::ends::NONE;
use crate::roots::activities::{Activity, site};
use crate::roots::members::Members;
use crate::roots::synced::{Partner, Sums};
use crate::stream::rows::Row;
use crate::wire::links::{Blame, Link, Wholes};

impl Walker<'_> {
    /// The open call was late for another location.
    pub(super) fn blame(&mut self, (index, late): (u32, &Late), members: &Members) {
        let open = self.open.as_ref().filter(|open| open.number == late.event);
        let Some((signature, enter)) = open.map(|open| (open.signature, open.enter)) else {
            return;
        };
        self.is_ordered &= enter > self.last.0 && enter >= self.last.1;
        self.last.1 = self.last.1.max(enter);
        let since = match late.group {
            NONE => {
                let row = self.thread.rows.get(signature as usize);
                let left = match self.folds || !row.is_some_and(is_rooted) {
                    true => late.left,
                    false => i64::MAX,
                };
                let partner = self.partner(late.rank, late.thread);
                self.partners.push((partner, left));
                if late.is_met {
                    self.left = self.left.min(late.left);
                }
                self.synced.with(partner, members)
            }
            group => {
                self.left = self.left.min(late.left);
                self.met_group = true;
                self.synced.with_group(group)
            }
        };
        let blame = Blame {
            order: self.sums.order,
            share: late.share,
            since: since.order,
            waited: self.sums.waited - since.waited,
            ranks: late.ranks,
            victim: late.victim,
            lane: late.lane,
            latency: signature,
            count: 0,
            alike: 0,
            sources: index,
            waits: 1,
        };
        let times = difference(&self.sums, since, &mut self.times);
        // In the order in which they ended.
        let ended = |number: u32| self.ended.get(number as usize).copied().unwrap_or(0);
        self.times[times.start as usize..].sort_unstable_by_key(|&(at, _)| (ended(at), at));
        self.blames.push((blame, times));
    }

    /// The open call waited.
    pub(super) fn wait(&mut self, index: u32, (link, leave): (&Link, &i64), members: &Members) {
        let Some(open) = &mut self.open else {
            return;
        };
        if link.is_polled() {
            self.wait_looking(link);
        } else if (link.enter, link.leave) != (open.enter, open.leave) {
            self.waits.push(unknown(index));
            return;
        } else {
            open.waited = open.waited.saturating_add(link.share);
        }
        self.last.0 = self.last.0.max(link.time);
        let order = self.sums.order + 1;
        if link.late_rank == NONE {
            self.waits_alone = true;
            self.waits.push(Waited {
                order,
                index,
                is_known: true,
                alike: NONE,
                ..Waited::default()
            });
            return;
        }
        let row = self.thread.rows.get(link.signature as usize);
        let is_met = link.left != i64::MAX;
        if is_met {
            self.left = self.left.min(link.left);
        } else if !self.completing.is_empty()
            || !self.started.is_empty() && link.is_polled() && row.is_some_and(|row| !row.blocks)
        {
            self.all_there = self.all_there.max(*leave);
        }
        let since = match row.and_then(team) {
            // Only the root of a rooted one meets all.
            Some(group) if is_met && self.folds && row.is_some_and(Row::is_meeting) => {
                self.met_group = true;
                self.synced.with_group(group)
            }
            _ => {
                let from_own_leave = !self.folds
                    && (row.is_some_and(is_rooted) || is_of_class(link.pattern, "late_receiver"));
                let left = match is_met {
                    true => link.left,
                    // Scalasca counts what the two did from their own leaves.
                    false if from_own_leave => i64::MAX,
                    false => *leave,
                };
                let partner = self.partner(link.late_rank, link.late_thread);
                self.partners.push((partner, left));
                self.synced.with(partner, members)
            }
        };
        let times = difference(&self.sums, since, &mut self.times);
        let mut alike = NONE;
        if self.folds && row.is_some_and(waits_alike) {
            let call = site(self.thread, link.signature);
            let late = (link.late_rank, link.late_thread);
            alike = self.activities.number(Activity::waited(call, late));
            self.alike.push((alike, link.share));
        }
        let list = &self.activities.list;
        let own = &self.times[times.start as usize..];
        let mut wholes = Wholes::default();
        for (number, time) in own {
            if let Some(whole) = list[*number as usize].whole(self.folds) {
                wholes[whole] += time;
            }
        }
        self.waits.push(Waited {
            order,
            index,
            is_known: true,
            times,
            wholes,
            alike,
        });
    }

    /// Who a thread of a rank is to this location.
    fn partner(&self, rank: u32, thread: u32) -> Partner {
        match rank == self.name.0 {
            true => Partner::Thread(thread),
            false => Partner::Rank(rank),
        }
    }

    /// The looks until now waited.
    fn wait_looking(&mut self, link: &Link) {
        let Some(open) = &mut self.open else {
            return;
        };
        let activities = &mut self.activities;
        let number = activities.of_call(self.thread, link.signature).number;
        // What is charged to others who came later counts as waiting, too.
        let looking = link.share.saturating_add(link.beyond).max(0);
        let inside = match activities.of_call(self.thread, open.signature).number == number {
            true => (link.enter.min(open.leave) - open.begin).clamp(0, looking),
            false => 0,
        };
        open.waited = open.waited.saturating_add(inside);
        open.goes_on = link.goes_on != 0;
        // The rest was in earlier looks. Of one whose waiting went on, all is known to be that.
        let (until, more) = std::mem::replace(&mut self.looked_on, (link.time, 0));
        let known = if link.since() < until { more } else { 0 };
        let rest = looking - inside;
        let rest = rest - known.clamp(0, rest);
        if let Some(spent) = self.sums.spent.get_mut(number as usize) {
            *spent -= rest.min(*spent);
        }
        let charged = link.share - inside;
        self.sums.waited = self.sums.waited.saturating_add(charged);
    }
}

/// The group of a collective whose members wait for the same, so that their waits are folded.
pub fn team(row: &Row) -> Option<u32> {
    let is_alike = row.is_meeting() || row.shape == Shape::OneToAll;
    let is_team = row.has(flags::COLLECTIVE) && row.group != NONE && is_alike;
    is_team.then_some(row.group)
}

/// Whether others may have waited in the same call for the same late one, and do not meet by that.
fn waits_alike(row: &Row) -> bool {
    row.has(flags::COLLECTIVE) && matches!(row.shape, Shape::OneToAll | Shape::Prefix)
}

/// Whether a collective has a root.
fn is_rooted(row: &Row) -> bool {
    matches!(row.shape, Shape::OneToAll | Shape::AllToOne)
}

fn is_of_class(pattern: u16, class: &str) -> bool {
    let pattern = u8::try_from(pattern).ok().and_then(PatternId::from_number);
    pattern.is_some_and(|pattern| pattern.class() == class)
}

/// A wait of a call that was not found: nothing is known of it.
pub(super) fn unknown(index: u32) -> Waited {
    Waited {
        index,
        alike: NONE,
        ..Waited::default()
    }
}

/// Appends the time by activity between two moments.
#[inline]
fn difference(now: &Sums, since: &Sums, times: &mut Vec<(u32, i64)>) -> Times {
    let begin = times.len();
    times.resize(begin + now.spent.len(), (0, 0));
    let (room, mut count) = (&mut times[begin..], 0);
    let mut put = |number: usize, time: i64| {
        // Without a branch: whether an activity took time is hard to predict.
        room[count] = (number as u32, time);
        count += usize::from(time > 0);
    };
    let both = since.spent.len().min(now.spent.len());
    for (number, (now, earlier)) in now.spent[..both].iter().zip(&since.spent).enumerate() {
        put(number, now - earlier);
    }
    for (number, &now) in now.spent.iter().enumerate().skip(both) {
        put(number, now);
    }
    times.truncate(begin + count);
    begin as u32..times.len() as u32
}
