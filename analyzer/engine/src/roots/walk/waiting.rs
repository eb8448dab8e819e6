//! What a location did before a call that waited, or for which others waited, since it last met them.

use std::sync::LazyLock;

use laggard_patterns::PatternId;
use laggard_trace::calls::Shape;
use laggard_trace::flags;

use super::{Alone, Late, Met, Times, Waited, Walker};
use crate::basics::ends::NONE;
use crate::roots::activities::{Activity, Kind};
use crate::roots::members::Members;
use crate::roots::synced::{Few, Partner, Polled};
use crate::stream::rows::Row;
use crate::wire::links::{Blame, Link};

/// Late locations whose waits are told apart; more would take memory for each of their partners.
const TOLD_APART: usize = 64;

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
                let left = match self.folds || !row.is_some_and(|row| row.shape.is_rooted()) {
                    true => late.left,
                    false => i64::MAX,
                };
                // In some collectives, too, nobody waits for what this one waits for after it came.
                let is_met = late.is_met && !row.is_some_and(|row| is_one_by_one(row, self.folds));
                let partner = self.partner(late.rank, late.thread);
                let number = self.synced.number(partner);
                let polled = (late.looked > 0).then(|| Polled {
                    began: enter.saturating_sub(late.looked),
                    came: enter,
                    beside: late.beside,
                });
                self.partners.push(Met {
                    partner: number,
                    left,
                    later: 0,
                    is_sent: !is_met,
                    team: None,
                    polled,
                });
                if late.is_met {
                    self.left = self.left.min(late.left);
                }
                self.synced.with((partner, number), polled, members)
            }
            group => {
                self.left = self.left.min(late.left);
                self.met_group = true;
                self.synced.with_set(members.set(group), members).0
            }
        };
        let blame = Blame {
            order: self.spent.order,
            share: late.share,
            since: since.order,
            waited: self.spent.waited - since.waited,
            who: late.who,
            victim: late.victim,
            lane: late.lane,
            latency: signature,
            count: 0,
            alike: 0,
            sources: index,
            waits: 1,
        };
        let first = self.times.len();
        let times = &mut self.times;
        times.extend(self.spent.since(since).iter().rev());
        // In the order in which they ended, which is mostly that of the changes.
        let (own, ended) = (&mut times[first..], |&(at, _): &(u32, i64)| {
            (self.spent.ended(at), at)
        });
        if !own.is_sorted_by_key(ended) {
            own.sort_unstable_by_key(ended);
        }
        let times = times_from(first, &self.times);
        let first = self.alone.len() as u32;
        if late.group != NONE {
            let set = members.set(late.group);
            for (few, rank, sums) in self.synced.by_few(since, set, members) {
                let Some(met) = met_by(few, rank, members) else {
                    continue;
                };
                let first = self.times.len();
                self.spent.between(since, sums, &mut self.times);
                self.alone.push(Alone {
                    met,
                    number: NONE,
                    wholes: self.activities.wholes(&self.times[first..]),
                    times: times_from(first, &self.times),
                });
            }
        }
        self.blames
            .push((blame, enter, times, first..self.alone.len() as u32));
    }

    /// The open call waited.
    pub(super) fn wait(&mut self, index: u32, (link, leave): (&Link, i64), members: &Members) {
        let Some(open) = &mut self.open else {
            return;
        };
        if !link.is_polled() {
            if (link.enter, link.leave) != (open.enter, open.leave) {
                self.waits.push(unknown(index));
                return;
            }
            open.waited = open.waited.saturating_add(link.share);
            open.until = open.until.max(link.time);
        }
        self.last.0 = self.last.0.max(link.time);
        self.is_ordered &= !self.moments.has_heirs_until(link.time);
        let order = self.spent.order + 1;
        let row = self.thread.rows.get(link.signature as usize);
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
        let is_met = link.left != i64::MAX;
        let completes_all = !is_met
            && (!self.completing.is_empty()
                || !self.started.is_empty()
                    && link.is_polled()
                    && !link.is_elsewhere()
                    && row.is_some_and(|row| !row.blocks));
        if is_met {
            self.left = self.left.min(link.left);
        } else if completes_all {
            self.all_there = self.all_there.max(leave);
        }
        let (mut few, mut transfer) = (None, 0);
        let partner = self.partner(link.late_rank, link.late_thread);
        let number = self.synced.number(partner);
        // Who waits for one that had come, in the same call, has done nothing since.
        let goes_on = link.pattern == PatternId::WaitForProgress as u16
            && self.partners.iter().any(|met| met.partner == number);
        let since = match row.and_then(team) {
            Some(group) if is_met && self.folds => {
                // Only the root of a rooted one meets all.
                let (meets_all, set) = (row.is_some_and(Row::is_meeting), members.set(group));
                self.met_group |= meets_all;
                if !meets_all {
                    self.partners.push(Met {
                        partner: number,
                        left: link.left,
                        later: 0,
                        is_sent: false,
                        team: Some(set),
                        polled: None,
                    });
                }
                let since;
                (since, few) = self.synced.in_team((partner, number), set, members);
                since
            }
            _ => {
                let from_own_leave = !self.folds
                    && (row.is_some_and(|row| row.shape.is_rooted())
                        || is_of_class(link.pattern, "late_receiver"));
                // In some collectives, a member holds up another one until it comes: others may be waited for after that,
                // in the same call.
                let is_passed = match is_met {
                    true => row.is_some_and(|row| is_one_by_one(row, self.folds)),
                    // Looks end with each of them.
                    false if link.is_polled() => false,
                    false => is_for_member(link.pattern, completes_all, self.folds),
                };
                let left = match is_met {
                    _ if is_passed => link.time,
                    true => link.left,
                    // Scalasca counts what the two did from their own leaves.
                    false if from_own_leave => i64::MAX,
                    false => leave,
                };
                let polled = link.is_polled().then(|| Polled {
                    began: link.since(),
                    came: link.time,
                    beside: link.beside != 0,
                });
                let since = self.synced.with((partner, number), polled, members);
                let mut later = 0;
                if let Some(open) = self.open.as_mut().filter(|_| is_sent(link) && self.folds) {
                    later = open.leave.saturating_sub(leave.max(link.enter));
                    let own = open.leave - open.begin - open.worked - open.waited;
                    later = later.clamp(0, own.max(0));
                    transfer = later.min(since.later).clamp(0, i64::from(u32::MAX));
                    open.transfer = transfer;
                }
                self.partners.push(Met {
                    partner: number,
                    left,
                    later,
                    is_sent: is_passed,
                    team: None,
                    polled,
                });
                since
            }
        };
        let first = self.times.len();
        let (times, activities) = (&mut self.times, &mut self.activities);
        // Who looks at several things in turn waits in all these looks: none of them is work before a wait.
        let looks = if link.beside != 0 {
            &activities.looks[..]
        } else {
            &[]
        };
        let spent = match goes_on {
            true => &[][..],
            false => self.spent.since(since),
        };
        let spent = spent.iter();
        match looks {
            [] => times.extend(spent),
            _ => times.extend(spent.filter(|(number, _)| !looks.contains(number))),
        }
        if let Some(met) = few.and_then(|few| met_by(few, self.name.0, members)) {
            times.push((activities.number(met), 1));
        }
        let wholes = activities.wholes(&times[first..]);
        let times = times_from(first, times);
        let alike = self.alike(link, transfer);
        self.waits.push(Waited {
            order,
            index,
            transfer: transfer as u32,
            is_known: true,
            times,
            wholes,
            alike,
        });
    }

    /// The activity of a wait and `transfer` after it, ns: others may have waited for the same one. `NONE`
    /// if that is not compared.
    fn alike(&mut self, link: &Link, transfer: i64) -> u32 {
        if !self.folds {
            return NONE;
        }
        let late = (link.late_rank, link.late_thread);
        let number = match self.told_apart.get(&late) {
            Some(&number) => number,
            None if self.told_apart.len() == TOLD_APART => return NONE,
            None => {
                let number = self.activities.number(Activity::waited(late));
                self.told_apart.insert(late, number);
                number
            }
        };
        let time = link.share.saturating_add(transfer);
        self.closed.alike.push((number, time));
        number
    }

    /// Who a thread of a rank is to this location.
    fn partner(&self, rank: u32, thread: u32) -> Partner {
        match rank == self.name.0 {
            true => Partner::Thread(thread),
            false => Partner::Rank(rank),
        }
    }

    /// The looks until now waited for the party of the first link, if it is one of looks: all that those
    /// beside it tell is no work before any of them. Returns the number of these links, at least one.
    pub(super) fn wait_looking(&mut self, links: &[Link]) -> usize {
        let moment = |link: &Link| (link.enter, link.time);
        let same = links
            .iter()
            .take_while(|link| link.is_polled() && moment(link) == moment(&links[0]));
        let mut count = 0;
        for link in same {
            self.look(link);
            count += 1;
        }
        count.max(1)
    }

    fn look(&mut self, link: &Link) {
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
        let off = self.looked_off.remove(&number).unwrap_or(0).min(rest);
        if off > 0 {
            let inside = activities.inside(self.thread, Kind::Preempted, link.signature);
            self.spent.take_back(inside, off);
        }
        self.spent.take_back(number, rest - off);
        let charged = link.share - inside;
        self.spent.waited = self.spent.waited.saturating_add(charged);
    }
}

/// What says that two met without others: of two by themselves, with the rank of the one that waits.
fn met_by(few: Few, rank: u32, members: &Members) -> Option<Activity> {
    match few {
        Few::Two => Some(Activity::met_alone(rank)),
        Few::Of(set, is_root) => Some(Activity::met_in(members.hash(set)?, is_root)),
    }
}

/// The group of a collective whose members wait for the same, so that their waits are folded.
pub fn team(row: &Row) -> Option<u32> {
    let is_alike = row.is_meeting() || row.shape == Shape::OneToAll;
    let is_team = row.has(flags::COLLECTIVE) && row.group != NONE && is_alike;
    is_team.then_some(row.group)
}

/// Whether members of a collective need not wait for each other's waits: one that is late has met another one when it
/// comes. Unless members are told apart (`folds`), only neighbours are.
fn is_one_by_one(row: &Row, folds: bool) -> bool {
    let is_shape = match row.shape {
        Shape::Neighbourhood => true,
        Shape::AllToOne | Shape::Prefix => folds,
        _ => false,
    };
    row.has(flags::COLLECTIVE) && is_shape
}

/// Whether a wait that is told of no meeting of all was for a member of a collective, until it came. If the call
/// `completes_all`, all have met in it. Unless members are told apart (`folds`), only one that is needed for nothing is passed.
fn is_for_member(pattern: u16, completes_all: bool, folds: bool) -> bool {
    static ONE_BY_ONE: LazyLock<[bool; 256]> = LazyLock::new(|| of_classes(&["n_to_one", "scan"]));
    static OF_NEIGHBOURS: LazyLock<[bool; 256]> = LazyLock::new(|| of_classes(&["nxn"]));
    let is_of = |classes: &[bool; 256]| classes.get(usize::from(pattern)) == Some(&true);
    let is_told_apart = || is_of(&ONE_BY_ONE) || !completes_all && is_of(&OF_NEIGHBOURS);
    pattern == PatternId::WaitForMember as u16 || folds && is_told_apart()
}

/// Whether a call waited for a message.
///
/// What it takes until the message is there is hidden if the sender is early: who is behind all along, and
/// waits for nothing of the receiver, makes this wait, too. The first wait, and each after the sender has
/// waited for the receiver, has a transfer that it would have in any case. So what the receiver leaves later
/// than the sender counts as waiting up to as much as it did when the two met last, in such a wait.
fn is_sent(link: &Link) -> bool {
    static LATE_SENDERS: LazyLock<[bool; 256]> = LazyLock::new(|| of_classes(&["late_sender"]));
    !link.is_polled() && LATE_SENDERS.get(usize::from(link.pattern)) == Some(&true)
}

/// By number of a pattern: whether it is of one of these classes.
fn of_classes(classes: &[&str]) -> [bool; 256] {
    let is_of = |number| classes.iter().any(|class| is_of_class(number, class));
    std::array::from_fn(|number| is_of(number as u16))
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

/// The times from a position on.
fn times_from(first: usize, times: &[(u32, i64)]) -> Times {
    first as u32..times.len() as u32
}
