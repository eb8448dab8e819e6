//! The execution graph: which moments of other locations each call's end depends on.
//!
//! A *junction* is something that calls depend on: it is there when all of its providers (moments
//! of calls) are. A message has one provider, a barrier one for each member.

use std::collections::BTreeMap;

use anyhow::Result;
use laggard_engine::events::{
    Collective, Events, GroupKind, Joined, Member, Message, MessageEnd, NONE, Party, Wait,
};
use laggard_patterns::PatternId;
use laggard_trace::calls::{self, Shape, number};
use rustc_hash::FxHashMap;

use crate::GoesOn;
use crate::reader::Reader;
use crate::slabs::{Row, Slabs};

/// The location of a provider that is a junction.
pub const JUNCTION: u32 = u32::MAX;
/// Added to the number of a call that is known by its enter.
pub const BY_ENTER: u64 = 1 << 63;

/// A moment that a junction needs.
#[derive(Clone, Copy, Debug)]
pub struct Provider {
    pub junction: u64,
    /// Number of the call in its location; for [`JUNCTION`], the junction.
    pub number: u64,
    /// The moment, ns.
    pub time: i64,
    pub location: u32,
    /// Calls and junctions that need this junction.
    pub consumers: u32,
    /// All providers of the junction.
    pub providers: u32,
    /// Whether the moment may lie anywhere in the call; else it is the call's enter.
    pub is_by_time: bool,
}

/// A call whose end depends on a junction.
#[derive(Clone, Copy, Debug)]
pub struct Consumer {
    pub junction: u64,
    /// Number of the call in its location, or its enter and [`BY_ENTER`].
    pub number: u64,
    pub location: u32,
    /// Whether a sender depends on its receiver.
    pub is_late_receiver: bool,
    /// When the junction was there, ns.
    pub time: i64,
}

impl Provider {
    pub fn of(row: Row) -> Provider {
        Provider {
            junction: row[0],
            number: row[1],
            time: row[2] as i64,
            location: row[3] as u32,
            consumers: (row[3] >> 32) as u32,
            providers: row[4] as u32,
            is_by_time: row[4] >> 32 != 0,
        }
    }
}

impl Consumer {
    pub fn of(row: Row) -> Consumer {
        Consumer {
            junction: row[0],
            number: row[1],
            location: row[2] as u32,
            is_late_receiver: row[3] != 0,
            time: row[4] as i64,
        }
    }
}

/// The dependencies of a run, by slabs of global time.
pub struct Graph<'e> {
    events: &'e Events,
    /// Fails once nobody wants the result any more.
    pub goes_on: GoesOn<'e>,
    /// By the providers' time.
    pub providers: Slabs,
    /// By the calls' ends.
    pub consumers: Slabs,
    /// Looks that found what others had looked for in vain, by their ends.
    pub found: Slabs,
    /// What each location's begin depends on.
    pub starts: Vec<Option<u64>>,
    next: u64,
    eager_limit: Option<f64>,
    /// Whether all locations have one clock.
    is_one_host: bool,
    /// Members of collectives under way, by group and instance.
    open: FxHashMap<(u32, u64), Vec<Member>>,
    /// Meetings of teams, by the location and the number of the call that came last.
    teams: FxHashMap<(u32, u64), Team>,
    /// Whether the wait that was told last is of one of them.
    is_of_team: bool,
}

/// A meeting of a team, as far as its waits are known.
struct Team {
    /// The calls that waited.
    waiting: Vec<Moment>,
    /// When the first of them began, and who came after it.
    first: i64,
    late: Vec<Moment>,
}

/// Meetings of teams that are kept: their waits are told one after another.
const MOST_TEAMS: usize = 1024;

/// A moment: location, number of the call, ns.
type Moment = (u32, u64, i64);

impl<'e> Graph<'e> {
    /// # Errors
    /// There is no room for temporary files; and those of `goes_on`.
    pub fn new(events: &'e Events, goes_on: GoesOn<'e>) -> Result<Graph<'e>> {
        let mut hosts = (0..events.locations()).map(|at| events.place(at).host);
        let first = hosts.next();
        let mut graph = Graph {
            events,
            goes_on,
            providers: Slabs::default(),
            consumers: Slabs::default(),
            found: Slabs::default(),
            starts: Vec::new(),
            next: 0,
            eager_limit: events.eager_limit(),
            is_one_host: hosts.all(|host| Some(host) == first),
            open: FxHashMap::default(),
            teams: FxHashMap::default(),
            is_of_team: false,
        };
        events.join(&mut graph)?;
        graph.end_teams();
        graph.starts = vec![None; events.locations()];
        let locations: Vec<usize> = (0..events.locations()).collect();
        let is_same = |a: &usize, b: &usize| events.place(*a).rank == events.place(*b).rank;
        for rank in locations.chunk_by(is_same) {
            let mut begins: BTreeMap<usize, Vec<(i64, usize)>> = BTreeMap::new();
            let known = rank.iter().map(|&at| {
                let place = events.place(at);
                (place.thread, (at, place.first_ns))
            });
            let known: FxHashMap<u32, (usize, i64)> = known.collect();
            for &thread in &rank[1..] {
                let place = events.place(thread);
                let creator = place.creator.and_then(|by| known.get(&by));
                let creator = creator.filter(|(_, first_ns)| *first_ns < place.first_ns);
                let of = begins.entry(creator.map_or(rank[0], |(at, _)| *at));
                of.or_default().push((place.first_ns, thread));
            }
            for (creator, begins) in begins {
                graph.begin_threads(creator, begins);
            }
        }
        Ok(graph)
    }

    /// Junctions for the begins of threads, at some ns: moments of the thread that started them, before its next call or
    /// in it; after its last call, the end of that.
    fn begin_threads(&mut self, creator: usize, mut begins: Vec<(i64, usize)>) {
        begins.sort_unstable();
        let mut reader = Reader::new(self.events, creator);
        let (mut last, mut next) = (None, None);
        for (begin, thread) in begins {
            next = next.or_else(|| reader.next());
            while let Some(call) = next.filter(|call| call.leave <= begin) {
                last = Some(call);
                next = reader.next();
            }
            let last = last.map(|call| (call.number, call.leave));
            let moment = next.map(|call| (call.number, begin)).or(last);
            self.starts[thread] = moment.map(|(number, time)| {
                let junction = self.junction();
                self.provide(Provider {
                    junction,
                    number,
                    time,
                    location: creator as u32,
                    consumers: 1,
                    providers: 1,
                    is_by_time: true,
                });
                junction
            });
        }
    }

    /// A new junction.
    fn junction(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// Adds a moment that a junction needs.
    fn provide(&mut self, provider: Provider) {
        let places = u64::from(provider.consumers) << 32 | u64::from(provider.location);
        let providers = u64::from(provider.is_by_time) << 32 | u64::from(provider.providers);
        let time = provider.time as u64;
        let row = [provider.junction, provider.number, time, places, providers];
        self.providers.put(provider.time, row);
    }

    fn consume(&mut self, leave: i64, consumer: Consumer) {
        let late = u64::from(consumer.is_late_receiver);
        let location = u64::from(consumer.location);
        let time = consumer.time as u64;
        let row = [consumer.junction, consumer.number, location, late, time];
        self.consumers.put(leave, row);
    }

    /// Whether a call that ended at `leave` cannot have depended on a moment: with one clock, an
    /// effect is never before its cause.
    fn is_refuted(&self, time: i64, leave: i64) -> bool {
        self.is_one_host && time > leave
    }

    /// The end of a call depends on one moment.
    fn depend(&mut self, on: Moment, by: Moment, is_late_receiver: bool) {
        let ((location, number, time), (waiter, waiting, leave)) = (on, by);
        if self.is_refuted(time, leave) {
            return;
        }
        let junction = self.junction();
        self.provide(Provider {
            junction,
            number,
            time,
            location,
            consumers: 1,
            providers: 1,
            is_by_time: waiting & BY_ENTER != 0,
        });
        self.consume(
            leave,
            Consumer {
                junction,
                number: waiting,
                location: waiter,
                is_late_receiver,
                time,
            },
        );
    }

    /// Whether a send of this call waits for its receive, whatever happened in this run.
    fn is_rendezvous(&self, send: &MessageEnd) -> bool {
        match send.call {
            number::MPI_Ssend | number::MPI_Issend | number::MPI_Ssend_init => true,
            number::MPI_Bsend | number::MPI_Ibsend | number::MPI_Bsend_init => false,
            _ => {
                let limit = self.eager_limit;
                limit.is_some_and(|limit| send.bytes as f64 > limit)
            }
        }
    }

    /// Those who wait depend on all that are awaited.
    fn meet(&mut self, members: &[Member]) {
        let awaited = members.iter().filter(|member| member.is_awaited);
        let Some(last) = awaited.clone().map(|member| member.enter).max() else {
            return;
        };
        let waiting = members.iter().filter(|member| member.waits);
        let waiting = waiting.filter_map(|member| Some((member.location, member.done?)));
        let waiting: Vec<_> = waiting
            .filter(|(_, done)| !self.is_refuted(last, done.leave))
            .collect();
        let (junction, providers) = (self.junction(), awaited.clone().count() as u32);
        if waiting.is_empty() {
            return;
        }
        for member in awaited {
            self.provide(Provider {
                junction,
                number: member.number,
                time: member.enter,
                location: member.location,
                consumers: waiting.len() as u32,
                providers,
                is_by_time: false,
            });
        }
        for (location, done) in waiting {
            self.consume(
                done.leave,
                Consumer {
                    junction,
                    number: done.number,
                    location,
                    is_late_receiver: false,
                    time: last,
                },
            );
        }
    }

    /// All threads of a team depend on those that came late. So does the last one: with a change, others
    /// may come after it.
    fn end_teams(&mut self) {
        let teams = std::mem::take(&mut self.teams);
        let mut teams: Vec<_> = teams.into_iter().collect();
        teams.sort_unstable_by_key(|(last, _)| *last);
        for ((location, number), team) in teams {
            let Some(&last) = team.late.iter().max_by_key(|late| late.2) else {
                continue;
            };
            let (junction, time) = (self.junction(), last.2);
            let waiting = team.waiting.into_iter();
            let waiting = waiting.filter(|waiting| !self.is_refuted(time, waiting.2));
            // The last one's end is not known, and comes after its begin.
            let consumers: Vec<Moment> = waiting.chain([(location, number, time)]).collect();
            for &(location, number, time) in &team.late {
                self.provide(Provider {
                    junction,
                    number,
                    time,
                    location,
                    consumers: consumers.len() as u32,
                    providers: team.late.len() as u32,
                    is_by_time: false,
                });
            }
            for (location, number, leave) in consumers {
                self.consume(
                    leave,
                    Consumer {
                        junction,
                        number,
                        location,
                        is_late_receiver: false,
                        time,
                    },
                );
            }
        }
    }

    /// Each depends on all lower ranks: on the one before it, and on what that one depends on.
    fn chain(&mut self, members: &mut [Member]) {
        members.sort_unstable_by_key(|member| member.local_rank);
        let Some(first) = members.iter().map(|member| member.enter).min() else {
            return;
        };
        let mut before: Option<u64> = None;
        let mut latest = i64::MIN;
        for at in 1..members.len() {
            let (lower, member) = (members[at - 1], members[at]);
            latest = latest.max(lower.enter);
            let done = member
                .done
                .filter(|done| !self.is_refuted(latest, done.leave));
            let is_last = at + 1 == members.len();
            let junction = self.junction();
            let consumers = u32::from(done.is_some()) + u32::from(!is_last);
            let providers = 1 + u32::from(before.is_some());
            self.provide(Provider {
                junction,
                number: lower.number,
                time: lower.enter,
                location: lower.location,
                consumers,
                providers,
                is_by_time: false,
            });
            if let Some(number) = before {
                self.provide(Provider {
                    junction,
                    number,
                    time: first,
                    location: JUNCTION,
                    consumers,
                    providers,
                    is_by_time: false,
                });
            }
            if let Some(done) = done {
                self.consume(
                    done.leave,
                    Consumer {
                        junction,
                        number: done.number,
                        location: member.location,
                        is_late_receiver: false,
                        time: latest,
                    },
                );
            }
            before = Some(junction);
        }
    }
}

/// Whether threads of a team wait for each other.
fn is_of_team(pattern: PatternId) -> bool {
    use PatternId::{WaitAtImplicitOmpBarrier, WaitAtOmpBarrier, WaitAtThreadBarrier};
    matches!(
        pattern,
        WaitAtImplicitOmpBarrier | WaitAtOmpBarrier | WaitAtThreadBarrier
    )
}

fn is_late_receiver(pattern: PatternId) -> bool {
    use PatternId::{LateReceiver, LateReceiverPolled, LateReceiverSync};
    matches!(
        pattern,
        LateReceiver | LateReceiverPolled | LateReceiverSync
    )
}

impl Joined for Graph<'_> {
    fn begin(&mut self, borders: &[i64]) {
        self.providers = Slabs::new(borders);
        self.consumers = Slabs::new(borders);
        self.found = Slabs::new(borders);
    }

    fn message(&mut self, message: &Message) -> Result<()> {
        (self.goes_on)()?;
        let (Some(send), Some(receive)) = (message.send, message.receive) else {
            return Ok(());
        };
        let group = self.events.groups.get(message.group as usize);
        let is_epoch = group.is_some_and(|group| group.kind == GroupKind::Window);
        // What opens an epoch may return before the other side is there; those that waited for it
        // are told as waits.
        if is_epoch {
            return Ok(());
        }
        if let Some(done) = receive.done {
            let on = (send.location, send.number, send.enter);
            self.depend(on, (receive.location, done.number, done.leave), false);
        }
        if let Some(done) = send.done
            && receive.enter <= done.leave
            && self.is_rendezvous(&send)
        {
            let on = (receive.location, receive.number, receive.enter);
            self.depend(on, (send.location, done.number, done.leave), true);
        }
        Ok(())
    }

    fn member(&mut self, member: &Member) -> Result<()> {
        (self.goes_on)()?;
        let key = (member.group, member.instance);
        self.open.entry(key).or_default().push(*member);
        Ok(())
    }

    fn collective(&mut self, collective: &Collective) -> Result<()> {
        let key = (collective.group, collective.instance);
        let mut members = self.open.remove(&key).unwrap_or_default();
        match calls::call(collective.call).map(|call| call.shape) {
            // Neighbours are told as waits.
            None | Some(Shape::Neighbourhood) => {}
            Some(Shape::Prefix) => self.chain(&mut members),
            Some(_) => self.meet(&members),
        }
        Ok(())
    }

    fn wait(&mut self, wait: &Wait) -> Result<()> {
        self.is_of_team = false;
        let pattern = PatternId::from_number(wait.pattern).filter(|pattern| pattern.is_waiting());
        let Some(pattern) = pattern else {
            return Ok(());
        };
        let number = BY_ENTER | wait.enter as u64;
        if pattern.is_polled() {
            let lost = wait.lost as u64;
            let row = [u64::from(wait.location), number, lost, wait.since as u64, 0];
            self.found.put(wait.leave, row);
        }
        if let Some(late) = wait.last
            && (wait.since..=wait.leave).contains(&late.enter)
            && ![NONE, wait.location].contains(&late.location)
        {
            let on = (late.location, late.number, late.enter);
            let by = (wait.location, number, wait.leave);
            self.is_of_team = is_of_team(pattern);
            if !self.is_of_team {
                self.depend(on, by, is_late_receiver(pattern));
                return Ok(());
            }
            let key = (late.location, late.number);
            if self.teams.len() >= MOST_TEAMS && !self.teams.contains_key(&key) {
                self.end_teams();
            }
            let team = self.teams.entry(key).or_insert_with(|| Team {
                waiting: Vec::new(),
                first: i64::MAX,
                late: Vec::new(),
            });
            team.waiting.push(by);
            if wait.enter < team.first {
                team.first = wait.enter;
                team.late.clear();
            }
        }
        Ok(())
    }

    fn wants_parties(&self) -> bool {
        self.is_of_team
    }

    fn party(&mut self, wait: &Wait, party: &Party) -> Result<()> {
        let last = wait.last.map(|last| (last.location, last.number));
        let team = last.filter(|_| party.location != NONE);
        let team = team.and_then(|last| self.teams.get_mut(&last));
        if let Some(team) = team.filter(|team| team.first == wait.enter) {
            let late = (party.location, party.number, party.time);
            if !team.late.contains(&late) {
                team.late.push(late);
            }
        }
        Ok(())
    }
}
