//! Facts about a signature for pass one, in one small row.

use laggard_trace::calls::user::{REGION, STEER};
use laggard_trace::calls::{self, GenericType, Shape, number};
use laggard_trace::{ASSERT_NO_PRECEDE, OUTCOME_CANCELLED, PEER_NONE, Signature, flags};

use crate::basics::ends::NONE;
use crate::stream::roles::{Among, Memory, Role};

/// Class of the time in an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum TimeClass {
    /// Moving data.
    Communication,
    /// Waiting for others, as the call's purpose.
    Synchronization,
    /// Files.
    Io,
    /// Handles, start of the library.
    Setup,
}

impl TimeClass {
    /// The class of a call with these flags.
    pub fn of_call(number: u16, flags: u16) -> TimeClass {
        match flags & flags::ON_FILES {
            0 => TimeClass::of(number),
            _ => TimeClass::Io,
        }
    }

    /// The class of a call, whatever it completes.
    pub fn of(number: u16) -> TimeClass {
        match calls::call(number).map_or(GenericType::Setup, |call| call.generic) {
            GenericType::GroupSync
                if calls::call(number).is_some_and(|call| call.shape == Shape::CollectiveIo) =>
            {
                TimeClass::Io
            }
            GenericType::GroupSync
            | GenericType::Lock
            | GenericType::Unlock
            | GenericType::WaitOnValue
            | GenericType::Exposure
            | GenericType::Threads => TimeClass::Synchronization,
            GenericType::Io => TimeClass::Io,
            GenericType::Setup | GenericType::User => TimeClass::Setup,
            _ => TimeClass::Communication,
        }
    }
}

/// Calls that complete requests without waiting for them.
const NEVER_WAIT: [u16; 6] = [
    number::MPI_Test,
    number::MPI_Testall,
    number::MPI_Testany,
    number::MPI_Testsome,
    number::MPI_Request_get_status,
    number::MPI_Request_free,
];

/// Further calls that only look whether something has come.
const LOOK: [u16; 3] = [
    number::MPI_Iprobe,
    number::MPI_Improbe,
    number::MPI_Win_test,
];

/// Calls that complete nothing but the requests that their records list.
const COMPLETE: [u16; 8] = [
    number::MPI_Wait,
    number::MPI_Waitall,
    number::MPI_Waitany,
    number::MPI_Waitsome,
    number::MPI_Test,
    number::MPI_Testall,
    number::MPI_Testany,
    number::MPI_Testsome,
];

/// Calls that complete whichever requests are done first.
const TAKE_FIRST: [u16; 2] = [number::MPI_Waitany, number::MPI_Waitsome];

/// Operations in which each member needs the data of all, if there are any. Those with a number of
/// bytes for each member are excluded: it may be zero.
const MEETINGS: [u16; 8] = [
    number::MPI_Allgather,
    number::MPI_Iallgather,
    number::MPI_Alltoall,
    number::MPI_Ialltoall,
    number::MPI_Allreduce,
    number::MPI_Iallreduce,
    number::MPI_Reduce_scatter_block,
    number::MPI_Ireduce_scatter_block,
];

/// Action of pass one for a call without an extension record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Counts an undefined signature.
    Undefined,
    Nothing,
    /// Only counts a message.
    Send,
    /// See `Send`; the call posts a request.
    PostSend,
    /// See `Send`; unless a wildcard is in the way.
    Receive,
    /// See `Receive`; the call posts a request.
    PostReceive,
    /// `Send`, then `Receive`.
    Exchange,
    /// Only completes requests.
    Complete,
    /// Only enters a blocking collective.
    Collective,
    /// Anything else.
    General,
}

/// A rank's need of others in a call, before it gives them anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NeedKind {
    /// None: it gives something.
    Nothing,
    /// The other side of a slow call.
    Wait,
    /// That all members come.
    Meeting,
}

/// One row.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// Number of the call; 0 = the signature was never defined.
    pub operation: u16,
    /// Flags of the signature.
    pub flags: u16,
    /// Who waits for whom.
    pub shape: Shape,
    pub class: TimeClass,
    /// Action of pass one.
    pub step: Step,
    /// Whether the call waits for the requests that it completes, or only tests them.
    pub blocks: bool,
    /// Whether the call only looks whether something has come.
    pub looks: bool,
    /// Whether the call tests or waits for requests, but completes none, such as null requests. What its
    /// record alone completes is not known here.
    pub idles: bool,
    /// Whether it is surely a call for communication or files that has not looked in vain, and in which neither
    /// all ranks nor threads meet. Most calls are.
    pub is_plain: bool,
    /// Whether the call takes any source's message, or any of its requests.
    pub any: bool,
    /// Channel of the send half, by the rank's number.
    pub send_channel: u32,
    /// Channel of the receive half, by the rank's number.
    pub receive_channel: u32,
    /// Group, by the agent's number.
    pub group: u32,
    /// Group, by the rank's number.
    pub own_group: u32,
    /// Instances at least this long are slow, ns; `i64::MAX` = none.
    pub threshold: i64,
    /// Instances at least this long are asked about, ns; `i64::MAX` = none.
    pub asks_from: i64,
    /// Root of a collective, or target of a one-sided transfer; world rank.
    pub root: i32,
    /// Whether data moves.
    pub has_bytes: bool,
    /// Whether it sends a message without data. Unknown, and `false`, where only the record has the
    /// endpoint.
    pub is_empty: bool,
    /// Whether it is a collective that nobody can leave before all have entered.
    pub meets: bool,
    /// Whether all ranks of the run meet in it and wait.
    pub of_all: bool,
    /// Whether the collective declares that it need not wait for the others.
    pub lifted: bool,
    /// The rank's need in this call after a slow one, if this one is not slow; `None` if it gives
    /// others nothing and does not need the data of all.
    pub need: Option<NeedKind>,
    /// Role in epochs on a window.
    pub role: Role,
    /// Completion list.
    pub completes: u32,
    /// Role in symmetric memory.
    pub memory: Memory,
    /// Role among the threads of the rank.
    pub among: Among,
}

impl Row {
    /// The row of an undefined signature.
    pub const UNDEFINED: Row = Row {
        operation: 0,
        flags: 0,
        shape: Shape::Single,
        class: TimeClass::Setup,
        step: Step::Undefined,
        blocks: true,
        looks: false,
        idles: false,
        is_plain: false,
        any: false,
        send_channel: NONE,
        receive_channel: NONE,
        group: NONE,
        own_group: 0,
        threshold: i64::MAX,
        asks_from: i64::MAX,
        root: -1,
        has_bytes: false,
        is_empty: false,
        meets: false,
        of_all: false,
        lifted: false,
        need: None,
        role: Role::None,
        completes: 0,
        memory: Memory::Nothing,
        among: Among::Nothing,
    };

    /// The row of a signature, without channels, group and threshold.
    pub fn new(signature: &Signature) -> Row {
        let Some(call) = calls::call(signature.operation) else {
            return Row::UNDEFINED;
        };
        let has_bytes = signature.send.bytes != 0 || signature.receive.bytes != 0;
        let role = match signature.flags & (flags::FAILED | flags::UNSUCCESSFUL) {
            0 => Role::of(signature.operation),
            _ => Role::None,
        };
        let memory = Memory::of(call);
        let among = Among::of(call.number);
        let matters = flags::POSTS | flags::SENDS | flags::RECEIVES | flags::COLLECTIVE;
        let row = Row {
            operation: signature.operation,
            flags: signature.flags,
            shape: call.shape,
            class: TimeClass::of_call(signature.operation, signature.flags),
            step: match (signature.flags & matters, signature.completes, role, memory) {
                (0, 0, Role::None, Memory::Nothing) if among == Among::Nothing => Step::Nothing,
                _ => Step::General,
            },
            blocks: !NEVER_WAIT.contains(&signature.operation),
            looks: (NEVER_WAIT.contains(&signature.operation)
                && signature.operation != number::MPI_Request_free
                || LOOK.contains(&signature.operation)
                || matches!(memory, Memory::Looks | Memory::TriesLock))
                && signature.flags & (flags::PAUSED | flags::FAILED) == 0,
            idles: COMPLETE.contains(&signature.operation)
                && signature.completes == 0
                && signature.flags
                    & (matters | flags::PAUSED | flags::FAILED | flags::UNSUCCESSFUL)
                    == 0,
            any: signature.has(flags::ANY_SOURCE) || TAKE_FIRST.contains(&signature.operation),
            root: match call.generic {
                GenericType::OneSidedGet => signature.receive.peer,
                // An atomic that only reads.
                GenericType::OneSidedAtomic if signature.send.peer == PEER_NONE => {
                    signature.receive.peer
                }
                _ => signature.send.peer,
            },
            has_bytes,
            is_empty: signature.has(flags::SENDS)
                && signature.send.peer >= 0
                && signature.send.bytes == 0,
            // A region of the program is no evidence for clocks.
            meets: matches!(call.shape, Shape::Barrier | Shape::PeBarrier) && !call.is_user()
                || MEETINGS.contains(&signature.operation) && has_bytes,
            lifted: call.shape == Shape::Fence && signature.parameter & ASSERT_NO_PRECEDE != 0,
            role,
            completes: signature.completes,
            memory,
            among,
            ..Row::UNDEFINED
        };
        Row {
            need: row.need_of(call.generic),
            ..row
        }
    }

    /// Whether it waits until all members have come.
    pub fn is_meeting(&self) -> bool {
        self.needs_all() && !self.has(flags::POSTS)
    }

    /// Whether it is complete when all members have come; if it is non-blocking, whoever completes
    /// it knows that.
    pub fn needs_all(&self) -> bool {
        let is_shape = matches!(
            self.shape,
            Shape::Barrier
                | Shape::PeBarrier
                | Shape::AllToAll
                | Shape::Management
                | Shape::WindowCreate
                | Shape::WindowFree
                | Shape::Fence
                | Shape::CollectiveIo
                | Shape::Init
                | Shape::Finalize
        );
        is_shape && !self.lifted
    }

    /// See [`Row::need`].
    fn need_of(&self, generic: GenericType) -> Option<NeedKind> {
        let gives_nothing = matches!(
            generic,
            GenericType::TwoSidedReceive
                | GenericType::Completion
                | GenericType::WaitOnValue
                | GenericType::Io
                | GenericType::Setup
                | GenericType::User
                | GenericType::Threads
        );
        let is_alone = self.shape == Shape::Single;
        match self.has(flags::SENDS) {
            false if self.is_meeting() => Some(NeedKind::Meeting),
            false if is_alone && gives_nothing => None,
            _ => Some(NeedKind::Nothing),
        }
    }

    /// Whether its calls look, or may be part of looking.
    #[inline(always)]
    pub fn can_be_looking(&self) -> bool {
        self.looks || self.idles
    }

    /// Whether it is no call: it marks a region of the program, which encloses calls, or a change of the
    /// recording.
    pub fn is_mark(&self) -> bool {
        matches!(self.operation, REGION | STEER)
    }

    /// Whether it is a region of the program, or a function of a user's library.
    pub fn is_user(&self) -> bool {
        calls::call(self.operation).is_some_and(calls::Call::is_user)
    }

    /// Chooses the step; the channels and `of_all` must be set.
    pub fn choose_step(&mut self) {
        self.is_plain = self.class != TimeClass::Setup
            && self.among == Among::Nothing
            && !(self.of_all || self.has(flags::UNSUCCESSFUL) || self.is_user() || self.is_mark());
        let roles =
            flags::POSTS | flags::SENDS | flags::RECEIVES | flags::COLLECTIVE | flags::PEEKS;
        const POST_SEND: u16 = flags::POSTS | flags::SENDS;
        const POST_RECEIVE: u16 = flags::POSTS | flags::RECEIVES;
        const EXCHANGE: u16 = flags::SENDS | flags::RECEIVES;
        let (sends, receives) = (self.send_channel != NONE, self.receive_channel != NONE);
        self.step = match (self.flags & roles, self.completes) {
            (flags::SENDS, 0) if sends => Step::Send,
            (POST_SEND, 0) if sends => Step::PostSend,
            (flags::RECEIVES, 0) if receives && !self.looks => Step::Receive,
            (POST_RECEIVE, 0) if receives => Step::PostReceive,
            (EXCHANGE, 0) if sends && receives => Step::Exchange,
            (0, 1..) => Step::Complete,
            (flags::COLLECTIVE, 0) if self.group != NONE => Step::Collective,
            _ => return,
        };
    }

    /// Whether all bits of `flag` are set.
    #[inline(always)]
    pub fn has(&self, flag: u16) -> bool {
        self.flags & flag == flag
    }
}

/// End of a request, from a completion's outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// As it was posted.
    AsPosted,
    /// A wildcard receive: the signature with its source and tag.
    Resolved(u32),
    /// Cancelled without a message.
    Cancelled,
}

impl From<u32> for Outcome {
    fn from(value: u32) -> Self {
        match value {
            0 => Outcome::AsPosted,
            OUTCOME_CANCELLED => Outcome::Cancelled,
            signature => Outcome::Resolved(signature),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use laggard_trace::calls::CALLS;

    /// Reports know by a call's name what the replay knows by its row.
    #[test]
    fn calls_that_look_are_known_by_their_names() {
        for call in CALLS {
            let signature = Signature {
                operation: call.number,
                ..Signature::default()
            };
            let looks = Row::new(&signature).looks;
            assert_eq!(laggard_report::polls(call.name), looks, "{}", call.name);
        }
    }
}
