//! Data joined from several calls, drawn between and inside of them.

use anyhow::Result;
use laggard_engine::events::{Collective, Events, Joined, Member, Message, NONE, Party, Wait};
use laggard_patterns::{Part, PatternId};
use laggard_trace::calls::{self, Call};
use rayon::prelude::*;

use super::super::critical;
use super::super::selection::{Drawn, Selection};
use super::chains::{Came, Cause, Chains};

/// Where a message is on a time line.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FlowEnd {
    /// Sent.
    From,
    /// Received, by a call that began after it was sent.
    To,
    /// Received by a call that had begun before it was sent: an arrow to that call would go back.
    Late,
}

/// The loss of a call.
#[derive(Clone, Copy, Debug)]
pub struct Loss {
    pub wait: Wait,
    /// The flow to the late call.
    pub hop: Option<u64>,
    /// The flow from the root cause, and when that began, ns.
    pub root: Option<(u64, i64)>,
    /// The party that was waited for longest.
    came: Option<Came>,
}

/// Flows between calls and losses inside of them.
pub struct Links<'e> {
    selection: &'e Selection,
    drawn: &'e [Drawn],
    ranks: Vec<u32>,
    /// Messages with both ends drawn.
    pub messages: u64,
    /// By location: number of a call, and the flow that begins or ends there.
    pub flows: Vec<Vec<(u64, u64, FlowEnd)>>,
    /// By location: losses of its calls, in their order.
    pub waits: Vec<Vec<Loss>>,
    chains: Chains,
    /// All waits, for the critical path.
    pub critical: critical::Waits,
    /// Flows.
    last: u64,
    /// Changes of the number of messages in flight: time, difference.
    pub in_flight: Vec<(i64, i64)>,
    /// Changes of the number of waiting locations: time, difference.
    pub waiting: Vec<(i64, i64)>,
}

impl<'e> Links<'e> {
    /// Empty, for the calls in `drawn`.
    pub fn new(events: &Events, selection: &'e Selection, drawn: &'e [Drawn]) -> Links<'e> {
        let ranks = (0..events.locations()).map(|at| events.place(at).rank);
        Links {
            selection,
            drawn,
            ranks: ranks.collect(),
            messages: 0,
            flows: vec![Vec::new(); drawn.len()],
            waits: vec![Vec::new(); drawn.len()],
            chains: Chains::new(drawn.len()),
            critical: critical::Waits::default(),
            last: 0,
            in_flight: Vec::new(),
            waiting: Vec::new(),
        }
    }

    /// Sorts by the order in which calls ended.
    pub fn sort(&mut self) {
        self.flows
            .iter_mut()
            .for_each(|flows| flows.sort_unstable());
        for waits in &mut self.waits {
            waits.sort_by_key(|loss| (loss.wait.leave, loss.wait.enter, loss.wait.pattern));
        }
        self.chains.sort();
        self.in_flight.sort_unstable();
        self.waiting.sort_unstable();
    }

    /// The number of a new flow.
    pub fn flow(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    /// Finds the flows from root causes to the waits that they started.
    pub fn find_roots(&mut self, causes: &mut [Vec<Cause>]) {
        let chains = std::mem::replace(&mut self.chains, Chains::new(0));
        let (selection, drawn) = (self.selection, self.drawn);
        let all = self.waits.par_iter().enumerate().map(|(at, losses)| {
            let started = losses.iter().enumerate().filter_map(|(number, loss)| {
                // Losses of calls in a region are drawn in these calls.
                let is_region = calls::call(loss.wait.call).is_some_and(Call::is_user);
                let is_drawn = drawn[at].count > 0
                    && !is_region
                    && selection.has_length(loss.wait.enter, loss.wait.leave);
                let came = loss.came.filter(|_| is_drawn)?;
                Some((number, chains.root(causes, at as u32, came)?))
            });
            started.collect::<Vec<_>>()
        });
        let all: Vec<Vec<(usize, (usize, usize))>> = all.collect();
        for (at, started) in all.into_iter().enumerate() {
            for (number, (late, position)) in started {
                let cause = &mut causes[late][position];
                // An arrow does not go back.
                if cause.stretch.1 < span(&self.waits[at][number].wait).1 {
                    let flow = self.flow();
                    cause.flows.push(flow);
                    self.waits[at][number].root = Some((flow, cause.stretch.1));
                }
            }
        }
    }

    /// A flow from a wait to the late call, if both are drawn and the call comes later.
    fn hop(&mut self, wait: &Wait) -> Option<u64> {
        let late = wait.cause.filter(|late| late.location != NONE)?;
        let is_drawn = self.selection.has_length(wait.enter, wait.leave)
            && self.drawn_at(late.location, late.number);
        if !is_drawn || late.enter < span(wait).0 {
            return None;
        }
        let flow = self.flow();
        self.flows[late.location as usize].push((late.number, flow, FlowEnd::To));
        Some(flow)
    }

    /// Whether the call of a message's end is drawn.
    fn drawn_at(&self, location: u32, number: u64) -> bool {
        self.drawn[location as usize].has(number)
    }
}

impl Joined for Links<'_> {
    fn begin(&mut self, borders: &[i64]) {
        self.critical.begin(borders);
    }

    fn message(&mut self, message: &Message) -> Result<()> {
        let (Some(send), Some(receive)) = (&message.send, &message.receive) else {
            return Ok(());
        };
        let Some(done) = receive.done else {
            return Ok(());
        };
        let is_wanted =
            self.selection.has_rank(message.from) && self.selection.has_rank(message.to);
        if !is_wanted || !self.selection.has_time(send.enter, done.leave) {
            return Ok(());
        }
        self.in_flight.push((send.enter, 1));
        self.in_flight.push((done.leave.max(send.enter), -1));
        if self.drawn_at(send.location, send.number) && self.drawn_at(receive.location, done.number)
        {
            self.messages += 1;
            let flow = self.flow();
            self.flows[send.location as usize].push((send.number, flow, FlowEnd::From));
            let end = match done.enter < send.enter {
                true => FlowEnd::Late,
                false => FlowEnd::To,
            };
            self.flows[receive.location as usize].push((done.number, flow, end));
        }
        Ok(())
    }

    fn member(&mut self, member: &Member) -> Result<()> {
        let leave = member.done.map_or(member.enter, |done| done.leave);
        if self.selection.has_time(member.enter, leave) {
            self.chains.meet(member);
        }
        Ok(())
    }

    fn collective(&mut self, _: &Collective) -> Result<()> {
        Ok(())
    }

    fn wait(&mut self, wait: &Wait) -> Result<()> {
        let rank = self.ranks[wait.location as usize];
        if self.selection.has_rank(rank) && self.selection.has_time(wait.enter, wait.leave) {
            let (begin, end) = span(wait);
            self.waiting.push((begin, 1));
            self.waiting.push((end, -1));
            let hop = self.hop(wait);
            self.waits[wait.location as usize].push(Loss {
                wait: *wait,
                hop,
                root: None,
                came: None,
            });
        }
        Ok(())
    }

    fn wants_parties(&self) -> bool {
        true
    }

    fn party(&mut self, wait: &Wait, party: &Party) -> Result<()> {
        self.critical.add(wait, party);
        // A chain may lead over ranks that are not drawn.
        if self.selection.has_time(wait.since, wait.leave) {
            self.chains.wait(wait.location, party);
        }
        if let Some(loss) = self.waits[wait.location as usize].last_mut()
            && loss.wait == *wait
            && loss.came.is_none_or(|came| came.share < party.share)
        {
            loss.came = Some(party.into());
        }
        Ok(())
    }
}

/// When a call waited. A loss after all members have come is at the call's end.
pub fn span(wait: &Wait) -> (i64, i64) {
    let lost = wait.lost.clamp(0, wait.leave - wait.enter);
    let pattern = PatternId::from_number(wait.pattern);
    match pattern.map(|pattern| pattern.row().part) {
        Some(Part::End) => (wait.leave - lost, wait.leave),
        _ => (wait.enter, wait.enter + lost),
    }
}

/// The links of a location's next calls.
pub struct Cursor<'l> {
    flows: &'l [(u64, u64, FlowEnd)],
    waits: &'l [Loss],
    /// The flows of the last call, by their end.
    pub from: Vec<u64>,
    /// Received by it.
    pub to: Vec<u64>,
    /// Received late by it.
    pub late: Vec<u64>,
}

impl<'l> Cursor<'l> {
    /// Before the first call of a location.
    pub fn new(links: &'l Links, location: usize) -> Cursor<'l> {
        Cursor {
            flows: &links.flows[location],
            waits: &links.waits[location],
            from: Vec::new(),
            to: Vec::new(),
            late: Vec::new(),
        }
    }

    /// Finds the messages that a call, or its parts, sent and received.
    pub fn find_flows(&mut self, number: u64) {
        let all = [&mut self.from, &mut self.to, &mut self.late];
        all.into_iter().for_each(Vec::clear);
        while let [(call, flow, end), rest @ ..] = self.flows
            && *call <= number
        {
            self.flows = rest;
            match end {
                FlowEnd::From => self.from.push(*flow),
                FlowEnd::To => self.to.push(*flow),
                FlowEnd::Late => self.late.push(*flow),
            }
        }
    }

    /// Losses of a call, in the order of time.
    pub fn waits(&mut self, enter: i64, leave: i64) -> Vec<&'l Loss> {
        let mut here = Vec::new();
        while let [loss, rest @ ..] = self.waits
            && (loss.wait.leave, loss.wait.enter) <= (leave, enter)
        {
            self.waits = rest;
            if (loss.wait.leave, loss.wait.enter) == (leave, enter) {
                here.push(loss);
            }
        }
        here.sort_by_key(|loss| span(&loss.wait).0);
        here
    }
}
