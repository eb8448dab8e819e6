//! The joined tables: messages, collectives, losses.

use anyhow::Result;
use laggard_engine::events::{Collective, Events, Joined, Member, Message, MessageEnd, Wait};
use laggard_tables::trace::{CollectiveRow, MemberRow, MessageRow, Rows, Table, Tables, WaitRow};

use super::keys::{call_key, group_key, pattern_key};
use super::roots::Roots;

/// The joined tables.
pub struct JoinedTables<'r> {
    roots: &'r Roots<'r>,
    /// Rank and thread of each location.
    places: Vec<(u32, u32)>,
    messages: (Table, Rows<MessageRow>),
    members: (Table, Rows<MemberRow>),
    collectives: (Table, Rows<CollectiveRow>),
    waits: (Table, Rows<WaitRow>),
}

impl<'r> JoinedTables<'r> {
    /// Begins the tables.
    pub fn new(tables: &Tables, events: &Events, roots: &'r Roots<'r>) -> Result<Self> {
        let places = (0..events.locations()).map(|at| events.place(at));
        Ok(JoinedTables {
            roots,
            places: places.map(|place| (place.rank, place.thread)).collect(),
            messages: (tables.table::<MessageRow>()?, Rows::default()),
            members: (tables.table::<MemberRow>()?, Rows::default()),
            collectives: (tables.table::<CollectiveRow>()?, Rows::default()),
            waits: (tables.table::<WaitRow>()?, Rows::default()),
        })
    }

    /// Completes the tables; returns the number of messages.
    pub fn finish(mut self) -> Result<u64> {
        self.messages.1.flush(&mut self.messages.0, true)?;
        self.members.1.flush(&mut self.members.0, true)?;
        self.collectives.1.flush(&mut self.collectives.0, true)?;
        self.waits.1.flush(&mut self.waits.0, true)?;
        self.members.0.finish()?;
        self.collectives.0.finish()?;
        self.waits.0.finish()?;
        Ok(self.messages.0.finish()?)
    }

    fn place(&self, location: u32) -> (u32, u32) {
        self.places[location as usize]
    }
}

impl Joined for JoinedTables<'_> {
    fn message(&mut self, message: &Message) -> Result<()> {
        let Message { send, receive, .. } = message;
        let done = |end: &MessageEnd| end.done;
        let (sent, received) = (
            send.as_ref().and_then(done),
            receive.as_ref().and_then(done),
        );
        let row = MessageRow {
            from_rank: message.from,
            to_rank: message.to,
            communicator: group_key(message.group),
            tag: message.tag,
            number: message.number,
            bytes: send.or(*receive).map_or(0, |end| end.bytes),
            send_thread: send.map(|end| self.place(end.location).1),
            send_call: send.map(|end| call_key(end.call)),
            send_number: send.map(|end| end.number),
            send_ns: send.map(|end| end.enter),
            send_done_number: sent.map(|call| call.number),
            send_done_ns: sent.map(|call| call.leave),
            send_call_path: send.map(|end| end.call_path),
            receive_thread: receive.map(|end| self.place(end.location).1),
            receive_call: receive.map(|end| call_key(end.call)),
            receive_number: receive.map(|end| end.number),
            receive_ns: receive.map(|end| end.enter),
            receive_done_number: received.map(|call| call.number),
            receive_wait_ns: received.map(|call| call.enter),
            receive_done_ns: received.map(|call| call.leave),
            receive_call_path: receive.map(|end| end.call_path),
        };
        self.messages.1.push(row);
        Ok(self.messages.1.flush(&mut self.messages.0, false)?)
    }

    fn member(&mut self, member: &Member) -> Result<()> {
        let (rank, thread) = self.place(member.location);
        self.members.1.push(MemberRow {
            communicator: group_key(member.group),
            instance: member.instance,
            rank,
            thread,
            call: call_key(member.call),
            number: member.number,
            enter_ns: member.enter,
            done_number: member.done.map(|done| done.number),
            wait_ns: member.done.map(|done| done.enter),
            leave_ns: member.done.map(|done| done.leave),
            bytes_sent: member.bytes_sent,
            bytes_received: member.bytes_received,
            call_path: member.call_path,
        });
        Ok(self.members.1.flush(&mut self.members.0, false)?)
    }

    fn collective(&mut self, collective: &Collective) -> Result<()> {
        self.collectives.1.push(CollectiveRow {
            communicator: group_key(collective.group),
            instance: collective.instance,
            call: call_key(collective.call),
            members: collective.members,
            expected: collective.expected,
            first_enter_ns: collective.first_enter,
            first_rank: collective.first_rank,
            last_enter_ns: collective.last_enter,
            last_rank: collective.last_rank,
            first_leave_ns: collective.first_leave,
            last_leave_ns: collective.last_leave,
            bytes_sent: collective.bytes_sent,
        });
        Ok(self.collectives.1.flush(&mut self.collectives.0, false)?)
    }

    fn wait(&mut self, wait: &Wait) -> Result<()> {
        let (rank, thread) = self.place(wait.location);
        self.waits.1.push(WaitRow {
            pattern: pattern_key(wait.pattern),
            rank,
            thread,
            call: call_key(wait.call),
            enter_ns: wait.enter,
            leave_ns: wait.leave,
            lost_ns: wait.lost,
            call_path: wait.call_path,
            cause_rank: wait.cause.map(|cause| cause.rank),
            cause_call: wait.cause.map(|cause| call_key(cause.call)),
            cause_call_path: wait.cause.map(|cause| cause.call_path),
            root_cause: self
                .roots
                .of_wait(wait.pattern, wait.call, wait.call_path)
                .map(|at| at as u32 + 1),
        });
        Ok(self.waits.1.flush(&mut self.waits.0, false)?)
    }
}
