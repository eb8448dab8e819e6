//! The tables of a trace. `TABLES.md` beside this crate says the same in words.

use arrow_array::ArrayRef;
use arrow_schema::DataType;

use super::cell::{Cell, Dictionaries, Key, Row, name_of, tables};

tables! {
    /// A thread of a rank.
    LocationRow / LocationColumns = "locations" {
        /// Rank in `MPI_COMM_WORLD`.
        rank: u32,
        /// Thread of the rank.
        thread: u32,
        /// Its host.
        host: String,
        /// Process.
        pid: u32,
        /// When its first call began, ns.
        first_ns: i64,
        /// When its last call ended, ns.
        last_ns: i64,
        /// Rows in `operations`.
        operations: u64,
        /// Calls that these stand for.
        calls: u64,
        /// Whether its file was closed.
        complete: bool,
    }
    /// A call path.
    CallPathRow / CallPathColumns = "call_paths" {
        /// As other tables refer to it; 0 is the unknown one.
        call_path: u32,
        /// Source file of the line that makes the call.
        file: Option<String>,
        /// Its line.
        line: Option<u32>,
        /// Function around it.
        function: Option<String>,
        /// Frames, outermost first.
        frames: Option<String>,
        /// How many these are.
        depth: u32,
    }
    /// A communicator, window or file.
    GroupRow / GroupColumns = "communicators" {
        /// As other tables refer to it.
        communicator: Key,
        /// Communicator, window or file.
        kind: Key,
        /// Hexadecimal, the same on all ranks.
        id: String,
        /// Members, if known.
        size: Option<u32>,
        /// What it was made from, if known.
        parent: Option<String>,
    }
    /// A call.
    OperationRow / OperationColumns = "operations" {
        /// Rank.
        rank: u32,
        /// Thread.
        thread: u32,
        /// Which one of the thread, from 0, in the order in which they returned.
        number: u64,
        /// Its name.
        call: Key,
        /// Its generic type.
        type_: Key,
        /// When it began, ns.
        enter_ns: i64,
        /// When it ended, ns.
        leave_ns: i64,
        /// Time inside, ns.
        inside_ns: i64,
        /// Calls of the program that it stands for.
        calls: u32,
        /// What became of it.
        outcome: Key,
        /// What it is on.
        communicator: Option<Key>,
        /// World rank of the receiver.
        to_rank: Option<i32>,
        /// Tag of what is sent.
        to_tag: Option<i32>,
        /// Bytes sent.
        bytes_sent: u64,
        /// World rank of the sender; -1 = any.
        from_rank: Option<i32>,
        /// Tag of what is received; -1 = any.
        from_tag: Option<i32>,
        /// Bytes received.
        bytes_received: u64,
        /// Root of a collective, world rank.
        root: Option<u32>,
        /// Call path.
        call_path: u32,
    }
    /// A message.
    MessageRow / MessageColumns = "messages" {
        /// World rank of the sender.
        from_rank: u32,
        /// World rank of the receiver.
        to_rank: u32,
        /// Communicator.
        communicator: Option<Key>,
        /// Tag.
        tag: i32,
        /// Which one between the two with this tag on this communicator, from 0.
        number: u64,
        /// Bytes.
        bytes: u64,
        /// Thread of the sender.
        send_thread: Option<u32>,
        /// The call that sent it.
        send_call: Option<Key>,
        /// Number of that call.
        send_number: Option<u64>,
        /// When it began, ns.
        send_ns: Option<i64>,
        /// Number of the call in which it was done for the sender.
        send_done_number: Option<u64>,
        /// When that ended, ns.
        send_done_ns: Option<i64>,
        /// Call path of the call that sent it.
        send_call_path: Option<u32>,
        /// Thread of the receiver.
        receive_thread: Option<u32>,
        /// The call that posted the receive.
        receive_call: Option<Key>,
        /// Number of that call.
        receive_number: Option<u64>,
        /// When it began, ns.
        receive_ns: Option<i64>,
        /// Number of the call in which it was received.
        receive_done_number: Option<u64>,
        /// When that began, ns.
        receive_wait_ns: Option<i64>,
        /// When that ended, ns.
        receive_done_ns: Option<i64>,
        /// Call path of the call that posted the receive.
        receive_call_path: Option<u32>,
    }
    /// A collective.
    CollectiveRow / CollectiveColumns = "collectives" {
        /// What it is on.
        communicator: Option<Key>,
        /// Which one on it, from 0.
        instance: u64,
        /// Its name.
        call: Key,
        /// Members that entered it.
        members: u32,
        /// Members that have a trace.
        expected: u32,
        /// When the first member entered, ns.
        first_enter_ns: i64,
        /// Its rank.
        first_rank: u32,
        /// When the last member entered, ns.
        last_enter_ns: i64,
        /// Its rank.
        last_rank: u32,
        /// When the first member was done, ns.
        first_leave_ns: Option<i64>,
        /// When the last member was done, ns.
        last_leave_ns: Option<i64>,
        /// Bytes that all members put in.
        bytes_sent: u64,
    }
    /// A member's part in a collective.
    MemberRow / MemberColumns = "collective_members" {
        /// What it is on.
        communicator: Option<Key>,
        /// Which one on it, from 0.
        instance: u64,
        /// Rank.
        rank: u32,
        /// Thread.
        thread: u32,
        /// Name of the call.
        call: Key,
        /// Number of the call.
        number: u64,
        /// When it began, ns.
        enter_ns: i64,
        /// Number of the call in which the collective was done here.
        done_number: Option<u64>,
        /// When that began, ns.
        wait_ns: Option<i64>,
        /// When that ended, ns.
        leave_ns: Option<i64>,
        /// Bytes that it put in.
        bytes_sent: u64,
        /// Bytes that it got.
        bytes_received: u64,
        /// Call path.
        call_path: u32,
    }
    /// What one call lost in one pattern.
    WaitRow / WaitColumns = "waits" {
        /// Pattern.
        pattern: Key,
        /// Rank.
        rank: u32,
        /// Thread.
        thread: u32,
        /// Name of the call.
        call: Key,
        /// When it began, ns.
        enter_ns: i64,
        /// When it ended, ns.
        leave_ns: i64,
        /// Of that, what was lost, ns.
        lost_ns: i64,
        /// Call path.
        call_path: u32,
        /// Who was late.
        cause_rank: Option<u32>,
        /// That rank's late call.
        cause_call: Option<Key>,
        /// Its call path.
        cause_call_path: Option<u32>,
    }
    /// The sums of one call on one call path of one thread.
    ProfileRow / ProfileColumns = "profile" {
        /// Rank.
        rank: u32,
        /// Thread.
        thread: u32,
        /// Name of the call.
        call: Key,
        /// Its generic type.
        type_: Key,
        /// Call path.
        call_path: u32,
        /// Calls.
        calls: u64,
        /// Time in them, ns.
        total_ns: u64,
        /// The shortest, ns.
        minimum_ns: u64,
        /// The longest, ns.
        maximum_ns: u64,
        /// Bytes that they moved.
        bytes: u64,
    }
    /// The sums of one region of the program on one thread.
    RegionRow / RegionColumns = "regions" {
        /// Rank.
        rank: u32,
        /// Thread.
        thread: u32,
        /// Its name.
        region: String,
        /// What told of it.
        region_kind: Key,
        /// Where it was begun first; of a function its entry.
        call_path: u32,
        /// Instances.
        calls: u64,
        /// More of them, of which the time is not known.
        untimed_calls: u64,
        /// Time in them, ns.
        inclusive_ns: u64,
        /// Of that, outside of recorded calls and of regions nested in it, ns.
        exclusive_ns: u64,
        /// The least of that in an instance, ns.
        minimum_ns: u64,
        /// The most, ns.
        maximum_ns: u64,
        /// Instances that were begun and not ended.
        unended: u64,
        /// Ends of what was not begun.
        unbegun: u64,
    }
    /// A finding of the report.
    FindingRow / FindingColumns = "findings" {
        /// As the report numbers it, from 1.
        finding: u32,
        /// Pattern.
        pattern: String,
        /// Name of the call that lost time.
        call: String,
        /// Its generic type.
        type_: String,
        /// Source file of it.
        file: Option<String>,
        /// Its line.
        line: Option<u32>,
        /// Function around it.
        function: Option<String>,
        /// Frames, outermost first.
        frames: Option<String>,
        /// Time lost by all ranks, s.
        severity_s: f64,
        /// Of all time, percent.
        percent: f64,
        /// How sure, 0 to 1.
        confidence: f64,
        /// Calls at this place.
        calls: u64,
        /// Those that lost time.
        instances: u64,
        /// Mean duration of the calls, s.
        mean_s: f64,
        /// Ranks that lost time, as ranges.
        ranks: String,
        /// Whom they waited for most.
        cause_rank: Option<u32>,
        /// That rank's late call.
        cause_call: Option<String>,
        /// Source file of it.
        cause_file: Option<String>,
        /// Its line.
        cause_line: Option<u32>,
        /// Of the time lost, this cause's share, 0 to 1.
        cause_share: Option<f64>,
        /// What that rank did instead.
        because: Option<String>,
        /// Rank of the call that lost most.
        worst_rank: Option<u32>,
        /// When it began, s.
        worst_start_s: Option<f64>,
        /// When it ended, s.
        worst_end_s: Option<f64>,
    }
}
