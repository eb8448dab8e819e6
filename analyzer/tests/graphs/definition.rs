//! The definitions of root causes and of the critical path, wait by wait.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::program::{At, Done, Key, Machine, Meet, Wait, With};

/// ns by activity.
pub type Times = BTreeMap<Key, i64>;

/// Whom somebody met.
#[derive(Clone, Copy)]
enum Whom {
    Rank(usize),
    Group(usize),
    /// A rank, in a wait of one of the two.
    Two(usize),
    /// The members of a group, or each of them their root.
    Few(usize, bool),
}

/// What a rank did since it met others.
struct Since {
    /// Its waits, too.
    times: Times,
    /// In which of its calls they met, with whom; and if that was by a broadcast, in which group.
    met: usize,
    with: With,
    broadcast: Option<usize>,
    /// The calls from then on whose waits count.
    after: std::ops::Range<usize>,
}

/// What a call did after its rank met others in it: that, ns, and whether all its waits came then.
fn later(machine: &Machine, met: &Done, meet: &Meet) -> (i64, bool) {
    let left = meet.left.unwrap_or(met.leave).min(met.leave);
    let later = (met.leave - left) as i64 - met.transfer();
    let came = |wait: &Wait| machine.done[wait.late.0][wait.late.1].enter;
    let until = met.waits.iter().map(came).max().unwrap_or(0);
    let waited = met.waited() + met.transfer();
    let after = (until as i64 - left as i64).clamp(0, waited);
    match meet.before_waits && after > waited / 2 {
        true => ((later - after).clamp(0, met.inside()), true),
        false => (later.clamp(0, met.inside()), false),
    }
}

/// Whether a group has all members of another one.
fn has_all(machine: &Machine, group: usize, of: usize) -> bool {
    let mut of = machine.groups[of].iter();
    of.all(|rank| machine.groups[group].contains(rank))
}

/// The last meeting of a rank with others before a call.
fn meeting(machine: &Machine, rank: usize, whom: Whom, until: usize) -> Option<Meet> {
    let calls = &machine.done[rank];
    let is_met = |meet: &Meet| match (meet.with, whom) {
        (With::All, Whom::Rank(_) | Whom::Group(_)) => true,
        (With::Rank(with), Whom::Rank(rank) | Whom::Two(rank)) => with == rank,
        (With::Group(with), Whom::Few(group, is_root)) => {
            let is_same = machine.groups[with] == machine.groups[group];
            is_same && meet.broadcast.is_some() == is_root
        }
        (With::Group(group), Whom::Rank(rank)) => machine.groups[group].contains(&rank),
        (With::Group(with), Whom::Group(group)) => has_all(machine, with, group),
        (With::Rank(_), Whom::Group(_) | Whom::Few(..)) => false,
        (With::Group(_), Whom::Two(_)) | (With::All, Whom::Two(_) | Whom::Few(..)) => false,
    };
    let meets = calls[..until].iter().flat_map(|call| &call.meets);
    let meets = meets.filter(|meet| is_met(meet));
    let last = meets.clone().max_by_key(|meet| {
        let which = match meet.with {
            With::Group(_) => 0,
            With::Rank(_) => 1,
            With::All => 2,
        };
        // Before waits for others is before who was there in the end.
        let is_before = later(machine, &calls[meet.at], meet).1;
        (meet.at, meet.left.is_none(), !is_before, which)
    });
    let last = last?;
    // Who waited for this one in the same call, too, is not ahead of it.
    let same = meets.filter(|meet| (meet.with, meet.at) == (last.with, last.at));
    Some(Meet {
        later: same.map(|meet| meet.later).min().unwrap_or(0),
        ..last.clone()
    })
}

/// What counts as waiting after the late ones had come: what a rank leaves later than the sender of a
/// message, up to as much as it did when the two met last, in such a wait.
pub fn count_transfers(machine: &mut Machine) {
    for rank in 0..machine.done.len() {
        for at in 0..machine.done[rank].len() {
            let [wait] = &machine.done[rank][at].waits[..] else {
                continue;
            };
            let late = wait.late.0;
            let meets = machine.done[rank].iter().flat_map(|call| &call.meets);
            let mut meets = meets.filter(|meet| meet.at == at && meet.with == With::Rank(late));
            let later = meets.clone().map(|meet| meet.later).max().unwrap_or(0);
            if meets.next().is_none() || later == 0 {
                continue;
            }
            let last = meeting(machine, rank, Whom::Rank(late), at);
            let before = last.map_or(0, |last| last.later);
            machine.done[rank][at].waits[0].transfer = later.min(before);
        }
    }
}

/// What a rank did from its last meeting with others until a call.
fn since(machine: &Machine, rank: usize, whom: Whom, until: usize) -> Option<Since> {
    let calls = &machine.done[rank];
    let last = meeting(machine, rank, whom, until)?;
    let mut times = Times::new();
    let met = &calls[last.at];
    let (later, waits_count) = later(machine, met, &last);
    *times.entry(("call", met.line, 0)).or_default() += later;
    let after = last.at + usize::from(!waits_count)..until;
    for (_, wait) in waits(machine, rank, after.clone()) {
        *times.entry(waited(wait)).or_default() += wait.share + wait.transfer;
    }
    for at in last.at + 1..=until {
        let (before, call) = (&calls[at - 1], &calls[at]);
        for (key, time) in call.gap(before) {
            *times.entry(key).or_default() += time;
        }
        if at < until {
            *times.entry(("call", call.line, 0)).or_default() += call.inside();
        }
    }
    times.retain(|_, time| *time > 0);
    Some(Since {
        times,
        met: last.at,
        with: last.with,
        broadcast: last.broadcast,
        after,
    })
}

fn met(since: Option<Since>) -> Since {
    since.expect("all meet in the start-up")
}

/// The activities before a call, in the order in which they ended last.
fn ended(calls: &[Done], until: usize) -> Vec<Key> {
    let mut order: Vec<Key> = Vec::new();
    // Of those that end at the same time, the one that was first.
    let mut known: Vec<Key> = Vec::new();
    let mut end = |mut keys: Vec<Key>| {
        for key in &keys {
            known.extend((!known.contains(key)).then_some(*key));
        }
        keys.sort_by_key(|key| known.iter().position(|known| known == key));
        for key in keys {
            order.retain(|other| *other != key);
            order.push(key);
        }
    };
    for at in 0..=until {
        if let Some(before) = at.checked_sub(1).map(|at| &calls[at]) {
            let gap = calls[at].gap(before).into_iter();
            end(gap
                .filter_map(|(key, time)| (time > 0).then_some(key))
                .collect());
        }
        if at < until {
            end(calls[at].waits.iter().map(waited).collect());
            end(vec![("call", calls[at].line, 0)]);
        }
    }
    order
}

/// Waits that are compared with the late one as one: by the late call, and the place of the waiting
/// calls.
type Team<'m> = Vec<(At, usize, &'m Wait)>;

fn teams(machine: &Machine) -> Vec<Team<'_>> {
    let mut teams: BTreeMap<_, Team<'_>> = BTreeMap::new();
    for (rank, calls) in machine.done.iter().enumerate() {
        for (at, call) in calls.iter().enumerate() {
            for (number, wait) in call.waits.iter().enumerate() {
                let alone = match call.team {
                    Some(_) => None,
                    None => Some((rank, at, number)),
                };
                let key = (wait.late, call.line, alone);
                teams
                    .entry(key)
                    .or_default()
                    .push(((rank, at), number, wait));
            }
        }
    }
    teams.into_values().collect()
}

/// Which activities are compared as one, by number; others are compared alone.
fn whole((kind, ..): &Key, as_whole: bool) -> Option<usize> {
    match *kind {
        "blocked" => Some(1),
        "preempted" => Some(2),
        "kernel" => Some(3),
        "waited" => None,
        kind => (as_whole || kind == "computation").then_some(0),
    }
}

/// Sums of what is compared as one.
fn wholes(times: &Times, as_whole: bool) -> [i64; 4] {
    let mut sums = [0; 4];
    for (key, time) in times {
        if let Some(whole) = whole(key, as_whole) {
            sums[whole] += time;
        }
    }
    sums
}

/// A wait of a rank, by its place; and how much of it counts, ns.
type Counted = ((At, usize), f64);

/// Waits of some calls of a rank.
fn waits(
    machine: &Machine,
    rank: usize,
    calls: std::ops::Range<usize>,
) -> impl Iterator<Item = ((At, usize), &Wait)> {
    let calls = calls.map(move |at| (at, &machine.done[rank][at]));
    calls.flat_map(move |(at, call)| {
        let waits = (0..).zip(&call.waits);
        waits.map(move |(number, wait)| (((rank, at), number), wait))
    })
}

/// A wait as an activity: others may have waited for the same one.
fn waited(wait: &Wait) -> Key {
    ("waited", 0, wait.late.0 as u32)
}

/// How much longer the late one of a team did something than the others, and how much of its waits
/// counts: what these waited for the same one does not.
fn excess(machine: &Machine, team: &Team<'_>, as_whole: bool) -> (Times, Vec<Counted>) {
    let &((first, at), _, wait) = &team[0];
    let (late, call) = wait.late;
    let group = machine.done[first][at].team;
    let of_late = group.map_or(Whom::Rank(first), Whom::Group);
    let (mut means, mut all) = (Times::new(), [0; 4]);
    let own = met(since(machine, late, of_late, call));
    let mut add = |times: &Times| {
        let sums = all.iter_mut().zip(wholes(times, as_whole));
        sums.for_each(|(all, own)| *all += own);
        for (key, time) in times {
            *means.entry(*key).or_default() += time;
        }
    };
    for &((rank, at), ..) in team {
        let last = met(since(machine, rank, Whom::Rank(late), at));
        let Some(group) = group else {
            add(&last.times);
            continue;
        };
        let all = met(since(machine, rank, Whom::Group(group), at));
        let is_later = last.met > all.met;
        let last = if is_later { last } else { all };
        add(&last.times);
        // The late one may have met not all of them then: what it did until then is the same for both.
        let whom = match (last.with, last.broadcast) {
            (With::Rank(_), Some(of)) => {
                (!has_all(machine, of, group)).then_some(Whom::Few(of, true))
            }
            (With::Group(of), None) => is_later.then_some(Whom::Few(of, false)),
            (With::Rank(_), None) | (With::Group(_), Some(_)) => Some(Whom::Two(rank)),
            (With::All, _) => None,
        };
        let later = whom.and_then(|whom| since(machine, late, whom, call));
        if let Some(later) = later.filter(|later| later.met > own.met) {
            let mut before = own.times.clone();
            for (key, time) in &mut before {
                *time -= later.times.get(key).copied().unwrap_or(0);
            }
            before.retain(|_, time| *time > 0);
            add(&before);
        }
    }
    let count = team.len() as i64;
    means.values_mut().for_each(|time| *time /= count);
    let mut excess = own.times.clone();
    for (key, time) in &mut excess {
        if as_whole || key.0 != "waited" {
            *time = (*time - means.get(key).copied().unwrap_or(0)).max(0);
        }
    }
    // What the others did elsewhere is set against what ended first.
    let mut elsewhere = wholes(&excess, as_whole);
    let sums = wholes(&own.times, as_whole).into_iter().zip(all);
    for (elsewhere, (own, all)) in elsewhere.iter_mut().zip(sums) {
        *elsewhere -= (own - all / count).clamp(0, *elsewhere);
    }
    for key in ended(&machine.done[late], call) {
        if let (Some(time), Some(whole)) = (excess.get_mut(&key), whole(&key, as_whole)) {
            let set = elsewhere[whole].min(*time);
            *time -= set;
            elsewhere[whole] -= set;
        }
    }
    let counted = waits(machine, late, own.after.clone()).map(|(of, wait)| {
        let key = waited(wait);
        let part = excess[&key] as f64 / own.times[&key] as f64;
        (of, part * (wait.share + wait.transfer) as f64)
    });
    let counted = counted.collect();
    excess.retain(|key, _| key.0 != "waited");
    (excess, counted)
}

/// Waits of a class, ns.
#[derive(Clone, Copy, Debug, Default)]
pub struct Class {
    pub direct: f64,
    pub indirect: f64,
    pub propagating: f64,
    pub short: f64,
    pub long: f64,
}

/// What root causes cost, ns.
#[derive(Default)]
pub struct Costs {
    /// Direct and indirect ones, by activity and rank.
    pub of: BTreeMap<(Key, usize), (f64, f64)>,
    pub classes: BTreeMap<&'static str, Class>,
}

/// Costs of waits that others made, by the class of those.
type Put = BTreeMap<&'static str, f64>;

impl Costs {
    /// The definition, wait by wait.
    pub fn new(machine: &Machine, as_whole: bool) -> Costs {
        let mut teams = teams(machine);
        // The late call of a wait lies before the waits of its rank that are put on it.
        teams.sort_by_key(|team| {
            let (rank, call) = team[0].2.late;
            Reverse(machine.done[rank][call].enter)
        });
        let mut put: BTreeMap<(At, usize), (Put, f64)> = BTreeMap::new();
        let mut costs = Costs::default();
        for team in teams {
            costs.charge(machine, &team, as_whole, &mut put);
        }
        for (((rank, at), number), (_, most)) in put {
            let wait = &machine.done[rank][at].waits[number];
            let class = costs.classes.entry(wait.class).or_default();
            class.propagating += most * wait.share as f64;
        }
        costs
            .of
            .retain(|_, (direct, indirect)| *direct + *indirect > 0.0);
        costs
    }

    /// Charges the late one of a team. `put` has what is put on a wait, and the most that a ns of it
    /// costs because of one other.
    fn charge(
        &mut self,
        machine: &Machine,
        team: &Team<'_>,
        as_whole: bool,
        put: &mut BTreeMap<(At, usize), (Put, f64)>,
    ) {
        let ((rank, at), _, wait) = team[0];
        let (late, call) = wait.late;
        let (excess, its_waits) = excess(machine, team, as_whole);
        let more = excess.values().sum::<i64>() as f64;
        let whole = more + its_waits.iter().map(|(_, time)| time).sum::<f64>();
        let waited = team.iter().map(|(.., wait)| wait.share).sum::<i64>() as f64;
        let mut carried = Put::new();
        for (at, number, _) in team {
            let of_wait = put.get(&(*at, *number)).into_iter();
            for (class, amount) in of_wait.flat_map(|(put, _)| put) {
                *carried.entry(class).or_default() += amount;
            }
        }
        let all_carried: f64 = carried.values().sum();
        let latency = (
            "latency",
            machine.done[late][call].line,
            machine.done[rank][at].line,
        );
        let latency = self.of.entry((latency, late)).or_default();
        let direct = waited.min(whole * team.len() as f64);
        latency.0 += waited - direct;
        let of_more = if whole == 0.0 { 1.0 } else { more / whole };
        if whole == 0.0 {
            latency.1 += all_carried;
        }
        let class = self.classes.entry(wait.class).or_default();
        class.direct += waited - direct + direct * of_more;
        class.indirect += direct * (1.0 - of_more);
        class.short += direct * of_more;
        for (class, amount) in &carried {
            self.classes.entry(class).or_default().long += amount * of_more;
        }
        for (key, time) in excess.into_iter().filter(|_| whole > 0.0) {
            let cost = self.of.entry((key, late)).or_default();
            cost.0 += direct * time as f64 / whole;
            cost.1 += all_carried * time as f64 / whole;
        }
        *carried.entry(wait.class).or_default() += direct;
        for (its, time) in its_waits.into_iter().filter(|(_, time)| *time > 0.0) {
            let (of_wait, most) = put.entry(its).or_default();
            for (class, amount) in &carried {
                *of_wait.entry(class).or_default() += amount * time / whole;
            }
            // Alone, the last one is charged as Scalasca does: waits propagate in messages.
            if as_whole || ["late_sender", "late_receiver"].contains(&wait.class) {
                let ((rank, at), number) = its;
                let wait = &machine.done[rank][at].waits[number];
                let all = (wait.share + wait.transfer) as f64;
                *most = most.max(time / all * direct / whole / team.len() as f64);
            }
        }
    }
}

/// The critical path: ns by activity, and by rank without start-up.
pub fn path(machine: &Machine) -> (Times, BTreeMap<usize, i64>) {
    let done = &machine.done;
    let ends = done.iter().map(|calls| calls.last().expect("a call").enter);
    let last = ends.enumerate();
    let last = last.max_by_key(|(rank, end)| (*end, Reverse(*rank)));
    let (mut rank, mut until) = last.expect("a rank");
    let (mut times, mut ranks) = (Times::new(), BTreeMap::new());
    loop {
        let calls = &done[rank];
        let wait = calls.iter().rev().find_map(|call| {
            let before = call.waits.iter().filter(|_| call.enter < until);
            let late = before.map(|wait| (wait.late.0, done[wait.late.0][wait.late.1].enter));
            late.max_by_key(|(_, time)| *time)
        });
        let (next, from) = wait.unwrap_or((rank, 0));
        let mut add = |key: Key, begin: u64, end: u64, counts: bool| {
            let (begin, end) = (begin.max(from), end.min(until));
            if begin < end {
                *times.entry(key).or_default() += (end - begin) as i64;
                let counted = if counts { end - begin } else { 0 };
                *ranks.entry(rank).or_default() += counted as i64;
            }
        };
        for (at, call) in calls.iter().enumerate() {
            add(("call", call.line, 0), call.enter, call.leave, at > 0);
            if let Some(before) = at.checked_sub(1).map(|at| &calls[at]) {
                let mut begin = before.leave;
                for (key, time) in call.gap(before) {
                    add(key, begin, begin + time as u64, true);
                    begin += time as u64;
                }
            }
        }
        if wait.is_none() {
            return (times, ranks);
        }
        (rank, until) = (next, from);
    }
}

/// ns of all ranks in activities of the path, at most as long each as on the path. Computation may
/// be told apart by call paths: then all of it outside of functions is one.
pub fn on_path(machine: &Machine, path: &Times, by_call_path: bool) -> i64 {
    let compared = |key: Key| match (by_call_path, key.0) {
        (true, "computation") => (key.0, 0, 0),
        _ => key,
    };
    let mut along = Times::new();
    for (key, time) in path {
        *along.entry(compared(*key)).or_default() += time;
    }
    let own = machine.done.iter().map(|calls| {
        let mut times = Times::new();
        let mut add = |key, time| *times.entry(compared(key)).or_default() += time;
        for (at, call) in calls.iter().enumerate() {
            add(("call", call.line, 0), call.inside());
            if let Some(before) = at.checked_sub(1).map(|at| &calls[at]) {
                call.gap(before)
                    .into_iter()
                    .for_each(|(key, time)| add(key, time));
            }
        }
        let times = times.into_iter();
        let least = times.map(|(key, time)| time.min(along.get(&key).copied().unwrap_or(0)));
        least.sum::<i64>()
    });
    own.sum()
}
