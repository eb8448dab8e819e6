"""Writes an OTF2 archive as Score-P would: write.py DIRECTORY DESCRIPTION

A description has one item a line:

    resolution HZ              ticks of the timer in a second, 10^9 unless told
    ranks N                    location n is rank n; before everything below
    host RANK NAME             the rank's host, node0 unless told
    thread LOCATION RANK       one more location of a rank
    metrics LOCATION RANK      a location that is no thread
    region NAME FILE LINE      a function of the program; calls of MPI need none
    construct NAME KIND FILE LINE    a region of OpenMP or POSIX threads, see `CONSTRUCTS`
    team NAME LOCATIONS        a team of threads, with commas
    context NAME REGION FILE LINE [PARENT]    a calling context
    comm NAME RANKS [PARENT]   a communicator: ranks with commas; `world` is there
    self NAME                  a communicator of each process alone
    inter NAME RANKS RANKS     an intercommunicator
    group NAME RANKS           a group of ranks that is no communicator
    grid COMM SIZES [PERIODIC] a Cartesian topology: sizes with commas; numbers of dimensions that go round
    place COMM RANK COORDINATES    where a rank of it is
    window NAME COMM           a window
    metric NAME OCCURRENCE VALUES    a metric: strict, some or any; values as NAME[/MODE[/TYPE[/EXPONENT/UNIT]]]
                               with commas, where sums of 64 bits without a unit are usual
    about LOCATION NAME METRIC OTHER    a metric of LOCATION that is about another location
    period BASE EXPONENT TIME  samples are taken so often: TIME * BASE^EXPONENT s, BASE 2 or 10
    clock LOCATION TIME OFFSET what is added to the location's times at TIME, ticks
    LOCATION TIME EVENT ...    an event, see `EVENTS`; times are ticks

Options that a sane recorder has not: `twice` defines the group of each communicator
twice, `lost LOCATION` leaves a location undefined, `again LOCATION` defines it twice,
`no_locations` leaves the group of all processes out, `odd` gives regions roles and
paradigms that there are none of, `kind LOCATION RANK NUMBER` is one more location of any
type, and `moved LOCATION TIME TO` gives an event another time, which writers refuse.
"""

import sys

import _otf2 as otf2

NOTHING = 2**32 - 1
NOWHERE = 2**64 - 1
CPU_THREAD, METRIC = 1, 3
CONSTRUCTS = {
    "parallel": otf2.REGION_ROLE_PARALLEL,
    "for": otf2.REGION_ROLE_LOOP,
    "sections": otf2.REGION_ROLE_SECTIONS,
    "barrier": otf2.REGION_ROLE_BARRIER,
    "implicit_barrier": otf2.REGION_ROLE_IMPLICIT_BARRIER,
    "critical": otf2.REGION_ROLE_CRITICAL,
    "critical_sblock": otf2.REGION_ROLE_CRITICAL_SBLOCK,
    "ordered": otf2.REGION_ROLE_ORDERED,
    "ordered_sblock": otf2.REGION_ROLE_ORDERED_SBLOCK,
    "task": otf2.REGION_ROLE_TASK,
    "create_task": otf2.REGION_ROLE_TASK_CREATE,
    # As one adapter of Score-P has it.
    "taskwait": otf2.REGION_ROLE_BARRIER,
    "omp_set_lock": otf2.REGION_ROLE_WRAPPER,
    "omp_unset_lock": otf2.REGION_ROLE_WRAPPER,
    "pthread_mutex_lock": otf2.REGION_ROLE_WRAPPER,
    "pthread_mutex_unlock": otf2.REGION_ROLE_WRAPPER,
    "pthread_join": otf2.REGION_ROLE_WRAPPER,
}
COMM_LOCATIONS, COMM_GROUP, COMM_SELF = 4, 5, 6


class Archive:
    """What was described, with the numbers that the archive uses."""

    def __init__(self):
        self.resolution = 10**9
        self.ranks = 0
        self.hosts = {}
        self.locations = []
        self.strings = {"": 0}
        self.regions = {}
        self.constructs = {}
        self.teams = []
        self.contexts = {}
        self.groups = []
        self.named_groups = {}
        self.comms = []
        self.windows = []
        self.grids = []
        self.places = []
        self.periods = []
        self.metrics = {}
        self.members = []
        self.instances = {}
        self.clocks = []
        self.events = {}
        self.options = []

    def string(self, text):
        return self.strings.setdefault(text, len(self.strings))

    def region(self, name):
        if name not in self.regions:
            source = "MPI" if name.lower().lstrip("p").startswith("mpi_") else ""
            self.regions[name] = (len(self.regions), source, 0)
        return self.regions[name][0]

    def comm(self, name):
        return [comm[0] for comm in self.comms].index(name)

    def window(self, name):
        return [window[0] for window in self.windows].index(name)

    def team(self, name):
        return len(self.comms) + [team[0] for team in self.teams].index(name)

    def of_teams(self):
        """The locations of all teams."""
        return sorted({location for _, members in self.teams for location in members})

    def group(self, kind, members):
        self.groups.append((kind, [int(member) for member in members]))
        return len(self.groups) - 1

    def new_comm(self, name, group, parent=None):
        parent = NOTHING if parent is None else self.comm(parent)
        self.comms.append((name, group, parent, None))


def root(word):
    return {"none": NOTHING, "self": NOTHING - 1, "group": NOTHING - 2}.get(word) or int(word)


def numbers(archive, words):
    return [int(word) for word in words]


def message(archive, words):
    """PEER COMM TAG BYTES [REQUEST]"""
    peer, comm, *rest = words
    return [int(peer), archive.comm(comm), *map(int, rest)]


def collective(archive, words):
    """OPERATION COMM ROOT SENT RECEIVED [REQUEST]"""
    operation, comm, at, *rest = words
    return [int(operation), archive.comm(comm), root(at), *map(int, rest)]


def on_window(archive, words):
    """WINDOW NUMBERS"""
    return [archive.window(words[0]), *map(int, words[1:])]


def with_group(archive, words):
    """LEVEL WINDOW GROUP"""
    level, window, group = words
    return [int(level), archive.window(window), archive.named_groups[group]]


def collective_on_window(archive, words):
    """OPERATION LEVEL WINDOW ROOT SENT RECEIVED"""
    operation, level, window, at, sent, received = words
    window = archive.window(window)
    return [int(operation), int(level), window, root(at), int(sent), int(received)]


def region(archive, words):
    return [archive.region(words[0])]


def in_team(archive, words):
    """TEAM [CREATOR GENERATION]"""
    return [archive.team(words[0]), *map(int, words[1:])]


def openmp(archive, words):
    """NUMBERS"""
    return [otf2.PARADIGM_OPENMP, *map(int, words)]


def posix(archive, words):
    """NUMBERS"""
    return [otf2.PARADIGM_PTHREAD, *map(int, words)]


def context(archive, words):
    return [archive.contexts[words[0]][0], *map(int, words[1:])]


def sample(archive, words):
    """CONTEXT DISTANCE"""
    return [*context(archive, words), 0]


OCCURRENCES = {
    "strict": otf2.METRIC_SYNCHRONOUS_STRICT,
    "some": otf2.METRIC_SYNCHRONOUS,
    "any": otf2.METRIC_ASYNCHRONOUS,
}
MODES = {"sum": otf2.METRIC_ACCUMULATED_START, "level": otf2.METRIC_ABSOLUTE_POINT}
TYPES = {"u": otf2.TYPE_UINT64, "i": otf2.TYPE_INT64, "d": otf2.TYPE_DOUBLE}


def metric(archive, words):
    """METRIC VALUES"""
    name, *values = words
    if name in archive.instances:
        number, kinds = archive.instances[name][0], archive.metrics[archive.instances[name][1]][3]
    else:
        number, _, _, kinds = archive.metrics[name]
    fields = {TYPES["u"]: "unsigned_int", TYPES["i"]: "signed_int", TYPES["d"]: "floating_point"}
    made = [otf2.MetricValue() for _ in values]
    for one, kind, value in zip(made, kinds, values):
        setattr(one, fields[kind], float(value) if kind == TYPES["d"] else int(value))
    return [number, kinds, made]


def program(archive, words):
    return [archive.string(words[0]), [archive.string(word) for word in words[1:]]]


EVENTS = {
    "enter": ("Enter", region),
    "leave": ("Leave", region),
    "context_enter": ("CallingContextEnter", context),
    "context_leave": ("CallingContextLeave", context),
    "sample": ("CallingContextSample", sample),
    "send": ("MpiSend", message),
    "isend": ("MpiIsend", message),
    "recv": ("MpiRecv", message),
    "irecv": ("MpiIrecv", message),
    "irecv_request": ("MpiIrecvRequest", numbers),
    "isend_complete": ("MpiIsendComplete", numbers),
    "request_test": ("MpiRequestTest", numbers),
    "cancelled": ("MpiRequestCancelled", numbers),
    "begin": ("MpiCollectiveBegin", numbers),
    "end": ("MpiCollectiveEnd", collective),
    "icollective_request": ("NonBlockingCollectiveRequest", numbers),
    "icollective_complete": ("NonBlockingCollectiveComplete", collective),
    "window_begin": ("RmaCollectiveBegin", numbers),
    "window_end": ("RmaCollectiveEnd", collective_on_window),
    "window_create": ("RmaWinCreate", on_window),
    "window_destroy": ("RmaWinDestroy", on_window),
    "put": ("RmaPut", on_window),
    "get": ("RmaGet", on_window),
    "group_sync": ("RmaGroupSync", with_group),
    "request_lock": ("RmaRequestLock", on_window),
    "lock": ("RmaAcquireLock", on_window),
    "unlock": ("RmaReleaseLock", on_window),
    "fork": ("ThreadFork", openmp),
    "join": ("ThreadJoin", openmp),
    "team_begin": ("ThreadTeamBegin", in_team),
    "team_end": ("ThreadTeamEnd", in_team),
    "acquire": ("ThreadAcquireLock", openmp),
    "release": ("ThreadReleaseLock", openmp),
    "acquire_mutex": ("ThreadAcquireLock", posix),
    "release_mutex": ("ThreadReleaseLock", posix),
    "task_create": ("ThreadTaskCreate", in_team),
    "task_switch": ("ThreadTaskSwitch", in_team),
    "task_complete": ("ThreadTaskComplete", in_team),
    "thread_create": ("ThreadCreate", numbers),
    "thread_wait": ("ThreadWait", numbers),
    "thread_end": ("ThreadEnd", numbers),
    "metric": ("Metric", metric),
    "program_begin": ("ProgramBegin", program),
    "program_end": ("ProgramEnd", numbers),
}


def take(archive, words):
    """Takes in one line."""
    what, *rest = words
    if what.isdigit():
        time, event, *rest = rest
        function, arguments = EVENTS[event]
        taken = (int(time), function, arguments(archive, rest))
        archive.events.setdefault(int(what), []).append(taken)
    elif what == "resolution":
        archive.resolution = int(rest[0])
    elif what == "ranks":
        archive.ranks = int(rest[0])
        archive.locations = [(rank, rank, CPU_THREAD) for rank in range(archive.ranks)]
        archive.group(COMM_LOCATIONS, range(archive.ranks))
        archive.new_comm("world", archive.group(COMM_GROUP, range(archive.ranks)))
    elif what == "host":
        archive.hosts[int(rest[0])] = rest[1]
    elif what in ("thread", "metrics"):
        kind = CPU_THREAD if what == "thread" else METRIC
        archive.locations.append((int(rest[0]), int(rest[1]), kind))
    elif what == "kind":
        archive.locations.append(tuple(map(int, rest)))
    elif what == "region":
        archive.regions[rest[0]] = (len(archive.regions), rest[1], int(rest[2]))
    elif what == "construct":
        name, kind, source, line = rest
        archive.regions[name] = (len(archive.regions), source, int(line))
        words = kind.replace("_", " ")
        is_call = kind.startswith(("omp_", "pthread_"))
        shown = kind if is_call else f"!$omp {words} @{source}:{line}"
        is_posix = kind.startswith("pthread_")
        paradigm = otf2.PARADIGM_PTHREAD if is_posix else otf2.PARADIGM_OPENMP
        archive.constructs[name] = (shown, CONSTRUCTS[kind], paradigm)
    elif what == "team":
        archive.teams.append((rest[0], [int(member) for member in rest[1].split(",")]))
    elif what == "context":
        parent = archive.contexts[rest[4]][0] if rest[4:] else NOTHING
        at = archive.region(rest[1]), rest[2], int(rest[3]), parent
        archive.contexts[rest[0]] = (len(archive.contexts), *at)
    elif what == "comm":
        archive.new_comm(rest[0], archive.group(COMM_GROUP, rest[1].split(",")), *rest[2:])
    elif what == "self":
        archive.new_comm(rest[0], archive.group(COMM_SELF, []))
    elif what == "inter":
        sides = [archive.group(COMM_GROUP, side.split(",")) for side in rest[1:]]
        archive.comms.append((rest[0], sides[0], 0, sides[1]))
    elif what == "group":
        archive.named_groups[rest[0]] = archive.group(COMM_GROUP, rest[1].split(","))
    elif what == "grid":
        sizes, around = ([int(one) for one in words.split(",")] for words in [*rest[1:], "-1"][:2])
        archive.grids.append((archive.comm(rest[0]), sizes, around))
    elif what == "place":
        at = [int(one) for one in rest[2].split(",")]
        archive.places.append((archive.comm(rest[0]), int(rest[1]), at))
    elif what == "window":
        archive.windows.append((rest[0], archive.comm(rest[1])))
    elif what == "metric":
        numbers, kinds = [], []
        for value in rest[2].split(","):
            given = value.split("/")
            name, mode, kind, exponent, unit = given + ["", "sum", "u", "0", "#"][len(given) :]
            numbers.append(len(archive.members))
            kinds.append(TYPES[kind])
            archive.members.append((name, MODES[mode], kinds[-1], int(exponent), unit))
        number = len(archive.metrics) + len(archive.instances)
        archive.metrics[rest[0]] = (number, OCCURRENCES[rest[1]], numbers, kinds)
    elif what == "about":
        number = len(archive.metrics) + len(archive.instances)
        archive.instances[rest[1]] = (number, rest[2], int(rest[0]), int(rest[3]))
    elif what == "period":
        archive.periods.append(tuple(map(int, rest)))
    elif what == "clock":
        archive.clocks.append(tuple(map(int, rest)))
    else:
        archive.options.append((what, *map(int, rest)))


def write_global(archive, writer):
    """Everything that all locations share."""
    put = lambda kind, *values: getattr(otf2, "GlobalDefWriter_Write" + kind)(writer, *values)
    times = [event[0] for events in archive.events.values() for event in events] or [0]
    hosts = sorted({archive.hosts.get(rank, "node0") for rank in range(archive.ranks)})
    machine, node, process = map(archive.string, ("machine", "node", "MPI Rank"))
    for name in [*hosts, *archive.regions, *(comm[0] for comm in archive.comms)]:
        archive.string("MPI_COMM_WORLD" if name == "world" else name)
    for _, source, *_ in archive.regions.values():
        archive.string(source)
    for shown, *_ in archive.constructs.values():
        archive.string(shown)
    for _, _, source, *_ in archive.contexts.values():
        archive.string(source)
    for window in archive.windows:
        archive.string(window[0])
    archive.string("OpenMP")
    for name, _, _, _, unit in archive.members:
        archive.string(name), archive.string(unit)
    put("ClockProperties", archive.resolution, min(times), max(times) - min(times), NOWHERE)
    for text, number in archive.strings.items():
        put("String", number, text)
    put("SystemTreeNode", 0, machine, machine, NOTHING)
    for number, host in enumerate(hosts):
        put("SystemTreeNode", 1 + number, archive.string(host), node, 0)
    for rank in range(archive.ranks):
        host = 1 + hosts.index(archive.hosts.get(rank, "node0"))
        put("LocationGroup", rank, process, otf2.LOCATION_GROUP_TYPE_PROCESS, host, NOTHING)
    for number, rank, kind in archive.locations:
        count = len(archive.events.get(number, []))
        for _ in range(1 + (("again", number) in archive.options)):
            if ("lost", number) not in archive.options:
                put("Location", number, process, kind, count, rank)
    for name, (number, source, line) in archive.regions.items():
        role, paradigm = otf2.REGION_ROLE_FUNCTION, otf2.PARADIGM_USER
        if name in archive.constructs:
            name, role, paradigm = archive.constructs[name]
        name, source = archive.string(name), archive.string(source)
        if ("odd",) in archive.options:
            role, paradigm = 201, 202
        put("Region", number, name, name, 0, role, paradigm, 0, source, line, line)
    for number, at, source, line, parent in archive.contexts.values():
        put("SourceCodeLocation", number, archive.string(source), line)
        put("CallingContext", number, at, number, parent)
    for number, (name, mode, kind, exponent, unit) in enumerate(archive.members):
        of, name, unit = otf2.METRIC_TYPE_PAPI, archive.string(name), archive.string(unit)
        put("MetricMember", number, name, 0, of, mode, kind, otf2.BASE_DECIMAL, exponent, unit)
    for number, occurrence, members, _ in archive.metrics.values():
        put("MetricClass", number, members, occurrence, otf2.RECORDER_KIND_CPU)
    for number, name, recorder, other in archive.instances.values():
        of, scope = archive.metrics[name][0], otf2.SCOPE_LOCATION
        put("MetricInstance", number, of, recorder, scope, other)
    for number, (base, exponent, period) in enumerate(archive.periods):
        base = otf2.BASE_BINARY if base == 2 else otf2.BASE_DECIMAL
        mode = otf2.INTERRUPT_GENERATOR_MODE_TIME
        put("InterruptGenerator", number, 0, mode, base, exponent, period)
    for _ in range(1 + (("twice",) in archive.options)):
        for number, (kind, members) in enumerate(archive.groups):
            if kind != COMM_LOCATIONS or ("no_locations",) not in archive.options:
                put("Group", number, 0, kind, otf2.PARADIGM_MPI, 0, members)
    groups = len(archive.groups)
    if archive.teams:
        everyone = archive.of_teams()
        put("Group", groups, 0, COMM_LOCATIONS, otf2.PARADIGM_OPENMP, 0, everyone)
    for number, (_, members) in enumerate(archive.teams):
        members = [everyone.index(member) for member in members]
        put("Group", groups + 1 + number, 0, COMM_GROUP, otf2.PARADIGM_OPENMP, 0, members)
        comm = len(archive.comms) + number
        put("Comm", comm, archive.string("OpenMP"), groups + 1 + number, NOTHING, 0)
    for number, (name, group, parent, other) in enumerate(archive.comms):
        name = archive.string("MPI_COMM_WORLD" if name == "world" else name)
        if other is None:
            put("Comm", number, name, group, parent, 0)
        else:
            put("InterComm", number, name, group, other, parent, 0)
    dimension = 0
    for number, (comm, sizes, around) in enumerate(archive.grids):
        first, dimension = dimension, dimension + len(sizes)
        for at, size in enumerate(sizes):
            put("CartDimension", first + at, 0, size, int(at in around))
        put("CartTopology", number, 0, comm, range(first, dimension))
        for _, rank, at in filter(lambda place: place[0] == comm, archive.places):
            put("CartCoordinate", number, rank, at)
    for number, (name, comm) in enumerate(archive.windows):
        put("RmaWin", number, archive.string(name), comm, 0)


def move(directory, location, time, to):
    """Gives the first event at a time another one: a byte that says so is before each time."""
    path = f"{directory}/traces/{location}.evt"
    stamp = lambda time: b"\x05" + time.to_bytes(8, "little")
    before = open(path, "rb").read()
    after = before.replace(stamp(time), stamp(to), 1)
    assert after != before, f"location {location} has no event at {time}"
    open(path, "wb").write(after)


def main():
    archive = Archive()
    for line in open(sys.argv[2], encoding="utf-8"):
        words = line.split("#")[0].split()
        if words:
            take(archive, words)
    substrate, compression = otf2.SUBSTRATE_POSIX, otf2.COMPRESSION_NONE
    sizes = 1 << 20, 4 << 20
    handle = otf2.Archive_Open(
        sys.argv[1], "traces", otf2.FILEMODE_WRITE, *sizes, substrate, compression
    )
    flush = otf2.FlushCallbacks(pre_flush=lambda *_: otf2.FLUSH, post_flush=None)
    otf2.Archive_SetFlushCallbacks(handle, flush, None)
    otf2.Archive_SetSerialCollectiveCallbacks(handle)
    otf2.Archive_OpenDefFiles(handle)
    otf2.Archive_OpenEvtFiles(handle)
    for number, _, kind in archive.locations:
        definitions = otf2.Archive_GetDefWriter(handle, number)
        for _, time, offset in sorted(c for c in archive.clocks if c[0] == number):
            otf2.DefWriter_WriteClockOffset(definitions, time, offset, 0.0)
        otf2.Archive_CloseDefWriter(handle, definitions)
        writer = otf2.Archive_GetEvtWriter(handle, number)
        for time, function, arguments in archive.events.get(number, []):
            getattr(otf2, "EvtWriter_" + function)(writer, None, time, *arguments)
        otf2.Archive_CloseEvtWriter(handle, writer)
    otf2.Archive_CloseEvtFiles(handle)
    otf2.Archive_CloseDefFiles(handle)
    writer = otf2.Archive_GetGlobalDefWriter(handle)
    write_global(archive, writer)
    otf2.Archive_CloseGlobalDefWriter(handle, writer)
    otf2.Archive_Close(handle)
    for option, *values in archive.options:
        if option == "moved":
            move(sys.argv[1], *values)


if __name__ == "__main__":
    main()
