//! The events of a location, as in the archive.

use std::ffi::c_void;

use laggard_trace::{Beside, Counts};

use crate::library::{Callback, Code, Handle, Otf2, SUCCESS, Table};
use crate::metrics::{self, CountersOf};

/// Attribute of receives with their wildcards: an unsigned byte, 1 = any source, 2 = any tag.
/// OTF2 has no record for this, so archives of other recorders lack it.
pub const ANY: &str = "laggard::any";

/// Wildcards of a receive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Any {
    /// Any source.
    pub source: bool,
    /// Any tag.
    pub tag: bool,
}

impl Any {
    /// Encodes it as the attribute's byte.
    pub fn byte(self) -> u8 {
        u8::from(self.source) | u8::from(self.tag) << 1
    }

    /// Decodes the attribute's byte.
    pub fn of_byte(byte: u8) -> Any {
        Any {
            source: byte & 1 != 0,
            tag: byte & 2 != 0,
        }
    }
}

/// Attributes of calls for data without records in OTF2, 64 bits each. First the parameter of a
/// call on a window (assertions and lock type, or a displacement), or 1 if a call completed file
/// operations alone. Then, for an OpenSHMEM call,
/// address, value, and tag with bytes, as in a laggard trace. Then sleep after a look that found
/// nothing, and what the time before the call was beside computation: blocked, preempted, in the
/// kernel, ns; and page faults without a device, with those that needed one in the high half. Then the same of
/// the call itself, and ns before it in which counters counted.
pub const TOLD: [&str; 14] = [
    "laggard::parameter",
    "laggard::address",
    "laggard::value",
    "laggard::operand",
    "laggard::off",
    "laggard::blocked",
    "laggard::preempted",
    "laggard::kernel",
    "laggard::faults",
    "laggard::inside_blocked",
    "laggard::inside_preempted",
    "laggard::inside_kernel",
    "laggard::inside_faults",
    "laggard::counted",
];

/// Places of what the time before a call was, and of what the call was.
const BEFORE: usize = 5;
const INSIDE: usize = 9;
/// Place of the time in which counters counted.
const COUNTED: usize = 13;

/// Values of these attributes for a call, in their order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Told(pub [Option<u64>; TOLD.len()]);

impl Told {
    /// Values for a call on a window.
    pub fn of_window(parameter: i64) -> Told {
        let mut told = Told::default();
        told.0[0] = Some(parameter as u64);
        told
    }

    /// Values for a call that completed file operations alone.
    pub fn of_files() -> Told {
        Told::of_window(1)
    }

    /// Values for an OpenSHMEM call; `operand` is a tag, and bytes.
    pub fn of_memory(
        address: Option<u64>,
        value: Option<u64>,
        operand: Option<(i32, u64)>,
    ) -> Told {
        let packed = |(tag, bytes): (i32, u64)| u64::from(tag as u32) | bytes << 32;
        let mut told = Told::default();
        (told.0[1], told.0[2], told.0[3]) = (address, value, operand.map(packed));
        told
    }

    /// The same for a look that found nothing, after which the thread slept for `off` ns.
    pub fn in_vain(mut self, off: Option<u64>) -> Told {
        self.0[4] = off;
        self
    }

    /// Sleep after a look that found nothing, ns.
    pub fn off(&self) -> Option<u64> {
        self.0[4]
    }

    /// The same with what the time before was beside computation, ns.
    pub fn beside(self, beside: &Beside) -> Told {
        self.at(BEFORE, beside)
    }

    /// The same with what the call was beside work, ns.
    pub fn with_inside(self, inside: &Beside) -> Told {
        self.at(INSIDE, inside)
    }

    /// The same with the time before the call in which counters counted, ns.
    pub fn with_counted(mut self, time: Option<u64>) -> Told {
        self.0[COUNTED] = time;
        self
    }

    /// The time before the call in which counters counted, ns.
    pub fn counted(&self) -> Option<u64> {
        self.0[COUNTED]
    }

    /// Values for a wait among threads: what it waits for, and the parameter of its record.
    pub fn of_threads(key: u64, parameter: u64) -> Told {
        let mut told = Told::default();
        (told.0[0], told.0[2]) = (Some(parameter), Some(key));
        told
    }

    /// The same, and what `other` has besides.
    pub fn or(mut self, other: &Told) -> Told {
        for (own, other) in self.0.iter_mut().zip(other.0) {
            *own = own.or(other);
        }
        self
    }

    fn at(mut self, place: usize, beside: &Beside) -> Told {
        let [minor, major] = beside.faults.map(u64::from);
        let all = [
            beside.blocked,
            beside.preempted,
            beside.kernel,
            minor | major << 32,
        ];
        for (told, value) in self.0[place..].iter_mut().zip(all) {
            *told = Some(value).filter(|value| *value > 0);
        }
        self
    }

    /// What the time before the call was beside computation, ns.
    pub fn before(&self) -> Beside {
        self.of(BEFORE)
    }

    /// What the call was beside work, ns.
    pub fn inside(&self) -> Beside {
        self.of(INSIDE)
    }

    fn of(&self, place: usize) -> Beside {
        let of = |at: usize| self.0[place + at].unwrap_or(0);
        Beside {
            blocked: of(0),
            preempted: of(1),
            kernel: of(2),
            faults: [of(3) as u32, (of(3) >> 32) as u32],
            counted: Counts::default(),
        }
    }

    /// Whether no value is set.
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(Option::is_none)
    }

    /// Parameter of a call on a window; 1 of a call that completed file operations alone.
    pub fn parameter(&self) -> Option<i64> {
        self.0[0].map(|parameter| parameter as i64)
    }

    /// Symmetric address.
    pub fn address(&self) -> Option<u64> {
        self.0[1]
    }

    /// Value written or waited for.
    pub fn value(&self) -> Option<u64> {
        self.0[2]
    }

    /// Tag, and bytes.
    pub fn operand(&self) -> Option<(i32, u64)> {
        self.0[3].map(|packed| (packed as u32 as i32, packed >> 32))
    }
}

/// One half of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// Rank in the communicator (of its other group, if there are two).
    pub peer: u32,
    /// Communicator.
    pub comm: u32,
    /// Tag.
    pub tag: u32,
    /// Bytes.
    pub bytes: u64,
}

/// A collective, recorded at its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Collective {
    /// `OTF2_CollectiveOp`.
    pub operation: u8,
    /// Communicator, or window.
    pub on: u32,
    /// Root, a rank in it; the three highest numbers have special meanings.
    pub root: u32,
    /// Bytes sent.
    pub sent: u64,
    /// Bytes received.
    pub received: u64,
}

/// No root.
pub const ROOT_NONE: u32 = u32::MAX;
/// This process.
pub const ROOT_SELF: u32 = u32::MAX - 1;
/// A process of this process's own group in an intercommunicator.
pub const ROOT_THIS_GROUP: u32 = u32::MAX - 2;

/// A one-sided call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OneSided {
    /// Window.
    pub window: u32,
    /// Target, a rank in the window.
    pub target: u32,
    /// Bytes written to the target.
    pub written: u64,
    /// Bytes read from the target.
    pub read: u64,
    /// Distinguishes it from other pending operations.
    pub matching: u64,
}

/// A task of a team: who made it, and its number among these.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Task {
    /// Team.
    pub team: u32,
    /// Number in the team of the thread that made it.
    pub creator: u32,
    /// Counts the tasks of that thread; 0 = the thread's own part in the region.
    pub generation: u32,
}

/// An event. Numbers are those of definitions; requests have numbers of their own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A region was entered.
    Enter(u32),
    /// A call was entered, with attributes.
    EnterCall(u32, Box<Told>),
    /// A region was left.
    Leave(u32),
    /// A calling context was entered: how many of its regions are new, and one more; and attributes of a call.
    EnterContext(u32, u32, Box<Told>),
    /// The thread was seen in a calling context: how many of its regions are new, and one more.
    Sample(u32, u32),
    /// A calling context was left.
    LeaveContext(u32),
    /// A message was sent.
    Send(Message),
    /// A send was posted, with a request.
    Isend(Message, u64),
    /// A posted send completed.
    IsendComplete(u64),
    /// A receive was posted, with a request.
    IrecvRequest(u64, Any),
    /// A message was received.
    Receive(Message, Any),
    /// A posted receive completed, with its message.
    Ireceived(Message, u64),
    /// A request was tested and is not complete.
    RequestTest(u64),
    /// A request was cancelled.
    RequestCancelled(u64),
    /// A collective ended.
    CollectiveEnd(Collective),
    /// A collective was posted, with a request.
    CollectiveRequest(u64),
    /// A posted collective completed.
    CollectiveComplete(Collective, u64),
    /// A collective on a window ended.
    WindowCollectiveEnd(Collective),
    /// A window was made.
    WindowCreate(u32),
    /// A window was freed.
    WindowDestroy(u32),
    /// A call on a window: written as the completion of all transfers.
    Window(u32),
    /// A one-sided transfer.
    OneSided(OneSided),
    /// The transfer with this number completed.
    TransferComplete(u32, u64),
    /// A lock was requested: window, target (all if undefined), whether exclusive.
    Lock(u32, u32, bool),
    /// An epoch on a window begins or ends, for the processes of this group.
    GroupSync(u32, u32),
    /// A call on a window for one target, or for all; written as the release of a lock.
    OnTarget(u32, u32),
    /// A call on a window that waits for transfers to one target.
    Flush(u32, u32),
    /// A team is forked: its paradigm, and how many threads were asked for.
    Fork(u8, u32),
    /// A team that was forked is over.
    Join(u8),
    /// The thread begins its part in a team.
    TeamBegin(u32),
    /// The thread ends its part in a team.
    TeamEnd(u32),
    /// A lock is acquired: its paradigm, its number, and how often it was by then.
    Acquire(u8, u32, u32),
    /// A lock is released.
    Release(u8, u32, u32),
    /// The thread goes on with this task.
    TaskSwitch(Task),
    /// A task is complete.
    TaskComplete(Task),
    /// The thread waits for the end of another one: contingent of threads, and number in it.
    ThreadWait(u32, u64),
    /// The thread ends.
    ThreadEnd(u32, u64),
    /// A counter has a value: its position in the definitions' metrics.
    Metric(u32, u64),
    /// Recording was switched off or on.
    Measurement(bool),
    /// A collective begins.
    CollectiveBegin,
    /// A collective on a window begins.
    WindowCollectiveBegin,
    /// An event whose content other events repeat.
    Nothing,
    /// The program starts: name, arguments.
    Program(u32, Box<[u32]>),
    /// The program ends.
    ProgramEnd,
}

/// Events with their times, ticks.
pub type Batch = Vec<(u64, Event)>;

/// Target of the library's callbacks.
#[derive(Default)]
pub struct Sink {
    /// Events received.
    pub batch: Batch,
    /// The function that reads the attribute [`ANY`], and its number in the archive.
    pub any: Option<(GetByte, u32)>,
    /// The same for the attributes [`TOLD`].
    pub told: Option<(GetLong, [Option<u32>; TOLD.len()])>,
    /// Which metrics are counters.
    pub counters: CountersOf,
}

/// `OTF2_AttributeList_GetUint64`.
pub type GetLong = unsafe extern "C" fn(Handle, u32, *mut u64) -> Code;

/// `OTF2_AttributeList_GetUint8`.
pub type GetByte = unsafe extern "C" fn(Handle, u32, *mut u8) -> Code;

impl Sink {
    /// The wildcards in the attributes of an event.
    ///
    /// # Safety
    /// `attributes` is the library's list for the event being delivered.
    unsafe fn left_open(&self, attributes: Handle) -> Any {
        let mut byte = 0;
        match self.any {
            // SAFETY: as the caller states; `byte` is valid for writing.
            Some((get, number)) if unsafe { get(attributes, number, &mut byte) } == SUCCESS => {
                Any::of_byte(byte)
            }
            _ => Any::default(),
        }
    }

    /// The values of a call in the attributes of its event.
    ///
    /// # Safety
    /// `attributes` is the library's list for the event being delivered.
    unsafe fn told(&self, attributes: Handle) -> Told {
        let Some((get, numbers)) = self.told else {
            return Told::default();
        };
        let value = |number: Option<u32>| {
            let mut value = 0;
            // SAFETY: as the caller states; `value` is valid for writing.
            let code = unsafe { get(attributes, number?, &mut value) };
            (code == SUCCESS).then_some(value)
        };
        Told(numbers.map(value))
    }
}

/// Registers callbacks that append all events of interest to a [`Sink`].
pub fn register(otf2: &Otf2, callbacks: Handle) {
    let all: [(&str, Callback); 53] = [
        ("Enter", enter as Callback),
        ("Leave", leave as Callback),
        ("CallingContextEnter", enter_context as Callback),
        ("CallingContextSample", sample as Callback),
        ("CallingContextLeave", leave_context as Callback),
        ("MpiSend", send as Callback),
        ("MpiIsend", isend as Callback),
        ("MpiIsendComplete", isend_complete as Callback),
        ("MpiIrecvRequest", irecv_request as Callback),
        ("MpiRecv", receive as Callback),
        ("MpiIrecv", ireceived as Callback),
        ("MpiRequestTest", request_test as Callback),
        ("MpiRequestCancelled", request_cancelled as Callback),
        ("MpiCollectiveEnd", collective_end as Callback),
        (
            "NonBlockingCollectiveRequest",
            collective_request as Callback,
        ),
        (
            "NonBlockingCollectiveComplete",
            collective_complete as Callback,
        ),
        ("RmaCollectiveEnd", window_collective_end as Callback),
        ("RmaWinCreate", window_create as Callback),
        ("RmaWinDestroy", window_destroy as Callback),
        ("RmaGroupSync", group_sync as Callback),
        ("RmaWaitChange", on_window as Callback),
        ("RmaSync", flush as Callback),
        ("RmaRequestLock", lock as Callback),
        ("RmaAcquireLock", lock as Callback),
        ("RmaTryLock", lock as Callback),
        ("RmaReleaseLock", on_target as Callback),
        ("RmaPut", put as Callback),
        ("RmaGet", get as Callback),
        ("RmaAtomic", atomic as Callback),
        ("RmaOpCompleteRemote", on_window as Callback),
        ("MpiCollectiveBegin", collective_begin as Callback),
        ("RmaCollectiveBegin", window_collective_begin as Callback),
        ("RmaOpCompleteBlocking", transfer_complete as Callback),
        ("RmaOpCompleteNonBlocking", nothing as Callback),
        ("RmaOpTest", nothing as Callback),
        ("CommCreate", nothing as Callback),
        ("CommDestroy", nothing as Callback),
        ("ThreadFork", fork as Callback),
        ("ThreadJoin", join as Callback),
        ("ThreadTeamBegin", team_begin as Callback),
        ("ThreadTeamEnd", team_end as Callback),
        ("ThreadAcquireLock", acquire as Callback),
        ("ThreadReleaseLock", release as Callback),
        ("ThreadTaskCreate", nothing as Callback),
        ("ThreadTaskSwitch", task_switch as Callback),
        ("ThreadTaskComplete", task_complete as Callback),
        ("ThreadWait", thread_wait as Callback),
        ("ThreadEnd", thread_end as Callback),
        ("ProgramEnd", program_end as Callback),
        ("BufferFlush", nothing as Callback),
        ("MeasurementOnOff", measurement as Callback),
        ("ProgramBegin", program as Callback),
        ("Metric", metric as Callback),
    ];
    for (record, callback) in all {
        otf2.set(Table::Events, callbacks, record, callback);
    }
}

/// Callbacks of the library; each appends an event to the [`Sink`] at `data`. Unused trailing
/// parameters are not declared.
macro_rules! callbacks {
    ($($name:ident($($argument:ident: $kind:ty),*) => $event:expr;)*) => {
        $(unsafe extern "C" fn $name(
            _location: u64,
            time: u64,
            _position: u64,
            data: Handle,
            _attributes: *const c_void,
            $($argument: $kind),*
        ) -> Code {
            // SAFETY: `Events` in `archive.rs` passes the library a pointer to this, and
            // nothing else uses it while the library reads.
            let into = unsafe { &mut *data.cast::<Sink>() };
            into.batch.push((time, $event));
            SUCCESS
        })*
    };
}

fn message(peer: u32, comm: u32, tag: u32, bytes: u64) -> Message {
    Message {
        peer,
        comm,
        tag,
        bytes,
    }
}

fn collective(operation: u8, on: u32, root: u32, sent: u64, received: u64) -> Collective {
    Collective {
        operation,
        on,
        root,
        sent,
        received,
    }
}

fn one_sided(window: u32, target: u32, written: u64, read: u64, matching: u64) -> Event {
    Event::OneSided(OneSided {
        window,
        target,
        written,
        read,
        matching,
    })
}

/// `OTF2_LOCK_EXCLUSIVE`.
const EXCLUSIVE: u8 = 0;
/// `OTF2_MEASUREMENT_ON`.
const ON: u8 = 1;

callbacks! {
    leave(region: u32) => Event::Leave(region);
    sample(context: u32, distance: u32) => Event::Sample(context, distance);
    leave_context(context: u32) => Event::LeaveContext(context);
    send(peer: u32, comm: u32, tag: u32, bytes: u64) => Event::Send(message(peer, comm, tag, bytes));
    isend(peer: u32, comm: u32, tag: u32, bytes: u64, request: u64) =>
        Event::Isend(message(peer, comm, tag, bytes), request);
    isend_complete(request: u64) => Event::IsendComplete(request);
    ireceived(peer: u32, comm: u32, tag: u32, bytes: u64, request: u64) =>
        Event::Ireceived(message(peer, comm, tag, bytes), request);
    request_test(request: u64) => Event::RequestTest(request);
    request_cancelled(request: u64) => Event::RequestCancelled(request);
    collective_end(operation: u8, on: u32, root: u32, sent: u64, received: u64) =>
        Event::CollectiveEnd(collective(operation, on, root, sent, received));
    collective_request(request: u64) => Event::CollectiveRequest(request);
    collective_complete(operation: u8, on: u32, root: u32, sent: u64, received: u64, request: u64) =>
        Event::CollectiveComplete(collective(operation, on, root, sent, received), request);
    window_collective_end(operation: u8, _level: u32, on: u32, root: u32, sent: u64, received: u64) =>
        Event::WindowCollectiveEnd(collective(operation, on, root, sent, received));
    on_window(window: u32) => Event::Window(window);
    group_sync(_level: u32, window: u32, group: u32) => Event::GroupSync(window, group);
    on_target(window: u32, target: u32) => Event::OnTarget(window, target);
    lock(window: u32, target: u32, _lock: u64, kind: u8) =>
        Event::Lock(window, target, kind == EXCLUSIVE);
    flush(window: u32, target: u32) => Event::Flush(window, target);
    put(window: u32, target: u32, bytes: u64, matching: u64) =>
        one_sided(window, target, bytes, 0, matching);
    get(window: u32, target: u32, bytes: u64, matching: u64) =>
        one_sided(window, target, 0, bytes, matching);
    atomic(window: u32, target: u32, _kind: u8, sent: u64, received: u64, matching: u64) =>
        one_sided(window, target, sent, received, matching);
    transfer_complete(window: u32, matching: u64) => Event::TransferComplete(window, matching);
    window_create(window: u32) => Event::WindowCreate(window);
    window_destroy(window: u32) => Event::WindowDestroy(window);
    collective_begin() => Event::CollectiveBegin;
    window_collective_begin() => Event::WindowCollectiveBegin;
    fork(model: u8, threads: u32) => Event::Fork(model, threads);
    join(model: u8) => Event::Join(model);
    team_begin(team: u32) => Event::TeamBegin(team);
    team_end(team: u32) => Event::TeamEnd(team);
    acquire(model: u8, lock: u32, order: u32) => Event::Acquire(model, lock, order);
    release(model: u8, lock: u32, order: u32) => Event::Release(model, lock, order);
    task_switch(team: u32, creator: u32, generation: u32) =>
        Event::TaskSwitch(Task { team, creator, generation });
    task_complete(team: u32, creator: u32, generation: u32) =>
        Event::TaskComplete(Task { team, creator, generation });
    thread_wait(contingent: u32, number: u64) => Event::ThreadWait(contingent, number);
    thread_end(contingent: u32, number: u64) => Event::ThreadEnd(contingent, number);
    program_end() => Event::ProgramEnd;
    nothing() => Event::Nothing;
    measurement(mode: u8) => Event::Measurement(mode == ON);
    program(name: u32, count: u32, arguments: *const u32) => {
        let arguments = match count {
            0 => Box::default(),
            // SAFETY: the library passes an array of `count` arguments.
            _ => unsafe { std::slice::from_raw_parts(arguments, count as usize) }.into(),
        };
        Event::Program(name, arguments)
    };
}

unsafe extern "C" fn enter(
    _location: u64,
    time: u64,
    _position: u64,
    data: Handle,
    attributes: Handle,
    region: u32,
) -> Code {
    // SAFETY: as in the functions above.
    let into = unsafe { &mut *data.cast::<Sink>() };
    // SAFETY: the list of this event.
    let told = unsafe { into.told(attributes) };
    let event = match told.is_empty() {
        true => Event::Enter(region),
        false => Event::EnterCall(region, Box::new(told)),
    };
    into.batch.push((time, event));
    SUCCESS
}

unsafe extern "C" fn enter_context(
    _location: u64,
    time: u64,
    _position: u64,
    data: Handle,
    attributes: Handle,
    context: u32,
    distance: u32,
) -> Code {
    // SAFETY: as in the functions above.
    let into = unsafe { &mut *data.cast::<Sink>() };
    // SAFETY: the list of this event.
    let told = unsafe { into.told(attributes) };
    let event = Event::EnterContext(context, distance, Box::new(told));
    into.batch.push((time, event));
    SUCCESS
}

unsafe extern "C" fn irecv_request(
    _location: u64,
    time: u64,
    _position: u64,
    data: Handle,
    attributes: Handle,
    request: u64,
) -> Code {
    // SAFETY: as in the functions above.
    let into = unsafe { &mut *data.cast::<Sink>() };
    // SAFETY: the list of this event.
    let any = unsafe { into.left_open(attributes) };
    into.batch.push((time, Event::IrecvRequest(request, any)));
    SUCCESS
}

unsafe extern "C" fn receive(
    _location: u64,
    time: u64,
    _position: u64,
    data: Handle,
    attributes: Handle,
    peer: u32,
    comm: u32,
    tag: u32,
    bytes: u64,
) -> Code {
    // SAFETY: as in the functions above.
    let into = unsafe { &mut *data.cast::<Sink>() };
    // SAFETY: the list of this event.
    let any = unsafe { into.left_open(attributes) };
    let message = message(peer, comm, tag, bytes);
    into.batch.push((time, Event::Receive(message, any)));
    SUCCESS
}

unsafe extern "C" fn metric(
    _location: u64,
    time: u64,
    _position: u64,
    data: Handle,
    _attributes: Handle,
    number: u32,
    count: u8,
    kinds: *const u8,
    values: *const u64,
) -> Code {
    // SAFETY: as in the functions above.
    let into = unsafe { &mut *data.cast::<Sink>() };
    let counters = into.counters.get(&number).map_or(&[][..], Vec::as_slice);
    let known = counters.iter().take(count.into()).enumerate();
    let known = known.filter_map(|(at, counter)| Some((at, (*counter)?)));
    for (at, counter) in known {
        // SAFETY: the library passes arrays of `count` types and values, which have 8 bytes each.
        let (kind, bits) = unsafe { (*kinds.add(at), *values.add(at)) };
        let event = Event::Metric(counter, metrics::value(kind, bits));
        into.batch.push((time, event));
    }
    SUCCESS
}
