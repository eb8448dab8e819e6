"""Scalasca's totals of an archive, straight from their definitions: scalasca.py ANCHOR

Prints JSON. Times are ticks of the archive, one thread per rank. It knows messages and blocking
collectives, without reductions to one rank and scans; with other calls it ends, and says which. It
keeps all in memory, and is meant to be read: `T`, `M`, `D`, `d`, `w`, `s` and `u` are the names of the
analysis of delays (Böhme, Geimer, Arnold, Voigtländer, Wolf: ACM TOPC 2016), `G`, `h`, `f` and `H`
those of the critical path's profile (Böhme, de Supinski, Geimer, Schulz, Wolf: IPDPS 2012). `dropped`
is what Scalasca loses of long-term costs.
"""

import collections
import json
import sys

import otf2
from otf2 import events as e

BARRIER = {"barrier"}
N_TO_N = {
    "allgather", "allgatherv", "allreduce", "alltoall", "reduce_scatter", "reduce_scatter_block",
}  # fmt: skip
ONE_TO_N = {"bcast", "scatter", "scatterv"}
RECEIVING = {
    "recv", "mrecv", "sendrecv", "sendrecv_replace", "wait", "waitany", "waitall", "waitsome",
}  # fmt: skip
SENDING = {"send", "ssend", "wait", "waitany", "waitall", "waitsome"}
SEVERAL = {"waitall", "waitsome"}
ENDS = {"init", "init_thread", "finalize"}
# Beside these: in them, nobody waits for others.
OTHERS = {
    "bsend", "rsend", "isend", "ibsend", "issend", "irsend", "irecv", "imrecv", "start", "startall",
    "send_init", "bsend_init", "ssend_init", "rsend_init", "recv_init", "buffer_attach", "buffer_detach",
    "probe", "iprobe", "mprobe", "improbe", "test", "testall", "testany", "testsome",
    "request_get_status", "request_free", "cancel", "test_cancelled", "get_count", "get_elements",
    "alltoallv", "alltoallw", "ibarrier", "iallgather", "iallreduce", "ialltoall", "ibcast",
    "iscatter", "ireduce", "igather", "neighbor_allgather", "neighbor_allgatherv",
    "neighbor_alltoall", "neighbor_alltoallv", "neighbor_alltoallw", "comm_rank", "comm_size",
    "comm_create", "comm_dup", "comm_split", "comm_free", "cart_create", "cart_sub",
    "dist_graph_create", "dist_graph_create_adjacent", "intercomm_create", "intercomm_merge",
    "wtime",
}  # fmt: skip
COVERED = BARRIER | N_TO_N | ONE_TO_N | RECEIVING | SENDING | ENDS | OTHERS
MESSAGES = ("late_sender", "late_receiver")


class Call:
    """A call of MPI: `T` is the exclusive time by call path of its rank until its enter."""

    def __init__(self, rank, at, path, enter, T):
        self.rank, self.at, self.path, self.enter, self.T = rank, at, path, enter, T
        self.leave = enter
        self.name = path[-1][0].lower().removeprefix("mpi_")
        if self.name not in COVERED:
            sys.exit(f"MPI_{self.name} is not covered")
        self.sends, self.receives, self.collective = [], [], None


class Message:
    """One side of a message: where it was requested, and where it was completed."""

    def __init__(self, request):
        self.request = self.completion = request
        self.other = None


class Sync:
    """A synchronisation point: who met whom, and how long it waited."""

    def __init__(self, call, wait, compl, partners, kind=None, causer=None):
        self.call, self.wait, self.compl, self.partners = call, wait, compl, partners
        self.kind, self.causer = kind, causer
        self.total = call.leave - call.enter
        self.cost = collections.Counter()
        self.propagating = 0


def region(of):
    return of.name, of.source_file, of.begin_line_number


def context(of):
    """The call path of a calling context."""
    place = of.source_code_location
    above = context(of.parent) if of.parent else ()
    return above + ((of.region.name, place.file, place.line_number),)


def text(path):
    """As reports have it: functions with their lines, and the call alone."""
    lines = [f"{name} {file.split('/')[-1]}:{line}" for name, file, line in path]
    is_call = path and path[-1][0].lower().startswith("mpi_")
    return lines[:-1] + [path[-1][0]] if is_call else lines


def read(anchor):
    """The calls of each rank, and the exclusive time by call path in the end."""
    calls = collections.defaultdict(list)
    stacks = collections.defaultdict(list)
    times = collections.defaultdict(collections.Counter)
    last, opened, posted = {}, {}, {}
    channels = collections.defaultdict(lambda: ([], []))
    counts = collections.Counter()
    instances = collections.defaultdict(list)
    with otf2.reader.open(anchor) as archive:
        ranks = {location: rank for rank, location in enumerate(archive.definitions.locations)}

        def peer(comm, number):
            return ranks[comm.group.members[number]]

        for location, event in archive.events:
            rank = ranks[location]
            stack, call = stacks[rank], opened.get(rank)
            entering = isinstance(event, (e.Enter, e.CallingContextEnter))
            leaving = isinstance(event, (e.Leave, e.CallingContextLeave))
            if entering or leaving:
                path = stack[-1] if stack else ()
                times[rank][path] += event.time - last.get(rank, event.time)
                last[rank] = event.time
            if entering:
                if isinstance(event, e.Enter):
                    path = (stack[-1] if stack else ()) + (region(event.region),)
                else:
                    path = context(event.calling_context)
                if path[-1][0].lower().startswith("mpi_") and call is None:
                    at = len(calls[rank])
                    opened[rank] = Call(rank, at, path, event.time, times[rank].copy())
                    calls[rank].append(opened[rank])
                stack.append(path)
            elif leaving:
                if call is not None and stack[-1] == call.path:
                    call.leave = event.time
                    del opened[rank]
                stack.pop()
            elif isinstance(event, (e.MpiSend, e.MpiIsend)):
                message = Message(call)
                comm = event.communicator
                channels[comm, rank, peer(comm, event.receiver), event.msg_tag][0].append(message)
                if isinstance(event, e.MpiIsend):
                    message.completion = None
                    posted[rank, event.request_id] = message
                else:
                    call.sends.append(message)
            elif isinstance(event, e.MpiIsendComplete):
                message = posted.pop((rank, event.request_id))
                message.completion = call
                call.sends.append(message)
            elif isinstance(event, e.MpiIrecvRequest):
                posted[rank, event.request_id] = Message(call)
            elif isinstance(event, (e.MpiRecv, e.MpiIrecv)):
                message = Message(call)
                if isinstance(event, e.MpiIrecv):
                    message = posted.pop((rank, event.request_id))
                    message.completion = call
                comm = event.communicator
                channels[comm, peer(comm, event.sender), rank, event.msg_tag][1].append(message)
                call.receives.append(message)
            elif isinstance(event, e.MpiCollectiveEnd):
                comm = event.communicator
                number = counts[comm, rank]
                counts[comm, rank] += 1
                call.collective = instances[comm, number]
                call.collective.append(call)
                call.root = peer(comm, event.root) if call.name in ONE_TO_N else None
    for sends, receives in channels.values():
        for send, receive in zip(sends, receives):
            send.other, receive.other = receive, send
    # Who enters the beginning and the end of MPI meets everybody.
    for name in sorted(ENDS):
        ends = [call for own in calls.values() for call in own if call.name == name]
        for call in ends:
            call.collective = ends
    return calls, times


def late_sender(message):
    send, receive = message.other.request, message.completion
    return min(send.enter, receive.leave) - receive.enter


def late_receiver(message):
    done, receive = message.completion, message.other.request
    return receive.enter - done.enter if done.leave > receive.enter else 0


def largest(call, messages, idle):
    """Those of a call that count: the one with the largest wait, if it completes several."""
    waits = [(idle(m), m) for m in messages if m.other is not None and m.completion is not None]
    waits = [(wait, m) for wait, m in waits if wait > 0 and m.other.request is not None]
    if call.name in SEVERAL and waits:
        return [max(waits, key=lambda of: of[0])]
    return waits


def sync_points(calls):
    """By rank, in the order of calls."""
    syncs = collections.defaultdict(list)

    def add(sync):
        syncs[sync.call.rank].append(sync)
        return sync

    for own in calls.values():
        for call in own:
            found = largest(call, call.receives, late_sender) if call.name in RECEIVING else []
            for wait, message in found:
                send = message.other.request
                compl = max(call.leave - send.leave, 0)
                causer = Sync(send, 0, max(send.leave - call.leave, 0), {call.rank})
                add(causer)
                add(Sync(call, wait, compl, {send.rank}, "late_sender", causer))
            if call.name not in SENDING or call.name in SEVERAL and found:
                continue
            for wait, message in largest(call, call.sends, late_receiver):
                receive = message.other.request
                causer = Sync(receive, 0, max(receive.leave - call.leave, 0), {call.rank})
                add(causer)
                # Scalasca tests this the wrong way round.
                add(Sync(call, wait, 0, {receive.rank}, "late_receiver", causer))
    seen = set()
    for own in calls.values():
        for call in own:
            if call.collective is None or id(call.collective) in seen:
                continue
            seen.add(id(call.collective))
            for sync in of_collective(call.collective):
                add(sync)
    for own in syncs.values():
        # A call sends before it waits.
        own.sort(key=lambda sync: (sync.call.at, sync.kind is not None))
    return syncs


def of_collective(members):
    if len(members) < 2:
        return []
    members = sorted(members, key=lambda call: call.rank)
    everybody = {call.rank for call in members}
    name = members[0].name
    latest = max(members, key=lambda call: (call.enter, -call.rank))
    earliest_end = min(call.leave for call in members)
    ends = name in ENDS
    if ends or name in BARRIER | N_TO_N:
        if not ends and earliest_end < latest.enter:
            return []
        kind = None if ends else "barrier" if name in BARRIER else "nxn"
        points = {
            call.rank: Sync(
                call, latest.enter - call.enter, call.leave - earliest_end, everybody, kind
            )
            for call in members
        }
        for sync in points.values():
            sync.causer = points[latest.rank]
        return points.values()
    if name not in ONE_TO_N:
        return []
    root = next(call for call in members if call.rank == members[0].root)
    early = [call for call in members if call.enter < root.enter]
    if not early:
        return []
    causer = Sync(root, 0, 0, {call.rank for call in early})
    waits = [
        Sync(call, root.enter - call.enter, 0, {root.rank}, "one_to_n", causer) for call in early
    ]
    return [causer, *waits]


def runtime(begin, end):
    spent = collections.Counter(end.call.T)
    spent.subtract(begin.call.T)
    return spent


def between(syncs, begin, end):
    own = syncs[begin.call.rank]
    return own[own.index(begin) + 1 : own.index(end)]


def last_with(syncs, event, partner):
    """The latest point before an event in which its rank met the partner."""
    own = syncs[event.call.rank]
    before = own[: own.index(event)]
    return next(sync for sync in reversed(before) if partner in sync.partners)


def interval(syncs, event, partner):
    """`M`, and the waits in it, since the event's rank met the partner last."""
    begin = last_with(syncs, event, partner)
    M = runtime(begin, event)
    waits = [sync for sync in between(syncs, begin, event) if sync.wait > 0]
    for sync in waits:
        M[sync.call.path] -= sync.wait
    path = begin.call.path
    M = collections.Counter({path: time for path, time in M.items() if time > 0})
    M[path] = max(M[path] - begin.total + begin.compl, 0)
    return M, waits, begin


def delays(syncs):
    """Costs by class, backward over all waits."""
    sums = collections.defaultdict(collections.Counter)
    waiting = [s for own in syncs.values() for s in own if s.kind and s.wait > 0]
    groups = collections.defaultdict(list)
    for sync in waiting:
        groups[id(sync.causer)].append(sync)
    groups = sorted(groups.values(), key=lambda of: -of[0].causer.call.enter)
    for group in groups:
        stores = [delay(syncs, sync, sums) for sync in group]
        if group[0].kind in MESSAGES:
            for waits, rates, _ in stores:
                put(waits, rates)
        else:
            put_of_collective(syncs, group[0].causer, stores, sums)
    for own in syncs.values():
        for sync in own:
            if sync.kind in MESSAGES:
                sums[sync.kind]["propagating"] += sync.propagating
    for kind in sums:
        sums[kind]["terminal"] = sums[kind]["wait"] - sums[kind]["propagating"]
    return sums


def delay(syncs, sync, sums):
    """Charges one wait, and what was stored on it. Returns what each tick of the causer's waits costs."""
    causer, W = sync.causer, sync.wait
    M, waits, begin = interval(syncs, causer, sync.call.rank)
    M_other, _, _ = interval(syncs, sync, causer.call.rank)
    D = {path: time - M_other[path] for path, time in M.items() if time > M_other[path]}
    d, w = sum(D.values()), sum(sync.wait for sync in waits)
    s = min(W / (d + w), 1) if d + w else 0
    of = sums[sync.kind]
    of["wait"] += W
    of["short"] += s * d
    of["indirect"] += s * w
    of["direct"] += W - s * w
    rates = collections.Counter({sync.kind: s})
    for kind, cost in sync.cost.items():
        u = cost / (d + w) if d + w else 0
        if sync.kind not in MESSAGES:
            u = min(u, 1)
        sums[kind]["long"] += u * d
        # Scalasca drops what does not fit.
        sums[kind]["dropped"] += cost - u * (d + w)
        rates[kind] += u
    if sync.kind in MESSAGES:
        for wait in waits:
            wait.propagating = max(wait.propagating, s * wait.wait)
    return waits, rates, begin


def put(waits, rates):
    for wait in waits:
        for kind, rate in rates.items():
            wait.cost[kind] += rate * wait.wait


def put_of_collective(syncs, causer, stores, sums):
    """What each tick of the causer's waits costs grows where ranks met it after the others did. Scalasca
    counts such ranks from the next such place on, and those of the last place never."""
    own = syncs[causer.call.rank]
    starts = collections.defaultdict(collections.Counter)
    for _, rates, begin in stores:
        starts[own.index(begin)].update(rates)
    common = min(starts)
    whole, scale = starts[common].copy(), starts[common].copy()
    missing = collections.Counter()
    for at in range(common + 1, own.index(causer)):
        if at in starts:
            scale.update(missing)
            missing = starts[at]
        if own[at].wait > 0:
            put([own[at]], scale)
            for kind in whole:
                sums[kind]["dropped"] += (whole[kind] - scale[kind]) * own[at].wait
        whole.update(starts.get(at, {}))


def critical_path(calls, syncs, times):
    """Time on the path by rank and call path."""
    end = max(
        (sync for own in syncs.values() for sync in own if sync.call.name == "finalize"),
        key=lambda sync: (sync.call.enter, -sync.call.rank),
    )
    C = collections.defaultdict(collections.Counter)
    while True:
        rank = end.call.rank
        own = syncs[rank]
        before = own[: own.index(end)]
        jumps = [s for s in before if s.wait > 0 and s.causer and s.causer is not s and s.kind]
        begin = jumps[-1] if jumps else before[0]
        spent = runtime(begin, end)
        spent[begin.call.path] -= min(begin.wait, spent[begin.call.path])
        C[rank].update(spent)
        if not jumps:
            return C
        end = begin.causer


def profile(C, syncs, times):
    """Activities, and what imbalance on the path costs."""
    ranks = sorted(times)
    G = collections.Counter()
    for own in C.values():
        G.update(own)
    G = {path: time for path, time in G.items() if time > 0}
    L = sum(G.values())
    sums = collections.Counter(length=L)
    H, H_inter = collections.Counter(), collections.Counter()
    for rank in ranks:
        waits = collections.Counter()
        for sync in syncs[rank]:
            waits[sync.call.path] += max(sync.wait, 0)
        t = {p: time - min(time, waits[p]) for p, time in times[rank].items()}
        t = {path: time for path, time in t.items() if time > 0}
        for path, time in t.items():
            sums["activities"] += min(G.get(path, 0), time)
            sums["non_critical"] += max(time - G.get(path, 0), 0)
        h = {path: time - min(t.get(path, 0), time) for path, time in G.items()}
        away = {path: 0 if path in t else room for path, room in h.items()}
        f = (L - sum(t.values())) / sum(h.values()) if sum(h.values()) else 0
        here = sum(time + h.get(path, 0) for path, time in t.items())
        f_away = (L - here) / sum(away.values()) if sum(away.values()) else 0
        for path in G:
            H[path] += f * h[path]
            H_inter[path] += f_away * away[path]
    sums["impact"] = sum(max(H[path], 0) for path in G)
    sums["inter_partition"] = sum(max(H_inter[path], 0) for path in G)
    rows = [{"path": text(path), "time": G[path], "impact": max(H[path], 0)} for path in G]
    return sums, rows


def main():
    calls, times = read(sys.argv[1])
    syncs = sync_points(calls)
    sums = delays(syncs)
    totals, rows = profile(critical_path(calls, syncs, times), syncs, times)
    print(json.dumps({"classes": sums, "path": totals, "profile": rows}))


if __name__ == "__main__":
    main()
