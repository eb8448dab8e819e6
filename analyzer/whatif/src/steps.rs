//! The steps of a replay: a call begins, and it ends.

use laggard_engine::events::NONE;
use laggard_trace::calls::Shape;

use crate::columns::{RECORDED, UNCHANGED};
use crate::effects::{Changed, on_ideal_network};
use crate::graph::Consumer;
use crate::lane::{Deferred, Lane};
use crate::marks::{Gap, Marks, mark};
use crate::path::Activity;
use crate::reader::Call;
use crate::replay::Sweep;

/// Computation before a combined message that is no more than the loop around it, with what
/// recording takes, ns.
const LOOP_NS: i64 = 1000;

/// Between looks in a row there may be one part in so many of their time.
const DISTURBED: i64 = 4;

impl Sweep<'_> {
    pub(crate) fn enter(&mut self, lane: &mut Lane, call: &Call) {
        let looked = call.looked.min(call.enter - lane.since).max(0);
        if (looked > 0 || call.is_vain) && lane.looked.is_empty() {
            lane.looked = vec![0; self.columns.count()];
        }
        let length = call.enter - lane.since - looked;
        let counts = lane.is_measured && length > 0;
        self.begins(lane);
        for now in &mut lane.now {
            *now += length + looked;
        }
        // Looks are still in a row if something disturbs them for a moment.
        lane.in_a_row.1 += length;
        if lane.in_a_row.1 > lane.in_a_row.0 / DISTURBED {
            lane.in_a_row = (0, 0);
        }
        if looked > 0 {
            lane.in_a_row.0 += looked;
            lane.vain += looked;
            lane.looked.iter_mut().for_each(|sum| *sum += looked);
        }
        if counts {
            lane.times
                .computed
                .iter_mut()
                .for_each(|sum| *sum += length);
        }
        // Nested calls overlap, and before the first one nothing computes but further threads.
        let before = lane
            .before
            .map(|before| (Some(before.kind.site), before.signature));
        let before = before.or(lane.born.map(|_| (None, NONE)));
        if length > 0
            && let Some((first, signature)) = before
        {
            let last = call.kind.site;
            let location = lane.location as usize;
            let pair = (signature, call.signature);
            let find = || self.effects.of_gap(location, first, last);
            let marks = lane.pairs.of(pair, find);
            if marks != 0 {
                let born = lane.born.filter(|_| first.is_none());
                let gap = Gap {
                    location,
                    before: first,
                    after: last,
                    from: born.map_or(lane.since, |born| {
                        born.clamp(lane.since, lane.since + length)
                    }),
                    to: lane.since + length,
                    beside: call.beside,
                };
                self.change(lane, &gap, marks, counts);
            }
        }
        if let Some(before) = lane.before {
            let activity = (lane.location, Some(before.kind.site), call.kind.site);
            self.note(lane, activity);
        }
        if self.effects.combining != 0 {
            self.combine(lane, call, length, counts);
        }
        // What was looked for is received as late as it would have been found.
        if lane.probed == 0 || !call.kind.receives {
            self.end_deferred(lane);
        }
        self.replayed.wrong += u64::from(lane.now[UNCHANGED] != call.enter);
        self.moves(lane, call.enter);
        if call.kind.shape == Shape::Finalize {
            lane.times.end.clone_from(&lane.now);
            lane.is_measured = false;
        }
        self.publish(lane, call, |provider| {
            !provider.is_by_time || provider.time <= call.enter
        });
        lane.has_entered = true;
    }

    /// Changes computation in the scenarios with these marks.
    fn change(&self, lane: &mut Lane, gap: &Gap, marks: Marks, counts: bool) {
        for scenario in self.columns.marked(marks) {
            let more = self.effects.gap(scenario, gap, &lane.ahead) - (gap.to - gap.from);
            for column in self.columns.range(scenario) {
                lane.now[column] += more;
                if counts {
                    lane.times.computed[column] += more;
                }
            }
        }
    }

    /// Ends a call, if what it depends on is there.
    pub(crate) fn leave(&mut self, lane: &mut Lane, call: &Call) -> bool {
        let mut needed = std::mem::take(&mut self.needed);
        lane.needed(call, &mut needed);
        let is_there = !needed.iter().any(|of| self.waits(lane, of.junction));
        if is_there {
            lane.gives_way = false;
            self.meet(lane, call, &needed);
        }
        self.needed = needed;
        is_there
    }

    /// Ends a call that depends on these junctions.
    fn meet(&mut self, lane: &mut Lane, call: &Call, needed: &[Consumer]) {
        let mut latest: Option<i64> = None;
        self.shift = 0;
        for consumer in needed {
            let Some(slot) = self.junctions.complete(consumer.junction) else {
                continue;
            };
            let (times, lates) = self.junctions.times(slot);
            let over = (times[RECORDED] - call.leave).max(0);
            if latest.is_none() {
                self.bound.fill(i64::MIN);
            }
            latest = latest.max(Some(times[RECORDED] - over));
            let known = self.bound.iter_mut().zip(&mut self.late);
            for (column, (bound, late)) in known.enumerate() {
                let time = times[column] - over;
                if time > *bound && !(consumer.is_late_receiver && self.never_late[column]) {
                    (*bound, *late) = (time, lates[column]);
                }
            }
            self.junctions.used(consumer.junction, slot);
        }
        let recorded = latest.map_or(call.enter, |latest| latest.max(call.enter));
        match (lane.lost(call), latest) {
            // It had come before the looks began: others before, if any, waited for something else.
            (Some((lost, since)), Some(latest))
                if latest < since.max(lane.began.min(call.enter)) =>
            {
                let looked = lane.looked.get(UNCHANGED).copied().unwrap_or(0);
                self.stay(lost.min(looked + std::mem::take(&mut lane.settled)));
            }
            (Some((lost, _)), Some(latest)) => {
                // The last look came so long after what it found.
                let late = recorded - latest;
                self.bound.iter_mut().for_each(|time| *time += late);
                self.shift = late;
                self.skip_looks(lane, lost, late);
            }
            (Some((lost, _)), None) => self.stay(lost),
            (None, _) => {}
        }
        self.end(lane, call, latest.is_some(), call.leave - recorded);
    }

    /// A look found something after looking in vain, `lost` ns of which were waiting: that is taken
    /// back, as far as nobody depends on it. What was looked for had come `late` ns before.
    fn skip_looks(&mut self, lane: &mut Lane, lost: i64, late: i64) {
        let Some(&looked) = lane.looked.get(UNCHANGED) else {
            return;
        };
        // Beside these, others looked for something else.
        let all = lost.max(lane.in_a_row.0 - late);
        let movable = match std::mem::take(&mut lane.settled) {
            0 => all,
            settled => {
                let movable = all.min((looked - late).max(0));
                let stays = (lost - movable).clamp(0, settled);
                self.replayed.stuck += stays;
                let since = |column: usize| lane.now[column].saturating_sub(self.bound[column]);
                for (column, doubt) in self.replayed.doubt.iter_mut().enumerate() {
                    // It would have come so much earlier, as this location sees it.
                    let earlier = since(column).saturating_sub(since(UNCHANGED));
                    *doubt += stays.min(earlier.max(0));
                }
                movable
            }
        };
        // The rest may have looked for something else.
        for (now, looked) in lane.now.iter_mut().zip(&mut lane.looked) {
            let part = movable.min(*looked);
            *now -= part;
            *looked -= part;
        }
    }

    /// Some looking, ns, stays as it was, whatever changes.
    pub(crate) fn stay(&mut self, looking: i64) {
        self.replayed.stuck += looking;
        let doubt = self.replayed.doubt.iter_mut();
        doubt.for_each(|doubt| *doubt += looking);
    }

    /// Ends a call that takes `rest` by itself, ns, after what it depends on, if it does.
    fn end(&mut self, lane: &mut Lane, call: &Call, depends: bool, rest: i64) {
        let known = self.known(lane, call);
        let mut changed = known.changed;
        if changed.once != 0 {
            match lane.once.contains(&known.site) {
                true => changed.gone |= changed.once,
                false => lane.once.push(known.site),
            }
        }
        if call.kind.receives {
            changed.deferred |= lane.probed;
        }
        lane.probed = match call.kind.probes {
            true => changed.deferred,
            false => 0,
        };
        let free = changed.deferred | changed.gone | changed.free;
        // Combined messages need what they did.
        changed.gone |= lane.repeated;
        let first = lane.deferred.len();
        for scenario in self.columns.marked(free) {
            for column in self.columns.range(scenario) {
                if changed.deferred & mark(scenario) != 0 {
                    lane.deferred.push(Deferred {
                        column,
                        bound: if depends {
                            self.bound[column]
                        } else {
                            i64::MIN
                        },
                        late: self.late[column],
                        site: known.site,
                        own: lane.now[column],
                    });
                }
                self.bound[column] = i64::MIN;
            }
        }
        if depends {
            self.bind(lane, known.site);
        }
        if call.finds {
            self.moves_looks(lane, call);
        }
        self.begins(lane);
        let ideal = on_ideal_network(call, rest);
        self.takes(&mut lane.now, (rest, ideal));
        if call.finds || !call.is_vain && (call.kind.completes || call.kind.receives) {
            lane.vain = 0;
        }
        if call.is_vain {
            lane.began = lane.began.min(call.enter);
        } else if !call.finds && (call.kind.completes || call.kind.blocks || call.kind.is_of_all) {
            lane.began = i64::MAX;
        }
        let is_looking = call.is_vain && call.inside >= call.leave - call.enter;
        match is_looking {
            true => lane.in_a_row.0 += rest,
            false => lane.in_a_row = (0, 0),
        }
        if call.is_vain {
            lane.vain += rest;
            self.takes(&mut lane.looked, (rest, ideal));
        }
        if lane.is_measured {
            // A repeated call is left in between.
            let computed = (call.leave - call.enter - call.inside).max(0);
            if computed > 0 {
                lane.times
                    .computed
                    .iter_mut()
                    .for_each(|sum| *sum += computed);
            }
        }
        if changed.rest | changed.gone != 0 {
            self.change_call(lane, call, changed, rest);
        }
        for deferred in &mut lane.deferred[first..] {
            let begin = std::mem::take(&mut deferred.own);
            deferred.own = std::mem::replace(&mut lane.now[deferred.column], begin) - begin;
        }
        if !call.is_vain {
            self.note(lane, (lane.location, None, call.kind.site));
        }
        lane.now[RECORDED] = call.leave;
        self.replayed.wrong += u64::from(lane.now[UNCHANGED] != call.leave);
        self.moves(lane, call.leave);
        if call.kind.shape == Shape::Init && lane.times.end.is_empty() && !lane.is_measured {
            lane.times.begin.clone_from(&lane.now);
            lane.is_measured = true;
        }
        self.publish(lane, call, |_| true);
        self.effects.left(call, &mut lane.ahead);
        (lane.before, lane.since, lane.has_entered) = (Some(*call), call.leave, false);
    }

    /// Adds `rest` to the times of columns, or what that is on an `ideal` network, ns.
    #[inline]
    fn takes(&self, times: &mut [i64], (rest, ideal): (i64, i64)) {
        times.iter_mut().for_each(|time| *time += rest);
        if ideal != rest {
            let times = times.iter_mut().zip(&self.ideal);
            let of_ideal = times.filter(|(_, is_ideal)| **is_ideal);
            of_ideal.for_each(|(time, _)| *time += ideal - rest);
        }
    }

    /// A location waits, by column, until the last of what its call needs is there.
    #[inline]
    fn bind(&mut self, lane: &mut Lane, site: u32) {
        let count = self.columns.count();
        for column in UNCHANGED..count {
            let (now, time) = (&mut lane.now[column], self.bound[column]);
            if let Some(looked) = lane.looked.get_mut(column) {
                *looked = (*looked).min(now.saturating_sub(time).max(0));
            }
            if time <= *now {
                continue;
            }
            lane.times.waited[column] += time - *now;
            if self.columns.is_whole {
                let key = (site, self.late[column]);
                self.waits.add(key, (column, count), time - *now);
                if let Some(jumps) = self.jumps.get_mut(column) {
                    let late = self.sites[self.late[column] as usize].0;
                    jumps.add(time - self.shift, lane.location, late);
                }
            }
            *now = time;
        }
    }

    /// A location begins to do something, which [`note`](Self::note) ends.
    #[inline]
    fn begins(&mut self, lane: &Lane) {
        if self.replayed.along.is_some() {
            self.from.copy_from_slice(&lane.now);
        }
    }

    /// What a location did until now lies on the critical path, or not.
    #[inline]
    fn note(&mut self, lane: &Lane, activity: Activity) {
        let Some(along) = &mut self.replayed.along else {
            return;
        };
        for (column, times) in self.from.iter().zip(&lane.now).enumerate().skip(UNCHANGED) {
            if !self.ideal[column] {
                along.add(column, activity, (*times.0, *times.1));
            }
        }
    }

    /// Waits for what was not waited for at once. The call before is made here, then: so whatever it
    /// needs comes before its end.
    pub(crate) fn end_deferred(&mut self, lane: &mut Lane) {
        if lane.deferred.is_empty() {
            return;
        }
        let begins = self.scenarios(lane);
        for deferred in lane.deferred.drain(..) {
            let (column, now) = (deferred.column, &mut lane.now[deferred.column]);
            let wait = deferred.bound.saturating_sub(*now).max(0);
            if wait > 0 {
                lane.times.waited[column] += wait;
                if self.columns.is_whole {
                    let key = (deferred.site, deferred.late);
                    self.waits.add(key, (column, self.columns.count()), wait);
                }
                if let Some(jumps) = self.jumps.get_mut(column) {
                    let late = self.sites[deferred.late as usize].0;
                    jumps.add(deferred.bound, lane.location, late);
                }
            }
            *now += wait + deferred.own;
        }
        self.moves_postponed(lane, begins);
    }

    /// Finds the scenarios in which a message is one with an earlier one to the same rank. What the
    /// loop around them takes goes, too.
    fn combine(&mut self, lane: &mut Lane, call: &Call, length: i64, counts: bool) {
        let combined = self.known(lane, call).changed.combined;
        lane.repeated = self.repeated(lane, call, combined);
        if lane.repeated == 0 || !(1..=LOOP_NS).contains(&length) {
            return;
        }
        for scenario in self.columns.marked(lane.repeated) {
            for column in self.columns.range(scenario) {
                lane.now[column] -= length;
                if counts {
                    lane.times.computed[column] -= length;
                }
            }
        }
    }

    /// The scenarios in which a message is one with an earlier one to the same rank.
    fn repeated(&self, lane: &mut Lane, call: &Call, combined: Marks) -> Marks {
        let mut repeated = 0;
        for scenario in self.columns.marked(self.effects.combining) {
            let known = lane.peers.iter().position(|(of, _)| *of == scenario);
            let at = known.unwrap_or_else(|| {
                lane.peers.push((scenario, Vec::new()));
                lane.peers.len() - 1
            });
            let peers = &mut lane.peers[at].1;
            if combined & mark(scenario) == 0 {
                peers.clear();
            } else if peers.contains(&call.peer) {
                repeated |= mark(scenario);
            } else {
                peers.push(call.peer);
            }
        }
        repeated
    }

    /// Changes what a call takes by itself, recorded `rest` ns, in the scenarios that do so.
    fn change_call(&self, lane: &mut Lane, call: &Call, changed: Changed, rest: i64) {
        let ideal = on_ideal_network(call, rest);
        for scenario in self.columns.marked(changed.rest | changed.gone) {
            let own = match changed.gone & mark(scenario) {
                0 => (self.effects).rest(scenario, lane.location as usize, call, rest),
                _ => 0,
            };
            for column in self.columns.range(scenario) {
                let more = match self.ideal[column] {
                    true => on_ideal_network(call, own) - ideal,
                    false => own - rest,
                };
                lane.now[column] += more;
                if call.is_vain {
                    lane.looked[column] += more;
                }
            }
        }
    }
}
