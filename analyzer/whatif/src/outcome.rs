//! What a replay says about the run.

use std::cmp::Reverse;

use laggard_engine::events::Events;
use laggard_report::{RootCause, SourceLocation, percent, ratio, seconds};
use laggard_trace::calls::{self, Shape};
use serde::Serialize;

use crate::columns::UNCHANGED;
use crate::path::Activity;
use crate::reader::Site;
use crate::replay::{Replayed, WaitKey};
use crate::scenario::{Change, Scenario};

/// Name and version of the result's form.
pub const SCHEMA: &str = "laggard-what-if/1";
/// Waits, stretches and root causes that are listed for each scenario.
pub const LISTED: usize = 5;

/// The run as recorded, and with the changes of each scenario.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Prediction {
    /// [`SCHEMA`].
    pub schema: &'static str,
    /// The program.
    pub program: String,
    /// World ranks.
    pub ranks: u32,
    /// Nothing changed.
    pub recorded: Outcome,
    /// One for each scenario, in their order.
    pub scenarios: Vec<Outcome>,
    /// Enters and leaves that the replay without changes does not reproduce: 0.
    pub not_reproduced: u64,
    /// Calls that went on without what they depend on, since clocks make a circle of dependencies.
    pub circles: u64,
    /// Looking for what others were late with that stays as recorded: others depend on what lies in
    /// between, the late one is unknown, or it never came.
    pub looking_as_recorded_s: f64,
}

/// A run.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Outcome {
    /// The scenario's name.
    pub name: String,
    /// Its changes, as options.
    pub changes: Vec<String>,
    /// From the first call to the end of the last.
    pub time_s: f64,
    /// Less than as recorded.
    pub gain_s: f64,
    /// Of the time between start-up and shut-down, as all shares of a report.
    pub gain_percent: f64,
    /// Looking that stays as recorded, though what was looked for comes so much earlier. It may gain
    /// that much more.
    pub doubt_s: f64,
    /// Time in calls in which they waited for others, all locations.
    pub waiting_s: f64,
    /// Of the time between start-up and shut-down.
    pub efficiency: Efficiency,
    /// The rank that waits least: the others wait for it, in the end.
    pub least_waiting_rank: u32,
    /// The largest waits.
    pub waits: Vec<Wait>,
    /// What the critical path is longest in: from the end of the run back, on a rank until it
    /// waited, and on with the rank that it waited for.
    pub critical_path: Vec<Stretch>,
    /// Who starts the waiting then, the largest part first; absent if it was not searched.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub root_causes: Option<Vec<RootCause>>,
}

/// Time of the critical path on one rank, in a call or between two calls.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Stretch {
    /// The rank.
    pub rank: u32,
    /// `call`, or `computation` between two, whatever the rank does there.
    pub activity: &'static str,
    /// The call, or the one that ends the computation.
    pub operation: String,
    /// Where it is.
    pub location: SourceLocation,
    /// The call before the computation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<After>,
    /// Time on the path.
    pub time_s: f64,
    /// Whether it is a call that starts up or shuts down.
    #[serde(skip)]
    pub is_apart: bool,
}

/// A call.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct After {
    /// What.
    pub operation: String,
    /// Where.
    pub location: SourceLocation,
}

/// Efficiencies, 0..=1 (POP).
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Efficiency {
    /// `load_balance * communication`.
    pub parallel: f64,
    /// Mean over maximum of the ranks' computation.
    pub load_balance: f64,
    /// `serialization * transfer`: largest computation over time.
    pub communication: f64,
    /// Largest computation over time on an ideal network.
    pub serialization: f64,
    /// Time on an ideal network over time.
    pub transfer: f64,
}

/// Waiting of calls at one place for one call of one rank.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Wait {
    /// The waiting call.
    pub operation: String,
    /// Where it is.
    pub location: SourceLocation,
    /// The late rank.
    pub late_rank: u32,
    /// Its call.
    pub late_operation: String,
    /// Where that is.
    pub late_location: SourceLocation,
    /// All ranks.
    pub severity_s: f64,
}

/// What a replay says.
pub fn prediction(events: &Events, scenarios: &[Scenario], replayed: &Replayed) -> Prediction {
    let recorded = outcome(events, replayed, UNCHANGED);
    let measured = time(measured(
        replayed,
        &main_threads(events, replayed),
        UNCHANGED,
    ));
    let all = scenarios.iter().enumerate().map(|(at, scenario)| {
        let found = outcome(events, replayed, replayed.columns.of(at));
        let gain = recorded.time_s - found.time_s;
        Outcome {
            name: scenario.name.clone(),
            changes: scenario.changes.iter().map(Change::text).collect(),
            gain_s: gain,
            gain_percent: percent(gain, measured),
            doubt_s: time(replayed.doubt[replayed.columns.of(at)]),
            ..found
        }
    });
    Prediction {
        schema: SCHEMA,
        program: events.program().first().cloned().unwrap_or_default(),
        ranks: events.ranks(),
        scenarios: all.collect(),
        recorded: Outcome {
            name: "recorded".to_owned(),
            ..recorded
        },
        not_reproduced: replayed.wrong,
        circles: replayed.given_way,
        looking_as_recorded_s: time(replayed.stuck),
    }
}

fn outcome(events: &Events, replayed: &Replayed, column: usize) -> Outcome {
    let lanes = &replayed.lanes;
    let begin = (0..lanes.len()).map(|at| events.place(at).first_ns).min();
    let last = lanes.iter().map(|lane| lane.last[column]).max();
    let waited = lanes.iter().map(|lane| lane.waited[column]);
    let main = main_threads(events, replayed);
    let least = main.iter().min_by_key(|&&at| lanes[at].waited[column]);
    let mut waits: Vec<(&WaitKey, i64)> = replayed
        .waits
        .iter()
        .map(|(key, sums)| (key, sums[column]))
        .filter(|(_, sum)| *sum > 0)
        .collect();
    waits.sort_unstable_by_key(|&(key, sum)| (Reverse(sum), *key));
    waits.truncate(LISTED);
    Outcome {
        time_s: time(last.unwrap_or(0) - begin.unwrap_or(0)),
        waiting_s: time(waited.sum()),
        efficiency: efficiency(replayed, &main, column),
        least_waiting_rank: least.map_or(0, |&at| events.place(at).rank),
        waits: waits
            .into_iter()
            .map(|(key, sum)| wait(events, key, sum))
            .collect(),
        critical_path: critical_path(events, replayed, column),
        ..Outcome::default()
    }
}

/// The first threads of the ranks.
fn main_threads(events: &Events, replayed: &Replayed) -> Vec<usize> {
    let all = 0..replayed.lanes.len();
    all.filter(|&at| events.place(at).thread == 0).collect()
}

/// Time between start-up and shut-down, ns.
fn measured(replayed: &Replayed, main: &[usize], column: usize) -> i64 {
    let lanes = || main.iter().map(|&at| &replayed.lanes[at]);
    let end = lanes().map(|lane| lane.end[column]).max();
    let begin = lanes().map(|lane| lane.begin[column]).min();
    end.unwrap_or(0) - begin.unwrap_or(0)
}

fn efficiency(replayed: &Replayed, main: &[usize], column: usize) -> Efficiency {
    let wall = |column: usize| measured(replayed, main, column) as f64;
    let computed = || main.iter().map(|&at| replayed.lanes[at].computed[column]);
    let most = computed().max().unwrap_or(0) as f64;
    let mean = computed().sum::<i64>() as f64 / main.len().max(1) as f64;
    let Some(ideal) = replayed.columns.ideal(column) else {
        return Efficiency::default();
    };
    let (time, ideal) = (wall(column), wall(ideal));
    let (load_balance, communication) = (ratio(mean, most), ratio(most, time));
    Efficiency {
        parallel: ratio(load_balance * communication, 1.0),
        load_balance,
        communication,
        serialization: ratio(most, ideal),
        transfer: ratio(ideal, time),
    }
}

/// The longest activities of the critical path.
fn critical_path(events: &Events, replayed: &Replayed, column: usize) -> Vec<Stretch> {
    let Some(along) = &replayed.along else {
        return Vec::new();
    };
    let mut found = along.sums(column);
    found.sort_unstable_by_key(|&(activity, sum)| (Reverse(sum), activity));
    found.truncate(LISTED);
    let call = |site: &Site| After {
        operation: calls::name(site.0).to_owned(),
        location: events.call_paths[site.1 as usize].place.clone(),
    };
    let stretch = |((location, before, site), sum): (Activity, i64)| {
        let After {
            operation,
            location: place,
        } = call(&site);
        Stretch {
            rank: events.place(location as usize).rank,
            activity: before.map_or("call", |_| "computation"),
            operation,
            location: place,
            after: before.as_ref().map(call),
            time_s: time(sum),
            is_apart: before.is_none() && is_apart(site.0),
        }
    };
    found.into_iter().map(stretch).collect()
}

fn is_apart(operation: u16) -> bool {
    let shape = calls::call(operation).map(|call| call.shape);
    shape.is_some_and(Shape::is_apart)
}

fn wait(events: &Events, (waiting, (late, site)): &WaitKey, sum: i64) -> Wait {
    let operation = |site: &Site| calls::name(site.0).to_owned();
    let location = |site: &Site| events.call_paths[site.1 as usize].place.clone();
    Wait {
        operation: operation(waiting),
        location: location(waiting),
        late_rank: events.place(*late as usize).rank,
        late_operation: operation(site),
        late_location: location(site),
        severity_s: time(sum),
    }
}

fn time(ns: i64) -> f64 {
    seconds(ns)
}
