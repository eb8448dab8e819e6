//! The simulation: ranks that call, in the order of time.
//!
//! The rank with the earliest next moment always comes next. So everything before that moment is
//! known: which message a wildcard gets, which messages had been sent when another one was late. A
//! waiting call leaves when everything it waits for is there. It is booked when its rank goes on,
//! since others may still do something that counts for it until then.

mod meeting;
pub mod messages;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;

use laggard_trace::{Endpoint, Signature, TAG_ANY, WORLD, flags};
use rustc_hash::FxHashMap;

use self::meeting::Meeting;
use self::messages::{Unmatched, endpoint};
use crate::clock::HostClock;
use crate::faults;
use crate::grid::Grid;
use crate::ledger::Ledger;
use crate::location::{Call, NOBODY};
use crate::op::{Op, Peer};
use crate::programs::{self, Script};
use crate::random::Random;
use crate::rank::{OpenCall, Progress, Rank};
use crate::site::{self, Site, SiteId};
use crate::{Settings, Written};

/// Least duration of a call without waiting, and largest random addition, ns.
const CALL: u64 = 100;
/// Bytes that travel in a ns.
pub const BYTES_PER_NS: u64 = 10;
/// Computation before MPI_Init, ns.
const START: u64 = 1_000_000;
/// Largest random addition to it, ns.
const START_SPREAD: u64 = 200_000;

/// The ranks of a program, and the messages and collectives between them.
pub struct World<'a> {
    /// The settings.
    pub settings: &'a Settings,
    /// What the ranks do.
    pub script: Box<dyn Script>,
    /// Its steps.
    pub steps: u64,
    /// How the ranks are arranged.
    pub grid: Grid,
    /// Places.
    pub sites: Vec<Site>,
    /// By number.
    pub ranks: Vec<Rank>,
    /// Collectives that not all members have entered, by communicator and number.
    pub meetings: FxHashMap<(u64, u64), Meeting>,
    /// The losses, if expectations are wanted.
    pub ledger: Option<Ledger>,
    /// Calls at each place.
    pub calls: Vec<u64>,
    /// Messages that lack an end.
    pub unmatched: Vec<Unmatched>,
    /// Messages that were received.
    pub messages: u64,
    /// Bytes of these messages.
    pub message_bytes: u64,
    /// Calls and bytes in the files.
    pub written: Written,
    queue: BinaryHeap<Reverse<(u64, u32)>>,
    /// The rank whose turn it is.
    current: u32,
}

impl<'a> World<'a> {
    /// All ranks before their start.
    pub fn new(
        settings: &'a Settings,
        script: Box<dyn Script>,
        sites: Vec<Site>,
        steps: u64,
        grid: Grid,
        ranks: Vec<Rank>,
    ) -> World<'a> {
        let ledger = settings
            .expectations
            .then(|| Ledger::new(settings.ranks, settings.ranks_on_host(), sites.len()));
        World {
            settings,
            script,
            steps,
            grid,
            calls: vec![0; sites.len()],
            sites,
            ranks,
            meetings: FxHashMap::default(),
            ledger,
            unmatched: Vec::new(),
            messages: 0,
            message_bytes: 0,
            written: Written::default(),
            queue: BinaryHeap::new(),
            current: 0,
        }
    }

    /// Largest error of the straight lines between measurements, ns.
    pub fn bend(&self, end: u64) -> u64 {
        let (skew, seed) = (&self.settings.skew, self.settings.seed);
        if skew.wander_ppm <= 0.0 {
            return 0;
        }
        let hosts = 0..self.settings.hosts();
        let bends = hosts.map(|host| HostClock::new(skew, host, seed).bend(end));
        bends.max().unwrap_or(0)
    }

    /// Runs the program to its end.
    ///
    /// # Errors
    /// What the file system says, or that ranks wait for each other for ever.
    pub fn run(&mut self) -> io::Result<()> {
        let mut running = self.ranks.len();
        self.queue
            .extend((0..self.settings.ranks).map(|rank| Reverse((0, rank))));
        while let Some(Reverse((_, rank))) = self.queue.pop() {
            self.current = rank;
            running -= usize::from(self.resume(rank)?);
        }
        let waits = |rank: &Rank| rank.location.is_some();
        match self.ranks.iter().position(waits) {
            Some(rank) if running > 0 => Err(io::Error::other(format!(
                "the program is stuck: rank {rank} and {} others wait for ever",
                running - 1
            ))),
            _ => Ok(()),
        }
    }

    /// Lets a rank go on while it is the earliest; returns whether it has ended.
    fn resume(&mut self, rank: u32) -> io::Result<bool> {
        loop {
            self.conclude(rank);
            let own = &mut self.ranks[rank as usize];
            let Some(op) = own.ops.pop_front() else {
                if own.progress == Progress::Ending {
                    self.end(rank)?;
                    return Ok(true);
                }
                self.plan(rank);
                continue;
            };
            self.execute(rank, op);
            let own = &self.ranks[rank as usize];
            if own.call.is_some_and(|call| call.leave.is_none()) {
                return Ok(false);
            }
            let next = (own.now, rank);
            if self
                .queue
                .peek()
                .is_some_and(|Reverse(first)| *first < next)
            {
                self.queue.push(Reverse(next));
                return Ok(false);
            }
        }
    }

    /// Asks the script what a rank does next.
    fn plan(&mut self, rank: u32) {
        let own = &mut self.ranks[rank as usize];
        match own.progress {
            Progress::Start => {
                let spread = own.random.below(START_SPREAD);
                own.ops.push_back(Op::Pause(START + spread));
                own.ops.push_back(programs::on_world(site::INIT));
                self.script.begin(rank, &mut own.ops);
                own.progress = Progress::Step(0);
            }
            Progress::Step(step) => {
                let goes_on = step < self.steps || self.script.ends_by_message(rank);
                if goes_on && self.script.step(rank, step, own.last.1, &mut own.ops) {
                    let first = faults::hold_up(&self.settings.faults, rank, step);
                    if first > 0 {
                        own.ops.push_front(Op::Pause(first));
                    }
                    let lost = programs::lost(&self.settings.faults, rank, step, self.settings);
                    own.ops.extend(lost);
                    own.progress = Progress::Step(step + 1);
                    return;
                }
                own.ops.push_back(programs::on_world(site::FINALIZE));
                own.progress = Progress::Ending;
            }
            Progress::Ending => {}
        }
    }

    fn end(&mut self, rank: u32) -> io::Result<()> {
        let own = &mut self.ranks[rank as usize];
        own.ops = Default::default();
        own.requests = Default::default();
        own.posted = Vec::new();
        if let Some(location) = own.location.take() {
            self.written.calls += location.calls();
            self.written.bytes += location.close(own.now)?;
        }
        Ok(())
    }

    fn execute(&mut self, rank: u32, op: Op) {
        let own = &mut self.ranks[rank as usize];
        match op {
            Op::Compute(ns) => {
                let step = match own.progress {
                    Progress::Step(next) => next.saturating_sub(1),
                    Progress::Start | Progress::Ending => 0,
                };
                let faults = &self.settings.faults;
                self.pause(rank, |random| {
                    faults::computation(faults, rank, step, ns, random)
                });
            }
            Op::Pause(ns) => self.pause(rank, |_| ns),
            Op::Send(site, half) => {
                self.begin(rank, site, WORLD);
                self.send(rank, half);
                self.wait_inside(rank, 1);
            }
            Op::SendLost(site, half) => {
                self.begin(rank, site, WORLD);
                self.send_lost(rank, half);
                self.wait_inside(rank, 1);
            }
            Op::Recv(site, half) => {
                self.begin(rank, site, WORLD);
                self.receive(rank, half);
                self.wait_inside(rank, 1);
            }
            Op::Sendrecv(site, send, receive) => {
                self.begin(rank, site, WORLD);
                self.send(rank, send);
                self.receive(rank, receive);
                self.wait_inside(rank, 2);
            }
            Op::Isend(site, half) => {
                self.begin(rank, site, WORLD).flags |= flags::POSTS;
                self.send(rank, half);
                self.leave(rank);
            }
            Op::Irecv(site, half) => {
                self.begin(rank, site, WORLD).flags |= flags::POSTS;
                self.receive(rank, half);
                self.leave(rank);
            }
            Op::IrecvLost(site, half) => {
                let call = self.begin(rank, site, WORLD);
                call.flags |= flags::POSTS | flags::RECEIVES;
                call.receive = endpoint(&half);
                self.unmatched.push(Unmatched {
                    rank,
                    site,
                    half,
                    sends: false,
                });
                self.leave(rank);
            }
            Op::Wait(site) => self.wait_for(rank, site, 1),
            Op::Waitall(site) => {
                let all = own.requests.len();
                self.wait_for(rank, site, all);
            }
            Op::Collective {
                site,
                among,
                root,
                bytes,
            } => self.meet(rank, site, among, root, bytes),
            Op::Split(site, among) => self.split(rank, site, among),
        }
    }

    fn pause(&mut self, rank: u32, length: impl FnOnce(&mut Random) -> u64) {
        let own = &mut self.ranks[rank as usize];
        let ns = length(&mut own.random);
        own.now += ns;
        // A rank's time begins with its first call.
        if own.times.start > 0 {
            own.times.computation += ns;
        }
    }

    /// Enters a call.
    pub fn begin(&mut self, rank: u32, site: SiteId, group: u64) -> &mut OpenCall {
        let own = &mut self.ranks[rank as usize];
        if own.times.start == 0 {
            own.times.start = own.now;
        }
        self.calls[site as usize] += 1;
        own.call.insert(OpenCall {
            site,
            enter: own.now,
            leave: None,
            overhead: CALL + own.random.below(CALL),
            ready: own.now,
            needs: 0,
            covers: (own.requests.len(), 0),
            completes: false,
            flags: 0,
            group,
            send: NOBODY,
            receive: NOBODY,
            object: 0,
        })
    }

    /// A rank's call has everything it waits for. Writes the call, and lets the rank go on after
    /// its leave.
    pub fn leave(&mut self, rank: u32) -> (u64, u64) {
        let own = &mut self.ranks[rank as usize];
        let (Some(call), Some(location)) = (&mut own.call, &mut own.location) else {
            return (0, 0);
        };
        let leave = call.ready + call.overhead;
        call.leave = Some(leave);
        match call.site {
            site::INIT => own.times.started = leave,
            site::FINALIZE => own.times.stopped = call.enter,
            _ => {}
        }
        own.now = leave;
        let mut completes: Vec<(u64, Option<Signature>)> = Vec::new();
        let (first, count) = call.covers;
        for request in own.requests.range(first..first + count) {
            let Some(partner) = request.partner.filter(|_| !request.sends) else {
                if call.completes {
                    completes.push((request.post, None));
                }
                continue;
            };
            own.last = (partner.rank, partner.tag);
            let received = Endpoint {
                peer: partner.rank as i32,
                tag: partner.tag,
                bytes: partner.bytes,
            };
            if !call.completes {
                call.receive = received;
                continue;
            }
            let is_wild = request.half.peer == Peer::Any || request.half.tag == TAG_ANY;
            let outcome = is_wild.then(|| Signature {
                flags: flags::RECEIVES,
                group: WORLD,
                send: NOBODY,
                receive: received,
                ..Signature::default()
            });
            completes.push((request.post, outcome));
        }
        let times = (call.enter, leave);
        location.call(&Call {
            site: call.site,
            times,
            flags: call.flags,
            group: call.group,
            send: call.send,
            receive: call.receive,
            object: call.object,
            completes: &completes,
        });
        if rank != self.current {
            self.queue.push(Reverse((leave, rank)));
        }
        times
    }
}
