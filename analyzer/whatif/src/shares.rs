//! Computation and calls of some ranks that are compared with those of others.

use std::collections::BTreeMap;

use laggard_engine::events::{Events, NONE, OUTSIDE};
use laggard_report::{SourceLocation, ratio};
use laggard_trace::calls::{self, number};
use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::marks::{Gap, Marks, Pairs, mark};
use crate::place::Place;
use crate::reader::{Call, Reader, Site};

/// Computation that is compared between ranks.
enum What {
    /// In a place.
    Place(Place),
    /// After one call and before another: what is computation, or the part with this number in
    /// [`OUTSIDE`](laggard_engine::events::OUTSIDE).
    Between(Sites, Sites, Option<usize>),
}

impl What {
    /// How much of the computation before a call it is, ns.
    fn part(&self, gap: &Gap) -> i64 {
        match self {
            What::Place(place) => place.part(gap),
            What::Between(begin, until, part)
                if begin.has(gap.before) && until.has(Some(gap.after)) =>
            {
                let whole = (gap.to - gap.from).max(0);
                match part {
                    Some(part) => gap.beside[*part].clamp(0, whole),
                    None => (whole - gap.beside.iter().sum::<i64>()).max(0),
                }
            }
            What::Between(..) => 0,
        }
    }

    /// Whether there may be any between these calls.
    fn may_be(&self, before: Option<Site>, after: Site) -> bool {
        match self {
            What::Place(place) => place.may_be(before, after),
            What::Between(begin, until, _) => begin.has(before) && until.has(Some(after)),
        }
    }
}

/// Who is compared with whom.
pub enum Within {
    /// First threads of all ranks, between any two meetings of all ranks.
    Meetings,
    /// These locations, in the whole run.
    Run(Vec<bool>),
    /// The threads of each of these ranks with each other, in the whole run. By location.
    Ranks(Vec<bool>),
}

impl Within {
    /// Whether a location is compared in the whole run.
    fn is_whole(&self, location: usize) -> bool {
        match self {
            Within::Meetings => false,
            Within::Run(of) | Within::Ranks(of) => of[location],
        }
    }

    /// Number of what is compared at a time.
    fn group(&self, rank: u32, meetings: usize) -> usize {
        match self {
            Within::Meetings => meetings,
            Within::Run(_) => 0,
            Within::Ranks(_) => rank as usize,
        }
    }
}

/// Computation that takes the mean of those that it is compared with.
struct Share {
    what: What,
    /// By location: whether it takes the mean.
    members: Vec<bool>,
    /// By location: whether it has a part in the mean, even if it has no such computation; `None`:
    /// the mean is of those that have some.
    all: Option<Vec<bool>>,
    within: Within,
    /// Whether it never becomes longer.
    only_less: bool,
    /// The part of the change that is made, 0..=1.
    mended: f64,
    /// Most that members lose of what no other location has, ns.
    most: i64,
    /// The part of it that they lose, once that is known.
    lost: f64,
    /// As users name it; empty: they did not.
    name: String,
    /// By group: computation of the locations compared with, ns, and how many of them have any; `None`: none has.
    groups: Vec<Option<(i64, i64)>>,
}

/// All that is compared.
#[derive(Default)]
pub struct Shares(Vec<Share>);

impl Shares {
    /// Adds computation in a place, of all ranks.
    pub fn add_place(&mut self, name: &str, place: Place, locations: usize) -> usize {
        let share = self.add(What::Place(place), vec![true; locations], None, false);
        name.clone_into(&mut self.0[share].name);
        share
    }

    /// Adds computation between two calls, or the `part` of the time between them with this number in
    /// [`OUTSIDE`](laggard_engine::events::OUTSIDE); only that of members changes, and only to less.
    pub fn add_between(
        &mut self,
        (begin, until): (Sites, Sites),
        part: Option<usize>,
        members: Vec<bool>,
    ) -> usize {
        self.add(What::Between(begin, until, part), members, None, true)
    }

    /// The same of threads.
    pub fn add_of_threads(
        &mut self,
        (begin, until): (Sites, Sites),
        part: Option<usize>,
        members: Vec<bool>,
        within: Within,
    ) -> usize {
        let begin = begin.or_of_team();
        let share = self.add_between((begin, until), part, members);
        self.0[share].within = within;
        share
    }

    /// The same; what members have is shared by all of these.
    pub fn add_shared(
        &mut self,
        begin: Sites,
        until: Sites,
        members: Vec<bool>,
        all: Vec<bool>,
    ) -> usize {
        self.add(What::Between(begin, until, None), members, Some(all), true)
    }

    fn add(
        &mut self,
        what: What,
        members: Vec<bool>,
        all: Option<Vec<bool>>,
        only_less: bool,
    ) -> usize {
        self.0.push(Share {
            what,
            members,
            all,
            within: Within::Meetings,
            only_less,
            mended: 1.0,
            most: i64::MAX,
            lost: 1.0,
            name: String::new(),
            groups: Vec::new(),
        });
        self.0.len() - 1
    }

    /// Only a part of its change is made, 0..=1, and members lose at most this much of what no other location has, ns.
    pub fn mend(&mut self, share: usize, mended: f64, most: i64) {
        (self.0[share].mended, self.0[share].most) = (mended, most);
    }

    /// Adds up the run. Members are compared with the others, if these have any such computation. If there are no
    /// others, they are compared with each other; but with nobody if there is only one (of the rank, where threads of
    /// a rank are compared), or threads come one after the other. Gives the name of a place in which less than two
    /// ranks compute.
    pub fn learn(&mut self, events: &Events) -> Option<&str> {
        if self.0.is_empty() {
            return None;
        }
        let locations = (0..events.locations()).into_par_iter();
        let learnt = locations.fold(
            || Learnt::new(self.0.len()),
            |mut learnt, location| {
                learnt.read(events, location, self);
                learnt
            },
        );
        let Learnt { groups, ranks } = learnt.reduce(|| Learnt::new(self.0.len()), Learnt::merge);
        for ((share, groups), of_all) in self.0.iter_mut().zip(groups).zip(ranks.clone()) {
            let of_ranks = matches!(share.within, Within::Ranks(_));
            let together = share.together(events);
            let has_others = share.has_others(events);
            let mut gone = 0_i64;
            let compared = groups.into_iter().zip(0..).map(|(of, group)| {
                let count = |kind: usize| match of_ranks {
                    true => of[kind].1 as usize,
                    false => of_all[kind],
                };
                let rank = if of_ranks { group } else { 0 };
                let are_several = || !has_others && count(MEMBERS) > 1 && together.contains(&rank);
                if count(OTHERS) > 0 && (of[OTHERS].1 > 0 || !share.only_less) {
                    return Some(of[OTHERS]);
                }
                if !share.only_less || are_several() {
                    return Some(of[MEMBERS]);
                }
                gone = gone.saturating_add(of[MEMBERS].0);
                None
            });
            share.groups = compared.collect();
            share.lost = part_of(share.most, gone);
        }
        let mut shares = self.0.iter().zip(ranks);
        let alone = shares.find(|(share, [own, ..])| !share.name.is_empty() && *own < 2);
        alone.map(|(share, _)| &*share.name)
    }

    /// What is known ahead at a location.
    pub fn ahead<'e>(&self, events: &'e Events, location: usize) -> Ahead<'e> {
        Ahead::new(events, location, self)
    }

    /// Whether computation of a location between these calls may change.
    pub fn concerns(
        &self,
        share: usize,
        location: usize,
        before: Option<Site>,
        after: Site,
    ) -> bool {
        let share = &self.0[share];
        share.members[location] && share.what.may_be(before, after)
    }

    /// How much longer a gap of a location becomes, if the sum is the mean, ns.
    pub fn change(&self, at: usize, gap: &Gap, ahead: &Ahead) -> i64 {
        let share = &self.0[at];
        let part = share.what.part(gap);
        let group = share.within.group(ahead.rank, ahead.meetings);
        let change = share.changed(part, gap.location, group, ahead.own[at]) - part;
        scaled(change, share.mended)
    }

    /// The shares that may have computation between these calls.
    fn marks(&self, before: Option<Site>, after: Site) -> Marks {
        let shares = self.0.iter().enumerate();
        let found = shares.filter(|(_, share)| share.what.may_be(before, after));
        found.fold(0, |marks, (at, _)| marks | mark(at))
    }
}

/// What some locations compute.
struct Learnt {
    /// By share and group, of each kind: ns, and how many have any.
    groups: Vec<Vec<[(i64, i64); KINDS]>>,
    /// By share and kind: locations that have any.
    ranks: Vec<[usize; KINDS]>,
}

impl Learnt {
    fn new(shares: usize) -> Learnt {
        Learnt {
            groups: vec![Vec::new(); shares],
            ranks: vec![[0; KINDS]; shares],
        }
    }

    /// Adds a location.
    fn read(&mut self, events: &Events, location: usize, shares: &Shares) {
        let mut ahead = Ahead::new(events, location, shares);
        let mut has_any = vec![false; shares.0.len()];
        while ahead.is_main || ahead.meetings == 0 {
            for (at, share) in shares.0.iter().enumerate() {
                let is_told = match &share.within {
                    Within::Meetings => ahead.is_main,
                    within => within.is_whole(location) && ahead.meetings == 0,
                };
                if !is_told {
                    continue;
                }
                let (groups, own) = (&mut self.groups[at], ahead.own[at]);
                let group = share.within.group(ahead.rank, ahead.meetings);
                if groups.len() <= group {
                    groups.resize(group + 1, Default::default());
                }
                let (sum, count) = &mut groups[group][share.kind(location)];
                *sum = sum.saturating_add(own);
                *count += i64::from(own > 0 || share.all.is_some() || share.is_part());
                has_any[at] |= own > 0 || share.is_part();
            }
            if ahead.is_over || !ahead.is_main {
                break;
            }
            ahead.go_on(shares);
        }
        for (at, share) in shares.0.iter().enumerate() {
            self.ranks[at][share.kind(location)] += usize::from(has_any[at]);
        }
    }

    fn merge(mut self, other: Learnt) -> Learnt {
        for (own, other) in self.groups.iter_mut().zip(other.groups) {
            if own.len() < other.len() {
                own.resize(other.len(), Default::default());
            }
            for (own, other) in own.iter_mut().flatten().zip(other.into_iter().flatten()) {
                *own = (own.0.saturating_add(other.0), own.1 + other.1);
            }
        }
        for (own, other) in self
            .ranks
            .iter_mut()
            .flatten()
            .zip(other.ranks.into_iter().flatten())
        {
            *own += other;
        }
        self
    }
}

/// Members, those that they are compared with, and neither.
const KINDS: usize = 3;
const MEMBERS: usize = 0;
const OTHERS: usize = 1;

impl Share {
    /// The ranks of which members are there at the same time; 0 stands for all if ranks are compared.
    fn together(&self, events: &Events) -> FxHashSet<u32> {
        let of_ranks = matches!(self.within, Within::Ranks(_));
        let members = (0..events.locations()).filter(|at| self.members[*at]);
        let lives = members.map(|at| {
            let place = events.place(at);
            let rank = if of_ranks { place.rank } else { 0 };
            (rank, place.first_ns, place.last_ns)
        });
        let mut lives: Vec<(u32, i64, i64)> = lives.collect();
        lives.sort_unstable();
        let next = lives.windows(2).map(|next| (next[0], next[1]));
        let meet = next.filter(|(one, other)| one.0 == other.0 && other.1 < one.2);
        meet.map(|(one, _)| one.0).collect()
    }

    /// Whether it is not computation: most locations have nothing of it, and count.
    fn is_part(&self) -> bool {
        matches!(self.what, What::Between(.., Some(_)))
    }

    /// Whether there are others to be compared with, whatever they have.
    fn has_others(&self, events: &Events) -> bool {
        let mut locations = 0..events.locations();
        match &self.within {
            Within::Meetings => {
                locations.any(|at| events.place(at).thread == 0 && self.kind(at) == OTHERS)
            }
            Within::Run(_) | Within::Ranks(_) => false,
        }
    }

    /// What a location is, below [`KINDS`].
    fn kind(&self, location: usize) -> usize {
        match (&self.all, &self.within) {
            (Some(all), _) => 1 + usize::from(!all[location]),
            (_, Within::Run(of) | Within::Ranks(of)) if !of[location] => 2,
            _ => usize::from(!self.members[location]),
        }
    }

    /// How long a part of a location's computation takes, if its sum, now `own`, is the mean.
    fn changed(&self, part: i64, location: usize, group: usize, own: i64) -> i64 {
        if !self.members[location] || own <= 0 {
            return part;
        }
        let Some((sum, count)) = self.groups.get(group).copied().flatten() else {
            return part - scaled(part, self.lost);
        };
        let all = i128::from(own) * i128::from(count.max(1));
        let changed = (i128::from(part) * i128::from(sum) / all) as i64;
        match self.only_less {
            true => changed.min(part),
            false => changed,
        }
    }
}

/// A location's computation until the next meeting of all, read ahead; of teams in the whole run.
pub struct Ahead<'e> {
    /// None: it is no first thread, or nothing is compared.
    reading: Option<Reading<'e>>,
    is_main: bool,
    is_over: bool,
    rank: u32,
    /// Meetings before.
    meetings: usize,
    /// By share.
    own: Vec<i64>,
}

impl<'e> Ahead<'e> {
    fn new(events: &'e Events, location: usize, shares: &Shares) -> Ahead<'e> {
        let is_main = events.place(location).thread == 0 && !shares.0.is_empty();
        let is_whole = |share: &Share| share.within.is_whole(location);
        let mut own = vec![0; shares.0.len()];
        if shares.0.iter().any(is_whole) {
            let mut reading = Reading::new(events, location);
            while reading.add(shares, &mut own, is_whole) {}
        }
        let mut ahead = Ahead {
            reading: is_main.then(|| Reading::new(events, location)),
            is_main,
            is_over: false,
            rank: events.place(location).rank,
            meetings: 0,
            own,
        };
        ahead.sum(shares);
        ahead
    }

    /// Reads all that ends before `end`, ns.
    pub fn fill(&mut self, end: i64) {
        if let Some(reading) = &mut self.reading {
            reading.reader.fill(end);
        }
    }

    /// A meeting is over.
    pub fn go_on(&mut self, shares: &Shares) {
        if self.is_main {
            self.meetings += 1;
            self.sum(shares);
        }
    }

    /// Adds up until the next meeting.
    fn sum(&mut self, shares: &Shares) {
        let Some(reading) = &mut self.reading else {
            return;
        };
        for (own, share) in self.own.iter_mut().zip(&shares.0) {
            if matches!(share.within, Within::Meetings) {
                *own = 0;
            }
        }
        let is_of_meetings = |share: &Share| matches!(share.within, Within::Meetings);
        self.is_over = !reading.add(shares, &mut self.own, is_of_meetings);
    }
}

/// A call's place, and its signature.
type Before = (Site, u32);

/// A location's calls, as they are read for sums of its computation.
struct Reading<'e> {
    reader: Reader<'e>,
    location: usize,
    /// The end of the call before, and what it is; a further thread begins without one.
    before: Option<(i64, Option<Before>)>,
    pairs: Pairs,
}

impl<'e> Reading<'e> {
    fn new(events: &'e Events, location: usize) -> Reading<'e> {
        Reading {
            reader: Reader::new(events, location),
            location,
            before: events.place(location).born_ns().map(|born| (born, None)),
            pairs: Pairs::default(),
        }
    }

    /// Adds what there is of some shares until the next meeting of all; false: there is none.
    fn add(&mut self, shares: &Shares, own: &mut [i64], counts: impl Fn(&Share) -> bool) -> bool {
        while let Some(call) = self.reader.next() {
            if let Some((from, before)) = &self.before {
                let first = before.map(|before| before.0);
                let last = call.kind.site;
                let of = (before.map_or(NONE, |before| before.1), call.signature);
                let marks = self.pairs.of(of, || shares.marks(first, last));
                if marks != 0 {
                    let gap = Gap {
                        location: self.location,
                        before: first,
                        after: last,
                        from: *from,
                        to: call.enter,
                        beside: call.beside,
                    };
                    for (at, own) in own.iter_mut().enumerate() {
                        if marks & mark(at) != 0 && counts(&shares.0[at]) {
                            *own += shares.0[at].what.part(&gap);
                        }
                    }
                }
            }
            self.before = Some((call.leave, Some((call.kind.site, call.signature))));
            if call.kind.is_of_all {
                return true;
            }
        }
        false
    }
}

/// What calls take by themselves as recorded, ns, by location and call.
pub type Rests = FxHashMap<(u32, Site), Rest>;

/// What some calls took by themselves, ns.
#[derive(Default)]
pub struct Rest {
    pub all: i64,
    /// Parts of it that were not work, at most, see
    /// [`Operation::off`](laggard_engine::events::Operation::off).
    pub off: [i64; OUTSIDE.len()],
}

impl Rest {
    /// Adds others.
    pub fn add(&mut self, other: &Rest) {
        self.all += other.all;
        self.off
            .iter_mut()
            .zip(other.off)
            .for_each(|(sum, off)| *sum += off);
    }
}

/// A part or a multiple of some time, ns.
pub fn scaled(time: i64, factor: f64) -> i64 {
    (time as f64 * factor).round() as i64
}

/// The part of all of a time that is lost if that is `most`.
fn part_of(most: i64, all: i64) -> f64 {
    match most < all {
        true => most as f64 / all as f64,
        false => 1.0,
    }
}

/// Calls that take longer by themselves than on other ranks.
pub struct LongCall {
    pub call: Sites,
    /// The part of their own time that is too long, by number in
    /// [`OUTSIDE`](laggard_engine::events::OUTSIDE); `None`: all but these.
    pub what: Option<usize>,
    /// By location: whether they take too long.
    pub members: Vec<bool>,
    /// Whether the threads of a rank are compared with each other; else ranks are.
    within_ranks: bool,
    /// By location: the part of their time that remains, once that is known.
    pub parts: Vec<f64>,
    /// The part of the rest that goes, 0..=1.
    pub mended: f64,
    /// Most that members lose if no other rank has such calls, ns.
    pub most: i64,
}

impl LongCall {
    /// All of the rest goes. Threads of each rank are compared if `within_ranks`.
    pub fn new(
        call: Sites,
        what: Option<usize>,
        members: Vec<bool>,
        within_ranks: bool,
    ) -> LongCall {
        LongCall {
            call,
            what,
            mended: 1.0,
            most: i64::MAX,
            parts: vec![1.0; members.len()],
            members,
            within_ranks,
        }
    }

    /// All that these calls take on a rank, or the part of it, becomes the mean of the other ranks that have
    /// any; if none has, it goes; if there are no others, it becomes the mean of all, and if that is one rank, 0. Or so
    /// on a thread, with the threads of its rank that have any. It never becomes more.
    pub fn learn(&mut self, events: &Events, rests: &Rests) {
        let numbers = |location: usize| {
            let rank = events.place(location).rank as usize;
            match self.within_ranks {
                true => (rank, location),
                false => (0, rank),
            }
        };
        // By group, whether its threads are members, and rank or thread: what its calls take.
        let mut sums: BTreeMap<(usize, bool, usize), i64> = BTreeMap::new();
        for (&(location, site), rest) in rests {
            let rest = self.part(rest.off, rest.all);
            if self.call.has(Some(site)) && rest > 0 {
                let location = location as usize;
                let (group, number) = numbers(location);
                let sum = sums.entry((group, self.members[location], number));
                let sum = sum.or_default();
                *sum = sum.saturating_add(rest);
            }
        }
        // By group, and whether they are members.
        let mut groups: BTreeMap<(usize, bool), (i64, u32)> = BTreeMap::new();
        for (&(group, is_member, _), more) in &sums {
            let (time, count) = groups.entry((group, is_member)).or_default();
            *time = time.saturating_add(*more);
            *count += 1;
        }
        let has_others = !self.within_ranks && self.members.contains(&false);
        let usual = |group: usize| {
            let others = groups.get(&(group, false));
            let several = || groups.get(&(group, true)).filter(|(_, count)| *count > 1);
            let compared = others.or_else(|| several().filter(|_| !has_others));
            compared.map(|&(time, count)| ratio(time as f64, f64::from(count)))
        };
        let lost = |group: usize| {
            let gone = groups.get(&(group, true)).map_or(0, |(time, _)| *time);
            part_of(self.most, gone)
        };
        let parts = (0..self.members.len()).map(|location| {
            let (group, number) = numbers(location);
            let own = sums.get(&(group, true, number));
            match own.filter(|_| self.members[location]) {
                Some(own) => match usual(group) {
                    Some(usual) => ratio(usual, *own as f64).min(1.0),
                    None => 1.0 - lost(group),
                },
                None => 1.0,
            }
        });
        self.parts = parts.collect();
    }
}

impl LongCall {
    /// The part of the time `rest` with these parts off work that is too long, ns.
    fn part(&self, off: [i64; OUTSIDE.len()], rest: i64) -> i64 {
        let all = rest.max(0);
        match self.what {
            Some(part) => off[part].clamp(0, all),
            None => (rest - off.iter().sum::<i64>()).clamp(0, all),
        }
    }

    /// How long a call of a member takes by itself, ns, if recorded `rest`.
    pub fn rest(&self, location: usize, call: &Call, rest: i64) -> i64 {
        let part = self.part(call.off, rest);
        rest + scaled(scaled(part, self.parts[location]) - part, self.mended)
    }
}

/// The calls of one name at one place of a report.
pub struct Sites {
    /// `None`: before the first call.
    call: Option<u16>,
    by_path: Vec<bool>,
    /// Whether it is the begin of a thread's part in a region: another call on the thread that forks it.
    of_team: bool,
}

impl Sites {
    /// Whether a replay knows calls of a name: those of the program's own operations it does not.
    pub fn are_known(operation: &str) -> bool {
        operation.is_empty() || calls::CALLS.iter().any(|call| call.name == operation)
    }

    pub fn new(events: &Events, operation: &str, location: &SourceLocation) -> Sites {
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
            of_team: false,
        }
    }

    /// The same; where a thread's part in a region begins, on all threads of the team.
    fn or_of_team(mut self) -> Sites {
        self.of_team = self.begins_part();
        self
    }

    /// Whether a thread's part in a region begins there.
    pub fn begins_part(&self) -> bool {
        self.call.is_some_and(begins_part)
    }

    pub fn has(&self, site: Option<Site>) -> bool {
        match site {
            Some((call, _)) if self.of_team => begins_part(call),
            Some((call, path)) => Some(call) == self.call && self.by_path[path as usize],
            None => self.call.is_none(),
        }
    }
}

/// Whether a thread's part in a region begins at the end of this call.
fn begins_part(call: u16) -> bool {
    matches!(call, number::omp_parallel | number::omp_idle)
}
