//! What scenarios change: computation between calls, what a call takes by itself, and which calls
//! depend on others.

use std::collections::BTreeMap;

use anyhow::{Result, bail};
use laggard_engine::events::Events;
use laggard_report::{Report, RootCause, SourceLocation, ratio};
use laggard_trace::calls::{self, Shape};
use rustc_hash::FxHashMap;

use crate::place::{Place, nearest_of};
use crate::reader::{Call, Reader, Site};
use crate::scenario::{Change, Scenario, Where};

/// The computation before a call. ns.
#[derive(Clone, Copy, Debug)]
pub struct Gap {
    pub location: usize,
    pub before: Option<Site>,
    pub after: Site,
    pub from: i64,
    pub to: i64,
}

/// The changes of one scenario.
#[derive(Default)]
struct Effect {
    /// Numbers of shares.
    shared: Vec<usize>,
    calls: Vec<LongCall>,
    faster: Vec<(Place, f64)>,
    /// By location; empty: nowhere.
    by_location: Vec<f64>,
    network: Option<f64>,
    without: Vec<Place>,
}

/// The changes of all scenarios.
#[derive(Default)]
pub struct Effects {
    effects: Vec<Effect>,
    shares: Vec<Share>,
}

impl Effects {
    /// # Errors
    /// A scenario names what is not in this run.
    pub fn new(
        events: &Events,
        report: Option<&Report>,
        scenarios: &[Scenario],
    ) -> Result<Effects> {
        let mut all = Effects::default();
        for scenario in scenarios {
            let mut effect = Effect::default();
            for change in &scenario.changes {
                all.add(&mut effect, change, events, report)?;
            }
            all.effects.push(effect);
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
                effect.faster.push((Place::find(events, name)?, *factor));
            }
            Change::SpeedUp(Where::Rank(rank), factor) => {
                if *rank >= events.ranks() {
                    bail!(
                        "there is no rank {rank}: this run has {} ranks",
                        events.ranks()
                    );
                }
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
                let members = vec![true; events.locations()];
                let what = What::Place(Place::find(events, name)?);
                effect.shared.push(self.shares.len());
                self.shares.push(Share::new(events, what, members, false));
            }
            Change::Network(factor) => {
                effect.network = Some(effect.network.unwrap_or(1.0) * factor);
            }
            Change::NoBarrier(name) => {
                let place = Place::find(events, name)?;
                let mut rows = (0..events.locations()).flat_map(|at| events.profile(at));
                if !rows.any(|row| is_barrier(row.call) && place.has_path(row.call_path)) {
                    bail!("there is no barrier at {name}");
                }
                effect.without.push(place);
            }
            Change::WithoutCause(number) => {
                let causes = report.and_then(|report| report.root_causes.as_deref());
                let causes = causes.unwrap_or_default();
                let Some(cause) = causes.get(number - 1) else {
                    bail!(
                        "there is no root cause rc{number}: the report has {}",
                        causes.len()
                    );
                };
                self.without_cause(effect, events, cause)?;
            }
        }
        Ok(())
    }

    /// A root cause is gone: on its ranks, its activity takes no longer than on others.
    fn without_cause(
        &mut self,
        effect: &mut Effect,
        events: &Events,
        root: &RootCause,
    ) -> Result<()> {
        let ranks = ranks(&root.rank_set);
        let is_member = |at| {
            ranks
                .iter()
                .any(|range| range.contains(&events.place(at).rank))
        };
        let members = (0..events.locations()).map(is_member).collect();
        let begin = Sites::new(events, &root.operation, &root.location);
        match (root.activity.as_str(), &root.until) {
            ("computation", Some(until)) => {
                let until = Sites::new(events, &until.operation, &until.location);
                let what = What::Between(begin, until);
                effect.shared.push(self.shares.len());
                self.shares.push(Share::new(events, what, members, true));
            }
            ("call" | "io", _) => effect.calls.push(LongCall::new(begin, members)),
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
    pub fn ahead<'e>(&self, events: &'e Events, location: usize) -> Vec<Ahead<'e>> {
        let shares = self.shares.iter();
        shares
            .map(|share| Ahead::new(events, location, share))
            .collect()
    }

    /// A location has left a call.
    pub fn left(&self, call: &Call, ahead: &mut [Ahead]) {
        if call.is_of_all {
            for (ahead, share) in ahead.iter_mut().zip(&self.shares) {
                ahead.go_on(share);
            }
        }
    }

    /// How long computation takes in a scenario, ns.
    pub fn gap(&self, scenario: usize, gap: &Gap, ahead: &[Ahead]) -> i64 {
        let effect = &self.effects[scenario];
        let length = gap.to - gap.from;
        let mut changed = length;
        for &at in &effect.shared {
            let part = self.shares[at].what.part(gap);
            changed += self.shares[at].changed(part, gap.location, &ahead[at]) - part;
        }
        changed = changed.max(0);
        for (place, factor) in &effect.faster {
            let part = place
                .part(gap.location, gap.after.1, gap.from, gap.to)
                .min(changed);
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
            if long.members[location] && long.call.has(Some(call.site)) {
                changed = changed.min(scaled(rest, long.parts[location]));
            }
        }
        match effect.network {
            Some(factor) => on_network(factor, call, changed),
            None => changed,
        }
    }

    /// Whether a call is a barrier that is not there in a scenario.
    pub fn is_gone(&self, scenario: usize, call: &Call) -> bool {
        let without = &self.effects[scenario].without;
        is_barrier(call.site.0) && without.iter().any(|place| place.has_path(call.site.1))
    }
}

/// What remains of a call if transfers take `factor` of their time, ns. A repeated call is left in
/// between; that time stays.
pub fn on_network(factor: f64, call: &Call, rest: i64) -> i64 {
    match call.communicates {
        true => {
            let inside = rest.min(call.inside);
            rest - inside + scaled(inside, factor)
        }
        false => rest,
    }
}

fn scaled(time: i64, factor: f64) -> i64 {
    (time as f64 * factor).round() as i64
}

fn is_barrier(call: u16) -> bool {
    let shape = calls::call(call).map(|call| call.shape);
    matches!(shape, Some(Shape::Barrier | Shape::PeBarrier))
}

impl Effect {
    fn speed_up(&mut self, events: &Events, factor: f64, is_there: impl Fn(usize) -> bool) {
        self.by_location.resize(events.locations(), 1.0);
        for (at, known) in self.by_location.iter_mut().enumerate() {
            if is_there(at) {
                *known *= factor;
            }
        }
    }
}

/// Computation that is compared between ranks.
enum What {
    /// In a place.
    Place(Place),
    /// After one call and before another.
    Between(Sites, Sites),
}

impl What {
    /// How much of the computation before a call it is, ns.
    fn part(&self, gap: &Gap) -> i64 {
        match self {
            What::Place(place) => place.part(gap.location, gap.after.1, gap.from, gap.to),
            What::Between(begin, until) if begin.has(gap.before) && until.has(Some(gap.after)) => {
                (gap.to - gap.from).max(0)
            }
            What::Between(..) => 0,
        }
    }
}

/// Computation that takes the mean of some ranks, between any two meetings of all ranks. First
/// threads only.
struct Share {
    what: What,
    /// By location: whether it takes the mean.
    members: Vec<bool>,
    /// Whether it never becomes longer.
    only_less: bool,
    /// By number of meetings before: computation of the ranks compared with, ns, and how many of
    /// them have any.
    epochs: Vec<(i64, i64)>,
}

impl Share {
    /// Members are compared with the others, if these have any such computation; else with each
    /// other; and if there is only one, with nobody.
    fn new(events: &Events, what: What, members: Vec<bool>, only_less: bool) -> Share {
        let mut share = Share {
            what,
            members,
            only_less,
            epochs: Vec::new(),
        };
        // By epoch: of members, and of others.
        let mut epochs: Vec<[(i64, i64); 2]> = Vec::new();
        let mut ranks = [0usize; 2];
        for location in 0..events.locations() {
            let other = usize::from(!share.members[location]);
            let mut ahead = Ahead::new(events, location, &share);
            let mut has_any = false;
            while ahead.is_main {
                if epochs.len() <= ahead.epoch {
                    epochs.resize(ahead.epoch + 1, Default::default());
                }
                let (sum, count) = &mut epochs[ahead.epoch][other];
                *sum = sum.saturating_add(ahead.own);
                *count += i64::from(ahead.own > 0);
                has_any |= ahead.own > 0;
                if ahead.is_over {
                    break;
                }
                ahead.go_on(&share);
            }
            ranks[other] += usize::from(has_any);
        }
        let [own, others] = ranks;
        let compared = usize::from(others > 0);
        if others > 0 || own > 1 || !only_less {
            share.epochs = epochs.into_iter().map(|of| of[compared]).collect();
        }
        share
    }

    /// How long a part of a location's computation takes, if its sum is the mean.
    fn changed(&self, part: i64, location: usize, ahead: &Ahead) -> i64 {
        if !self.members[location] || !ahead.is_main || ahead.own <= 0 {
            return part;
        }
        let (sum, ranks) = self.epochs.get(ahead.epoch).copied().unwrap_or_default();
        let all = i128::from(ahead.own) * i128::from(ranks.max(1));
        let changed = (i128::from(part) * i128::from(sum) / all) as i64;
        match self.only_less {
            true => changed.min(part),
            false => changed,
        }
    }
}

/// A location's computation until the next meeting of all, read ahead.
pub struct Ahead<'e> {
    reader: Reader<'e>,
    location: usize,
    is_main: bool,
    is_over: bool,
    /// Meetings before.
    epoch: usize,
    before: Option<(i64, Site)>,
    own: i64,
}

impl<'e> Ahead<'e> {
    fn new(events: &'e Events, location: usize, share: &Share) -> Ahead<'e> {
        let mut ahead = Ahead {
            reader: Reader::new(events, location),
            location,
            is_main: events.place(location).thread == 0,
            is_over: false,
            epoch: 0,
            before: None,
            own: 0,
        };
        if ahead.is_main {
            ahead.sum(share);
        }
        ahead
    }

    /// A meeting is over.
    fn go_on(&mut self, share: &Share) {
        if self.is_main {
            self.epoch += 1;
            self.sum(share);
        }
    }

    /// Adds up until the next meeting.
    fn sum(&mut self, share: &Share) {
        self.own = 0;
        loop {
            let Some(call) = self.reader.next() else {
                self.is_over = true;
                return;
            };
            if let Some((from, site)) = self.before {
                self.own += share.what.part(&Gap {
                    location: self.location,
                    before: Some(site),
                    after: call.site,
                    from,
                    to: call.enter,
                });
            }
            self.before = Some((call.leave, call.site));
            if call.is_of_all {
                return;
            }
        }
    }
}

/// What calls take by themselves as recorded, ns, by location and call.
pub type Rests = FxHashMap<(u32, Site), i64>;

/// Calls that take longer by themselves than on other ranks.
struct LongCall {
    call: Sites,
    /// By location: whether they take too long.
    members: Vec<bool>,
    /// By location: the part of their time that remains, once that is known.
    parts: Vec<f64>,
}

impl LongCall {
    fn new(call: Sites, members: Vec<bool>) -> LongCall {
        LongCall {
            call,
            parts: vec![1.0; members.len()],
            members,
        }
    }

    /// All that these calls take on a rank becomes the mean of the other ranks that have any; if
    /// none has, of all; and if that is one rank, 0. It never becomes more.
    fn learn(&mut self, events: &Events, rests: &Rests) {
        let rank = |location: usize| events.place(location).rank;
        // By rank: whether it is a member, and what its calls take.
        let mut sums: BTreeMap<u32, (bool, i64)> = BTreeMap::new();
        for (&(location, site), &rest) in rests {
            if self.call.has(Some(site)) && rest > 0 {
                let location = location as usize;
                let sum = sums.entry(rank(location)).or_default();
                *sum = (self.members[location], sum.1.saturating_add(rest));
            }
        }
        let has_others = sums.values().any(|(is_member, _)| !is_member);
        let counts = |is_member: bool| !is_member || !has_others && sums.len() > 1;
        let compared = sums.values().filter(|(is_member, _)| counts(*is_member));
        let (time, count) = compared.fold((0i64, 0), |(time, count), (_, more)| {
            (time.saturating_add(*more), count + 1)
        });
        let usual = ratio(time as f64, f64::from(count.max(1)));
        for (location, part) in self.parts.iter_mut().enumerate() {
            if self.members[location]
                && let Some((_, own)) = sums.get(&rank(location))
            {
                *part = ratio(usual, *own as f64).min(1.0);
            }
        }
    }
}

/// The calls of one name at one place of a report.
struct Sites {
    /// `None`: before the first call.
    call: Option<u16>,
    by_path: Vec<bool>,
}

impl Sites {
    fn new(events: &Events, operation: &str, location: &SourceLocation) -> Sites {
        let call = calls::CALLS.iter().find(|call| call.name == operation);
        let paths = events.call_paths.iter();
        let is_there = |place: &SourceLocation| {
            let of = |place: &SourceLocation| {
                (
                    place.file.clone(),
                    place.line,
                    place.function.clone(),
                    place.callpath.clone(),
                )
            };
            of(place) == of(location)
        };
        Sites {
            call: call.map(|call| call.number),
            by_path: paths.map(|path| is_there(&path.place)).collect(),
        }
    }

    fn has(&self, site: Option<Site>) -> bool {
        match site {
            Some((call, path)) => Some(call) == self.call && self.by_path[path as usize],
            None => self.call.is_none(),
        }
    }
}

/// The ranges of a set of ranks such as `0-3,8`.
fn ranks(set: &str) -> Vec<std::ops::RangeInclusive<u32>> {
    let ranges = set.split(',').filter_map(|range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        Some(first.parse().ok()?..=last.parse().ok()?)
    });
    ranges.collect()
}
