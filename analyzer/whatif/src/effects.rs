//! What scenarios change: computation between calls, what a call takes by itself, and which calls
//! depend on others.

use anyhow::{Result, anyhow, bail};
use laggard_baselines::{Baseline, Table};
use laggard_engine::events::{Events, OUTSIDE};
use laggard_patterns::rules::Repair;
use laggard_report::{Report, RootCause};
use laggard_trace::calls;
use rustc_hash::FxHashMap;

use crate::GoesOn;
use crate::marks::{Gap, Marks, mark};
use crate::place::{Place, nearest_of};
use crate::reader::{Call, Reader, Site};
use crate::scenario::{Change, Scenario, Where};
use crate::shares::{Ahead, LongCall, Rests, Shares, Sites, Within, scaled};
use crate::targets::{
    Calls, first_threads, is_barrier, is_optional, locations_of, recorded, root_cause, stretch,
    threads_of,
};

/// The scenarios that change a call.
#[derive(Clone, Copy, Debug, Default)]
pub struct Changed {
    /// What it takes by itself.
    pub rest: Marks,
    /// It is not there.
    pub gone: Marks,
    /// It ends before the next call.
    pub deferred: Marks,
    /// It is combined with those before it.
    pub combined: Marks,
    /// It is not there, unless it is the first one.
    pub once: Marks,
    /// It waits for nobody.
    pub free: Marks,
}

/// Most time that all locations together may take in a scenario, ns: far from where numbers end.
const MOST_NS: f64 = (i64::MAX / 4) as f64;

/// The changes of one scenario.
#[derive(Default)]
struct Effect {
    /// What the root causes start that go, seconds.
    started_s: f64,
    /// Numbers of shares.
    shared: Vec<usize>,
    calls: Vec<LongCall>,
    faster: Vec<(Place, f64)>,
    /// By location; empty: nowhere.
    by_location: Vec<f64>,
    network: Option<f64>,
    bandwidth: Option<f64>,
    no_late_receivers: bool,
    table: Option<Table>,
    repairs: Vec<(Repair, Calls)>,
}

/// The changes of all scenarios.
#[derive(Default)]
pub struct Effects {
    effects: Vec<Effect>,
    shares: Shares,
    /// The fastest call of each kind, ns.
    fastest: FxHashMap<u16, i64>,
    /// Scenarios in which messages are combined.
    pub combining: Marks,
}

impl Effects {
    /// # Errors
    /// A scenario names what is not in this run, says something twice, or slows the run down beyond all numbers; and
    /// those of `goes_on`.
    pub fn new(
        events: &Events,
        report: Option<&Report>,
        scenarios: &[Scenario],
        goes_on: GoesOn,
    ) -> Result<Effects> {
        let mut all = Effects::default();
        for scenario in scenarios {
            let gone = scenario.changes.iter().filter_map(|change| match change {
                Change::WithoutCause(number, _) => root_cause(report, *number).ok(),
                _ => None,
            });
            let mut effect = Effect {
                started_s: gone.map(|cause| cause.severity_s).sum(),
                ..Effect::default()
            };
            for (at, change) in scenario.changes.iter().enumerate() {
                goes_on()?;
                let added = match scenario.changes[..at].contains(change) {
                    true => Err(anyhow!("{} is said twice", change.text())),
                    false => all.add(&mut effect, change, events, report),
                };
                added.map_err(|why| scenario.complaint(at, why))?;
            }
            let mut repairs = effect.repairs.iter();
            if repairs.any(|(repair, _)| *repair == Repair::Combine) {
                all.combining |= mark(all.effects.len());
            }
            let slowest = effect.slowest();
            // Times of all locations are added up, in ns.
            let longest = slowest * events.end_ns() as f64 * events.locations() as f64;
            if longest > MOST_NS {
                bail!(
                    "these changes make the run up to {slowest:.0} times as long: more than can be told"
                );
            }
            all.effects.push(effect);
        }
        for row in (0..events.locations()).flat_map(|at| events.profile(at)) {
            let fastest = all.fastest.entry(row.call).or_insert(i64::MAX);
            *fastest = (*fastest).min(row.minimum_ns as i64);
        }
        goes_on()?;
        if let Some(name) = all.shares.learn(events) {
            bail!(
                "what it gains to balance {name} cannot be told: no two ranks are seen to compute there"
            );
        }
        Ok(all)
    }

    fn add(
        &mut self,
        effect: &mut Effect,
        change: &Change,
        events: &Events,
        report: Option<&Report>,
    ) -> Result<()> {
        match change {
            Change::SpeedUp(Where::Place(name), factor) => {
                effect
                    .faster
                    .push((Place::computing(events, name)?, *factor));
            }
            Change::SpeedUp(Where::Rank(rank), factor) => {
                if *rank >= events.ranks() {
                    bail!(
                        "there is no rank {rank}: this run has {} ranks",
                        events.ranks()
                    );
                }
                recorded(events, &rank.to_string())?;
                effect.speed_up(events, *factor, |at| events.place(at).rank == *rank);
            }
            Change::SpeedUp(Where::Host(host), factor) => {
                let hosts = (0..events.locations()).map(|at| events.place(at).host.to_owned());
                let hosts: std::collections::BTreeSet<String> = hosts.collect();
                if !hosts.contains(host) {
                    let near = nearest_of(hosts, host).join(", ");
                    bail!("no host of this run is called {host}; there are {near}");
                }
                effect.speed_up(events, *factor, |at| events.place(at).host == host);
            }
            Change::Balance(name) => {
                let place = Place::computing(events, name)?;
                let share = self.shares.add_place(name, place, events.locations());
                effect.shared.push(share);
            }
            Change::Network(factor) => {
                if effect.network.replace(*factor).is_some() {
                    bail!("latency is said twice");
                }
            }
            Change::Bandwidth(factor) => {
                if effect.bandwidth.replace(*factor).is_some() {
                    bail!("bandwidth is said twice");
                }
            }
            Change::NoLateReceivers => effect.no_late_receivers = true,
            Change::Baseline(file) => {
                let table = Table::read(file)?;
                if !is_of(&table, events) {
                    let file = file.display();
                    bail!("{file}: no row of this table fits a call of this run");
                }
                effect.table = Some(table);
            }
            Change::Calls(repair, spot) => {
                let calls = Calls::of(events, spot, *repair)?;
                effect.repairs.push((*repair, calls));
            }
            Change::WithoutCause(number, part) => {
                let cause = root_cause(report, *number)?;
                self.without_cause(effect, events, (cause, *part))?;
            }
            Change::Shared(number, rank, set) => {
                let cause = root_cause(report, *number)?;
                let (begin, until) = stretch(events, cause)?;
                let member = locations_of(events, &rank.to_string());
                let all = locations_of(events, set);
                effect
                    .shared
                    .push(self.shares.add_shared(begin, until, member, all));
            }
        }
        Ok(())
    }

    /// A part of a root cause is gone. Without all of it, its activity takes no longer on its ranks than on others.
    fn without_cause(
        &mut self,
        effect: &mut Effect,
        events: &Events,
        (root, mended): (&RootCause, f64),
    ) -> Result<()> {
        let ranks = recorded(events, &root.rank_set)?;
        // If threads of their own ranks wait for them, they are compared with these.
        let threads = threads_of(events, root).or_else(|| first_threads(events, root));
        // By each second that a location comes earlier, another one waits less by a second or more.
        let are_threads = threads.is_some();
        let members = threads.as_ref().unwrap_or(&ranks).iter().enumerate();
        let members =
            members.filter(|(at, is_of)| **is_of && (are_threads || events.place(*at).thread == 0));
        let most = scaled(1_000_000_000, effect.started_s * members.count() as f64);
        let part = OUTSIDE.iter().position(|part| part.name() == root.activity);
        let is_between = part.is_some() && root.until.is_some();
        if is_between || root.activity == "computation" {
            let of_root = stretch(events, root)?;
            // Who mends what the first thread of a team does mends it for all of the team: they are compared
            // with all threads elsewhere.
            if threads.is_none() && of_root.0.begins_part() {
                let is_further = |at: usize| events.place(at).thread > 0;
                let by_location = || ranks.iter().copied().enumerate();
                let members = by_location().map(|(at, is_of)| is_of && is_further(at));
                let team = by_location().map(|(at, is_of)| !is_of || is_further(at));
                let (members, team) = (members.collect(), team.collect());
                let stretch = stretch(events, root)?;
                let within = Within::Run(team);
                let share = self.shares.add_of_threads(stretch, part, members, within);
                self.shares.mend(share, mended, i64::MAX);
                effect.shared.push(share);
            }
            let share = match threads {
                Some(members) => {
                    let within = Within::Ranks(ranks);
                    self.shares.add_of_threads(of_root, part, members, within)
                }
                None => self.shares.add_between(of_root, part, ranks),
            };
            self.shares.mend(share, mended, most);
            effect.shared.push(share);
            return Ok(());
        }
        match (root.activity.as_str(), part) {
            ("call" | "io", _) | (_, Some(_)) => {
                let call = Sites::new(events, &root.operation, &root.location);
                let within_ranks = threads.is_some();
                let members = threads.unwrap_or(ranks);
                let mut long = LongCall::new(call, part, members, within_ranks);
                (long.mended, long.most) = (mended, most);
                effect.calls.push(long);
            }
            _ => bail!("{} is of the network: use --network latency=0", root.id),
        }
        Ok(())
    }

    /// Whether a replay with nothing changed has to tell what calls take by themselves.
    pub fn needs_rests(&self) -> bool {
        self.effects.iter().any(|effect| !effect.calls.is_empty())
    }

    /// Takes what calls take by themselves.
    pub fn learn(&mut self, events: &Events, rests: &Rests) {
        let calls = self.effects.iter_mut().flat_map(|effect| &mut effect.calls);
        calls.for_each(|long| long.learn(events, rests));
    }

    /// Number of scenarios.
    pub fn count(&self) -> usize {
        self.effects.len()
    }

    /// What is known ahead at a location, for [`gap`](Self::gap).
    pub fn ahead<'e>(&self, events: &'e Events, location: usize) -> Ahead<'e> {
        self.shares.ahead(events, location)
    }

    /// A location has left a call.
    #[inline]
    pub fn left(&self, call: &Call, ahead: &mut Ahead) {
        if call.kind.is_of_all {
            ahead.go_on(&self.shares);
        }
    }

    /// The scenarios that may change computation of a location between two calls.
    pub fn of_gap(&self, location: usize, before: Option<Site>, after: Site) -> Marks {
        let changes = |effect: &&(usize, &Effect)| {
            let effect = effect.1;
            let mut faster = effect.faster.iter();
            let mut shared = effect.shared.iter();
            effect.by_location.get(location).is_some_and(|&f| f != 1.0)
                || faster.any(|(place, _)| place.may_be(before, after))
                || shared.any(|&at| self.shares.concerns(at, location, before, after))
        };
        let effects: Vec<_> = self.effects.iter().enumerate().collect();
        let found = effects.iter().filter(changes);
        found.fold(0, |marks, (at, _)| marks | mark(*at))
    }

    /// The scenarios that change a call of a location.
    pub fn of_call(&self, location: usize, call: &Call) -> Changed {
        let mut changed = Changed::default();
        for (at, effect) in self.effects.iter().enumerate() {
            let is_long =
                |long: &LongCall| long.members[location] && long.call.has(Some(call.kind.site));
            if effect.network.is_some()
                || effect.bandwidth.is_some()
                || effect.table.is_some()
                || effect.calls.iter().any(is_long)
            {
                changed.rest |= mark(at);
            }
            for (repair, calls) in &effect.repairs {
                let marks = match repair {
                    Repair::NonBlocking if call.kind.blocks => &mut changed.deferred,
                    Repair::Combine if call.kind.is_message => &mut changed.combined,
                    Repair::NoBarrier if is_barrier(call.kind.site.0) => &mut changed.gone,
                    Repair::Once if is_optional(call.kind.site.0) => &mut changed.once,
                    Repair::NoWaits if is_optional(call.kind.site.0) => &mut changed.free,
                    _ => continue,
                };
                if calls.has(call.kind.site) {
                    *marks |= mark(at);
                }
            }
        }
        changed
    }

    /// How long computation takes in a scenario, ns.
    pub fn gap(&self, scenario: usize, gap: &Gap, ahead: &Ahead) -> i64 {
        let effect = &self.effects[scenario];
        let mut changed = gap.to - gap.from;
        for &at in &effect.shared {
            changed += self.shares.change(at, gap, ahead);
        }
        changed = changed.max(0);
        for (place, factor) in &effect.faster {
            let part = place.part(gap).min(changed);
            changed += scaled(part, 1.0 / factor) - part;
        }
        match effect.by_location.get(gap.location) {
            Some(&factor) => scaled(changed, 1.0 / factor),
            None => changed,
        }
    }

    /// How long a call takes by itself in a scenario, ns, if recorded `rest`.
    pub fn rest(&self, scenario: usize, location: usize, call: &Call, rest: i64) -> i64 {
        let effect = &self.effects[scenario];
        let mut changed = rest;
        for long in &effect.calls {
            if long.members[location] && long.call.has(Some(call.kind.site)) {
                changed = changed.min(long.rest(location, call, rest));
            }
        }
        if let Some(table) = &effect.table
            && let Some(time) = measured(table, call)
        {
            changed = (time * 1e9).round() as i64;
        }
        if let Some(factor) = effect.bandwidth
            && call.kind.communicates
            && (call.bytes > 0 || call.kind.completes)
        {
            let fastest = self.fastest.get(&call.kind.site.0);
            let data = changed.min(call.inside) - fastest.copied().unwrap_or(0);
            changed += scaled(data.max(0), 1.0 / factor) - data.max(0);
        }
        match effect.network {
            Some(factor) => on_network(factor, call, changed),
            None => changed,
        }
    }

    /// Whether no sender waits for its receiver in a scenario.
    pub fn has_no_late_receivers(&self, scenario: usize) -> bool {
        self.effects[scenario].no_late_receivers
    }
}

/// How long a table says that a call takes by itself, s.
fn measured(table: &Table, call: &Call) -> Option<f64> {
    let counts = call.kind.communicates && !call.is_vain;
    let name = calls::name(call.kind.site.0);
    counts.then(|| table.lookup(name, call.bytes, call.kind.members))?
}

/// Whether a table says that of any call.
fn is_of(table: &Table, events: &Events) -> bool {
    (0..events.locations()).any(|location| {
        let mut reader = Reader::new(events, location);
        std::iter::from_fn(|| reader.next()).any(|call| measured(table, &call).is_some())
    })
}

/// What remains of a call if transfers take `factor` of their time, ns. A repeated call is left in
/// between; that time stays.
pub fn on_network(factor: f64, call: &Call, rest: i64) -> i64 {
    match call.kind.communicates {
        true => {
            let inside = rest.min(call.inside);
            rest - inside + scaled(inside, factor)
        }
        false => rest,
    }
}

/// The same on an ideal network, ns.
#[inline]
pub fn on_ideal_network(call: &Call, rest: i64) -> i64 {
    match call.kind.communicates {
        true => rest - rest.min(call.inside),
        false => rest,
    }
}

impl Effect {
    /// How many times as long it makes anything, at most.
    fn slowest(&self) -> f64 {
        let slower = |factor: &f64| 1.0 / factor;
        let places = self.faster.iter().map(|(_, factor)| slower(factor) - 1.0);
        let computing = 1.0 + places.map(|more| more.max(0.0)).sum::<f64>();
        let locations = self.by_location.iter().map(slower);
        let transfers = self.bandwidth.as_ref().map_or(1.0, slower);
        let transfers = transfers.max(1.0) * self.network.unwrap_or(1.0).max(1.0);
        locations.fold(1.0, f64::max) * computing.max(transfers)
    }

    fn speed_up(&mut self, events: &Events, factor: f64, is_there: impl Fn(usize) -> bool) {
        self.by_location.resize(events.locations(), 1.0);
        for (at, known) in self.by_location.iter_mut().enumerate() {
            if is_there(at) {
                *known *= factor;
            }
        }
    }
}
