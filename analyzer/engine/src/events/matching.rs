//! Joins the notes of ranks in the rounds of an analysis: both ends of messages, and members of
//! collectives.

mod call;
mod collectives;

use anyhow::Result;
use call::CallOf;
use laggard_trace::Signature;
use rustc_hash::FxHashMap;

use super::window::Window;
use super::{
    ByCall, Collective, Events, Joined, LateCall, Member, Message, MessageEnd, NONE, Party, Wait,
};
use crate::basics::ends;
use crate::collectives::group::Groups;
use crate::messages::channel::{Channels, Counted};
use crate::replay::agent::Agent;
use crate::replay::rank::Rank;
use crate::replay::rounds::Rounds;
use crate::stream::recorded::Recorded;
use crate::waits::charging::{Lost, Sink, WaitState, Waiting};
use crate::waits::log::{Ended, Subject};
use crate::waits::trail::Trail;
use crate::wire::parcels::Detail;

/// Goes over all locations once.
pub fn join(events: &Events, rounds: &Rounds, groups: Groups, to: &mut dyn Joined) -> Result<()> {
    let (mut agent, borders) = rounds.begin(&events.timeline, None, Some(groups));
    agent.ranks.iter_mut().for_each(Rank::note_waits);
    let has_all = to.wants_messages();
    if has_all {
        agent.ranks.iter_mut().for_each(Rank::note_all);
    }
    let mut matching = Matching::new(events, rounds, &agent);
    to.begin(&borders);
    for until in borders {
        agent.read(until, false);
        if has_all {
            matching.take(&mut agent, to)?;
        }
        agent.ask_and_name(until, false);
        matching.losses(&mut agent, to)?;
    }
    agent.read(i64::MAX, true);
    if has_all {
        matching.take(&mut agent, to)?;
    }
    agent.ask_and_name(i64::MAX, true);
    matching.losses(&mut agent, to)?;
    matching.rest(to)
}

/// The two directions of channels.
const DIRECTIONS: usize = 2;
const SENT: usize = 0;
const RECEIVED: usize = 1;

/// World ranks of sender and receiver, tag, group.
type Pair = (u32, u32, u32, i32);

/// The known ends of a message.
type Ends = (Option<MessageEnd>, Option<MessageEnd>);

/// Messages and collectives under way.
struct Matching<'e> {
    events: &'e Events,
    /// Position of the first location of each of the agent's ranks.
    first_location: Vec<u32>,
    /// Positions in the run by rank and thread.
    locations: FxHashMap<(u32, u32), u32>,
    pairs: Vec<Pair>,
    /// Messages of each pair.
    messages: Vec<Window<Ends>>,
    number_of: FxHashMap<Pair, u32>,
    /// Number of the pair by rank, direction and channel.
    of_channel: Vec<[Vec<u32>; DIRECTIONS]>,
    /// Members that have not completed a non-blocking collective: by rank, agent's number of the
    /// group, instance.
    members: FxHashMap<(u32, u32, u64), Member>,
    /// Collectives that some members have not completed, by agent's number of the group and
    /// instance, with the number of members that have.
    collectives: FxHashMap<(u32, u64), (Collective, u32)>,
    /// Position of each group and its number of members with a trace, by the agent's numbers.
    groups: Vec<(u32, u32)>,
}

impl<'e> Matching<'e> {
    fn new(events: &'e Events, rounds: &Rounds, agent: &Agent) -> Matching<'e> {
        let mut location = 0;
        let first_location = agent.ranks.iter().map(|rank| {
            let first = location;
            location += rank.recorded.threads.len() as u32;
            first
        });
        let expected = agent.groups.expected.iter();
        let groups = rounds.numbers.values.iter().zip(expected);
        Matching {
            events,
            locations: (0..)
                .zip(&events.placed)
                .map(|(at, placed)| ((placed.rank, placed.thread), at))
                .collect(),
            first_location: first_location.collect(),
            pairs: Vec::new(),
            messages: Vec::new(),
            number_of: FxHashMap::default(),
            of_channel: vec![[const { Vec::new() }; DIRECTIONS]; agent.ranks.len()],
            members: FxHashMap::default(),
            collectives: FxHashMap::default(),
            groups: groups
                .map(|(&id, &expected)| (events.group_number(id), expected))
                .collect(),
        }
    }

    /// Takes the notes of a slab while its calls are still in memory.
    fn take(&mut self, agent: &mut Agent, to: &mut dyn Joined) -> Result<()> {
        for (at, rank) in agent.ranks.iter_mut().enumerate() {
            for direction in [SENT, RECEIVED] {
                let mut counted = std::mem::take(counted_of(rank, direction));
                for counted in counted.iter_mut().flat_map(|all| all.drain(..)) {
                    self.counted(at, rank, direction, &counted, to)?;
                }
                // Its memory is used again.
                *counted_of(rank, direction) = counted;
            }
            for at_entry in 0..rank.collectives.entries.len() {
                self.entered(at, rank, at_entry, to)?;
            }
            let mut ended = std::mem::take(&mut rank.ended);
            for ended in ended.iter_mut().flat_map(|all| all.drain(..)) {
                self.ended(at, rank, &ended, to)?;
            }
            rank.ended = ended;
        }
        Ok(())
    }

    fn counted(
        &mut self,
        at: usize,
        rank: &Rank,
        direction: usize,
        counted: &Counted,
        to: &mut dyn Joined,
    ) -> Result<()> {
        let channels = [&rank.messages.sends, &rank.messages.receives][direction];
        // Who is outside of the run has no rank that could be told.
        if channels.list[counted.channel as usize].key.1 < 0 {
            return Ok(());
        }
        let pair = self.pair(at, rank.recorded.rank, direction, channels, counted.channel);
        let call = CallOf::new(rank, &counted.end);
        let signature = call.signature;
        let half = match direction {
            SENT => call.send(),
            _ => call.receive(),
        };
        let end = MessageEnd {
            location: self.first_location[at] + counted.end.thread,
            call: signature.operation,
            call_path: self.call_path(at, counted.end.thread, signature),
            number: counted.end.event,
            enter: counted.end.time,
            // A receive that waited for its message number is noted when it gets the number.
            done: call.by_itself(),
            bytes: half.bytes,
        };
        let message = self.messages[pair as usize].begin(counted.n);
        match direction {
            SENT => message.0 = Some(end),
            _ => message.1 = Some(end),
        }
        self.complete(pair, counted.n, to)
    }

    fn ended(&mut self, at: usize, rank: &Rank, ended: &Ended, to: &mut dyn Joined) -> Result<()> {
        let done = ByCall {
            number: ended.number,
            enter: ended.enter,
            leave: ended.leave,
        };
        let (direction, channel, n) = match ended.subject {
            Subject::Sent(channel, n) => (SENT, channel, n),
            Subject::Received(channel, n) => (RECEIVED, channel, n),
            Subject::Collective(group, n) => {
                if let Some(member) = self.members.remove(&(rank.recorded.rank, group, n)) {
                    return self.member_done(group, member, Some(done), to);
                }
                return Ok(());
            }
        };
        let channels = [&rank.messages.sends, &rank.messages.receives][direction];
        let pair = self.pair(at, rank.recorded.rank, direction, channels, channel);
        if let Some(message) = self.messages[pair as usize].get_mut(n) {
            let end = match direction {
                SENT => &mut message.0,
                _ => &mut message.1,
            };
            if let Some(end) = end {
                end.done.get_or_insert(done);
            }
            self.complete(pair, n, to)?;
        }
        Ok(())
    }

    /// Gives a message to `to` when both its ends are done.
    fn complete(&mut self, pair: u32, n: u64, to: &mut dyn Joined) -> Result<()> {
        let window = &mut self.messages[pair as usize];
        let is_done = |end: &Option<MessageEnd>| end.is_some_and(|end| end.done.is_some());
        match window.get_mut(n) {
            Some((send, receive)) if is_done(send) && is_done(receive) => {}
            _ => return Ok(()),
        }
        match window.finish(n) {
            Some((send, receive)) => to.message(&self.message(pair, n, send, receive)),
            None => Ok(()),
        }
    }

    fn message(
        &self,
        pair: u32,
        number: u64,
        send: Option<MessageEnd>,
        receive: Option<MessageEnd>,
    ) -> Message {
        let (from, to, group, tag) = self.pairs[pair as usize];
        Message {
            from,
            to,
            group,
            tag,
            number,
            send,
            receive,
        }
    }

    /// The pair of a rank's channel.
    fn pair(
        &mut self,
        at: usize,
        rank: u32,
        direction: usize,
        channels: &Channels,
        channel: u32,
    ) -> u32 {
        let known = &mut self.of_channel[at][direction];
        if known.len() <= channel as usize {
            known.resize(channels.list.len(), NONE);
        }
        let known = &mut known[channel as usize];
        if *known == NONE {
            let (group, peer, tag) = channels.list[channel as usize].key;
            let (group, peer) = (self.events.group_number(group), peer as u32);
            let pair = match direction {
                SENT => (rank, peer, group, tag),
                _ => (peer, rank, group, tag),
            };
            let (pairs, messages) = (&mut self.pairs, &mut self.messages);
            *known = *self.number_of.entry(pair).or_insert_with(|| {
                pairs.push(pair);
                messages.push(Window::default());
                pairs.len() as u32 - 1
            });
        }
        *known
    }

    /// Gives the losses of calls to `to`.
    fn losses(&mut self, agent: &mut Agent, to: &mut dyn Joined) -> Result<()> {
        for (at, rank) in agent.ranks.iter_mut().enumerate() {
            let logs = rank.messages.asker.charged.iter_mut();
            for log in logs.filter_map(|charged| charged.log.as_mut()) {
                for (waiting, lost) in log.drain() {
                    let wait = self.wait(at, &rank.recorded, &waiting, &lost);
                    to.wait(&wait)?;
                    if to.wants_parties() {
                        for party in self.parties(waiting, &lost) {
                            to.party(&wait, &party)?;
                        }
                    }
                }
            }
        }
        Ok(())
    }

    fn wait(&self, at: usize, rank: &Recorded, waiting: &Waiting, lost: &Lost) -> Wait {
        let location = rank.threads[waiting.thread as usize].stream.location();
        let signature = &location.definitions.signatures()[waiting.signature as usize];
        let last = lost.shares.iter().rev();
        let last = last.map(|(_, late)| late).max_by_key(|late| late.time);
        let call = |late: &Detail| {
            let path = self.events.path_of_key.get(&late.path);
            LateCall {
                rank: late.rank,
                call: late.operation,
                call_path: path.copied().unwrap_or(0),
                location: self.location_of(late.rank, late.thread),
                number: late.event,
                enter: late.time,
            }
        };
        Wait {
            location: self.first_location[at] + waiting.thread,
            pattern: lost.pattern as u8,
            call: signature.operation,
            call_path: self.call_path(at, waiting.thread, signature),
            enter: waiting.enter,
            leave: waiting.leave,
            since: waiting.since,
            lost: lost.severity,
            cause: lost.as_loss().whom.most().map(call),
            last: lost.late.as_ref().or(last).map(call),
        }
    }

    /// The known late parties of a wait.
    fn parties(&self, waiting: Waiting, lost: &Lost) -> Vec<Party> {
        let mut trail = Trail::default();
        trail.take(&WaitState {
            waiting,
            loss: lost.as_loss(),
            inter_host: 0,
        });
        let known = trail
            .into_iter()
            .filter(|link| link.late_rank != ends::NONE);
        let known = known.map(|link| Party {
            location: self.location_of(link.late_rank, link.late_thread),
            number: link.event,
            time: link.time,
            share: link.share,
            enter: link.enter,
            since: link.since(),
        });
        known.collect()
    }

    fn location_of(&self, rank: u32, thread: u32) -> u32 {
        self.locations.get(&(rank, thread)).copied().unwrap_or(NONE)
    }

    /// Gives events that never became complete to `to`.
    fn rest(&mut self, to: &mut dyn Joined) -> Result<()> {
        let messages = std::mem::take(&mut self.messages);
        let mut messages: Vec<(u32, Window<Ends>)> = (0..).zip(messages).collect();
        messages.sort_unstable_by_key(|(pair, _)| self.pairs[*pair as usize]);
        for (pair, window) in messages {
            for (n, (send, receive)) in window.into_rest() {
                to.message(&self.message(pair, n, send, receive))?;
            }
        }
        let mut members: Vec<_> = std::mem::take(&mut self.members).into_iter().collect();
        members.sort_unstable_by_key(|(key, _)| *key);
        for ((_, group, _), member) in members {
            self.member_done(group, member, None, to)?;
        }
        let mut rest: Vec<_> = std::mem::take(&mut self.collectives)
            .into_values()
            .collect();
        rest.sort_unstable_by_key(|(sum, _)| (sum.group, sum.instance));
        for (sum, _) in rest {
            to.collective(&sum)?;
        }
        Ok(())
    }

    fn call_path(&self, at: usize, thread: u32, signature: &Signature) -> u32 {
        let location = self.first_location[at] + thread;
        self.events
            .path_number(location as usize, signature.call_path)
    }
}

/// The messages that a rank counted.
fn counted_of<'r>(rank: &'r mut Rank<'_>, direction: usize) -> &'r mut Option<Vec<Counted>> {
    match direction {
        SENT => &mut rank.messages.sends.counted,
        _ => &mut rank.messages.receives.counted,
    }
}
