//! Begin and end of a run.

use laggard_comm::Job;

use crate::input::open::Opened;
use crate::timeline::repair::Timeline;

/// Begins and ends of a run's parts, ns since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moments {
    /// End of the first location's start-up; 0 if none has one.
    pub started: i64,
    /// Enter of the last location into Finalize; `None` if none entered.
    pub stopped: Option<i64>,
}

impl Moments {
    /// The moments over all agents' locations. Collective.
    pub fn new(job: &dyn Job, opened: &Opened, timeline: &Timeline) -> Moments {
        // 0 is the least and means none. Minima are stored as their distance from `u64::MAX`.
        let mut extremes = [0u64; 2];
        for (bounds, (clock, _)) in opened.bounds.iter().zip(timeline.own(opened)) {
            let ns = |ticks: u64| clock.ns(ticks).max(0) as u64;
            let started = bounds.started.map_or(0, |ticks| !ns(ticks));
            let stopped = bounds.finalize.map_or(0, |f| ns(f.enter) + 1);
            extremes = [extremes[0].max(started), extremes[1].max(stopped)];
        }
        job.reduce_max(&mut extremes);
        let [started, stopped] = extremes;
        Moments {
            started: if started == 0 { 0 } else { !started as i64 },
            stopped: stopped.checked_sub(1).map(|ns| ns as i64),
        }
    }
}
