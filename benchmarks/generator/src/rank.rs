//! One rank of the simulated program.

use std::collections::VecDeque;

use laggard_trace::Endpoint;

use super::location::Location;
use super::op::{Half, Op};
use super::random::Random;
use super::site::SiteId;

/// A rank between two of its moments.
pub struct Rank {
    /// Its time, ns.
    pub now: u64,
    /// Operations before it asks its script again.
    pub ops: VecDeque<Op>,
    /// How far its script is.
    pub progress: Progress,
    /// The call that it is in, or has just left.
    pub call: Option<OpenCall>,
    /// Requests in the order of their posting.
    pub requests: VecDeque<Request>,
    /// Messages without a posted receive.
    pub inbox: VecDeque<Envelope>,
    /// Receives without a message, in the order of their posting.
    pub posted: Vec<Posted>,
    /// Requests made so far, including those inside blocking calls.
    pub made: u32,
    /// Collectives so far on the world, the row and the column.
    pub collectives: [u64; 3],
    /// Source and tag of the message that was received last.
    pub last: (u32, i32),
    /// Its own noise.
    pub random: Random,
    /// Its file, until it is closed.
    pub location: Option<Location>,
    /// Its times.
    pub times: Times,
}

/// Where a rank is in its script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Before everything.
    Start,
    /// Before this step.
    Step(u64),
    /// In MPI_Finalize.
    Ending,
}

/// Times of a rank, ns.
#[derive(Clone, Copy, Debug, Default)]
pub struct Times {
    /// Outside of calls, between the first and the last.
    pub computation: u64,
    /// MPI_Init's leave.
    pub started: u64,
    /// MPI_Finalize's enter.
    pub stopped: u64,
    /// The first call's enter.
    pub start: u64,
}

/// A call under way, or over and not booked yet.
#[derive(Clone, Copy, Debug)]
pub struct OpenCall {
    /// Its place.
    pub site: SiteId,
    /// ns.
    pub enter: u64,
    /// ns, once it is known.
    pub leave: Option<u64>,
    /// Its own duration without waiting, ns.
    pub overhead: u64,
    /// When it has everything it waits for, as far as known, ns.
    pub ready: u64,
    /// Number of things that it still waits for.
    pub needs: u32,
    /// The requests that it completes: position of the first, and how many.
    pub covers: (usize, usize),
    /// Whether they are the program's requests, not only inside the call.
    pub completes: bool,
    /// Flags of its signature.
    pub flags: u16,
    /// Communicator, 0 = none.
    pub group: u64,
    /// As in the trace.
    pub send: Endpoint,
    /// As in the trace.
    pub receive: Endpoint,
    /// As in the trace.
    pub object: u64,
}

/// A send or receive that was begun.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    /// Its number at this rank.
    pub id: u32,
    /// Its post number in the trace; without meaning inside a blocking call.
    pub post: u64,
    /// Whether it sends.
    pub sends: bool,
    /// Its half of the message.
    pub half: Half,
    /// When it is done, ns.
    pub done: Option<u64>,
    /// The other end.
    pub partner: Option<Partner>,
}

/// The other end of a message.
#[derive(Clone, Copy, Debug)]
pub struct Partner {
    /// World rank.
    pub rank: u32,
    /// Its call.
    pub site: SiteId,
    /// When that rank entered the call, ns.
    pub time: u64,
    /// The message's tag.
    pub tag: i32,
    /// The message's size.
    pub bytes: u64,
}

/// A message under way.
#[derive(Clone, Copy, Debug)]
pub struct Envelope {
    /// Source.
    pub source: u32,
    /// Its request.
    pub request: u32,
    /// The sending call.
    pub site: SiteId,
    /// Tag.
    pub tag: i32,
    /// Size.
    pub bytes: u64,
    /// When the send was entered, ns.
    pub sent: u64,
    /// Whether the sender waits for the receive.
    pub is_synchronous: bool,
}

/// A receive that waits for its message.
#[derive(Clone, Copy, Debug)]
pub struct Posted {
    /// The rank's request.
    pub request: u32,
    /// The messages that match.
    pub half: Half,
    /// The posting call.
    pub site: SiteId,
    /// When it was entered, ns.
    pub time: u64,
}

impl Rank {
    /// A rank before its first operation.
    pub fn new(location: Location, random: Random) -> Rank {
        Rank {
            now: 0,
            ops: VecDeque::new(),
            progress: Progress::Start,
            call: None,
            requests: VecDeque::new(),
            inbox: VecDeque::new(),
            posted: Vec::new(),
            made: 0,
            collectives: [0; 3],
            last: (0, 0),
            random,
            location: Some(location),
            times: Times::default(),
        }
    }

    /// Takes the message that a receive gets, if there is one: the one sent first.
    pub fn take_message(&mut self, half: &Half) -> Option<Envelope> {
        let fits = |message: &Envelope| half.fits(message.source, message.tag);
        let at = self.inbox.iter().position(fits)?;
        self.inbox.remove(at)
    }

    /// Takes the receive that a message fulfils, if there is one: the one posted first.
    pub fn take_posted(&mut self, source: u32, tag: i32) -> Option<Posted> {
        let fits = |posted: &Posted| posted.half.fits(source, tag);
        let at = self.posted.iter().position(fits)?;
        Some(self.posted.remove(at))
    }

    /// Settles a request. Returns whether the rank's current call now has everything it waits for.
    pub fn settle(&mut self, id: u32, done: u64, partner: Partner) -> bool {
        let Some(at) = self.requests.iter().position(|request| request.id == id) else {
            // A buffered send whose call is long over.
            return false;
        };
        let request = &mut self.requests[at];
        request.partner = Some(partner);
        if request.done.is_some() {
            return false;
        }
        request.done = Some(done);
        let Some(call) = &mut self.call else {
            return false;
        };
        let (first, count) = call.covers;
        if call.leave.is_some() || !(first..first + count).contains(&at) {
            return false;
        }
        call.ready = call.ready.max(done);
        call.needs -= 1;
        call.needs == 0
    }
}
