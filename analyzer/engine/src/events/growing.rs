//! A trace that is still written: each opening reads what is new since the one before.
//!
//! *Constraints.* As long as the same locations are there, matching goes on after the last call that was read.
//! Calls that others were faster than are taken late: what waits for them waits meanwhile. Clocks stay as
//! they were, until they are known much better. A trace that is opened as a whole afterwards tells exactly.

use std::path::Path;

use anyhow::Result;
use laggard_comm::Job;
use laggard_trace::Location;

use super::{Events, Sweep, sweep, timeline, trace, with_rounds};
use crate::clock::ClockKey;
use crate::input::open::Opened;
use crate::input::profile::SoFar;
use crate::replay::agent::PutAway;
use crate::timeline::repair::Timeline;

/// Clocks are compared anew once the end of the run differs by this part of it.
const DRIFT: i64 = 1000;

/// What this agent knows of a trace that grows.
#[derive(Default)]
pub struct Growing {
    known: Option<Known>,
}

struct Known {
    /// Rank, thread, process and bytes in use of each own location.
    locations: Vec<(u32, u32, u32, u64)>,
    clocks: Vec<ClockKey>,
    /// The agent of each world rank.
    held: Vec<u32>,
    timeline: Timeline,
    /// The end of the run when clocks were compared, ns.
    compared: i64,
    /// By location.
    profiles: Vec<SoFar>,
    /// Matching so far, and the moment until which calls were asked for, ns.
    swept: Option<(PutAway, i64)>,
}

impl Growing {
    /// Opens this agent's share of the trace. Collective.
    ///
    /// # Errors
    /// As [`Events::open_share`].
    pub fn open(&mut self, job: &dyn Job, directory: &Path) -> Result<Events> {
        let held = self.known.as_ref().map_or(&[][..], |known| &known.held);
        let (mut opened, anomalies) = trace::open_share_as(job, directory, held)?;
        let goes_on = [u64::from(!self.goes_on(&opened))];
        if all(job, goes_on) > 0 {
            self.known = None;
        }
        let mut known = self.known.take().unwrap_or_else(|| Known::new(&opened));
        for (location, profile) in opened.locations.iter_mut().zip(&mut known.profiles) {
            if location.end.is_none() {
                location.profile = profile.go_on(location);
            }
        }
        if known.compared == i64::MIN {
            known.timeline = timeline(job, &opened)?;
            known.compared = known.timeline.end(&opened);
        }
        known.locations = opened.locations.iter().map(place).collect();
        let timeline = known.timeline.clone();
        self.known = Some(known);
        Events::of(job, directory, (opened, anomalies), timeline)
    }

    /// Whether the last opening went on after the one before, so that what is known of each location so far
    /// still holds.
    pub fn has_gone_on(&self) -> bool {
        self.known
            .as_ref()
            .is_some_and(|known| known.swept.is_some())
    }

    /// Gives all that locations did with the next sweep, as after the first opening.
    pub fn begin_again(&mut self) {
        if let Some(known) = &mut self.known {
            known.swept = None;
        }
    }

    /// Begins with the next opening as with the first.
    pub fn forget(&mut self) {
        self.known = None;
    }

    /// Gives what each location did since the last time to what takes it, by location: all if the opening
    /// [has not gone on](Self::has_gone_on). Collective.
    ///
    /// # Errors
    /// As [`Events::sweep`].
    pub fn sweep<T: Sweep>(&mut self, job: &dyn Job, events: &Events, to: &mut [T]) -> Result<()> {
        let Some(known) = &mut self.known else {
            return events.sweep(job, to);
        };
        let swept = known.swept.take();
        let groups = swept.as_ref().map(|(known, _)| known.groups.ids());
        let groups = groups.unwrap_or_default();
        let swept = with_rounds(
            job,
            (&events.opened, &events.timeline),
            &groups,
            |rounds, groups| Ok(sweep::go_on(events, rounds, groups, swept, to)),
        )?;
        known.swept = Some(swept);
        Ok(())
    }

    /// Whether this agent can go on with what is there now.
    fn goes_on(&self, opened: &Opened) -> bool {
        let Some(known) = &self.known else {
            return false;
        };
        let is_same = |(location, before): (&Location, &(u32, u32, u32, u64))| {
            let now = place(location);
            (now.0, now.1, now.2) == (before.0, before.1, before.2) && now.3 >= before.3
        };
        let mut locations = opened.locations.iter().zip(&known.locations);
        if opened.locations.len() != known.locations.len() || !locations.all(is_same) {
            return false;
        }
        let clocks = opened.spans.iter().map(|(key, _)| key);
        if !clocks.eq(&known.clocks) || opened.agent_of != known.held {
            return false;
        }
        let end = known.timeline.end(opened);
        match known.timeline.has_several() {
            // Corrections are found in all of the run.
            true => end / 2 <= known.compared,
            false => {
                let measured = Timeline::new(opened).end(opened);
                (measured - end).abs() <= end.abs() / DRIFT
            }
        }
    }
}

impl Known {
    fn new(opened: &Opened) -> Known {
        Known {
            locations: Vec::new(),
            clocks: opened.spans.iter().map(|(key, _)| *key).collect(),
            held: opened.agent_of.clone(),
            timeline: Timeline::new(opened),
            compared: i64::MIN,
            profiles: opened.locations.iter().map(|_| SoFar::default()).collect(),
            swept: None,
        }
    }
}

fn place(location: &Location) -> (u32, u32, u32, u64) {
    let header = &location.header;
    (header.rank, header.thread, header.pid, location.used())
}

/// The largest of all agents' numbers. Collective.
fn all(job: &dyn Job, mut number: [u64; 1]) -> u64 {
    job.reduce_max(&mut number);
    number[0]
}
