"""What the messages of Perfetto's own Python package say of a trace: slices, flows, tracks.

Usage: perfetto_trace.py TRACE; prints JSON. Complains about slices that do not nest, and about
flows that do not have one end on each side."""

import collections
import gzip
import json
import sys

from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as messages


def main(path):
    trace = messages.Trace()
    trace.ParseFromString(gzip.open(path).read())
    event = messages.TrackEvent
    names, categories, keys, texts = {}, {}, {}, {}
    tracks, counters, parents = {}, {}, {}
    slices = collections.Counter()
    calls = collections.Counter()
    open_slices = collections.defaultdict(list)
    last = collections.defaultdict(int)
    begins, ends, hops, of_path = {}, {}, set(), set()
    path, path_begin, names_of, started = collections.Counter(), (0, ""), {}, set()
    of_roots = collections.Counter()
    values = collections.Counter()
    counted = collections.defaultdict(list)
    colours = collections.defaultdict(set)
    problems = []
    instants, samples = 0, collections.Counter()
    for packet in trace.packet:
        interned = packet.interned_data
        names.update((i.iid, i.name) for i in interned.event_names)
        categories.update((i.iid, i.name) for i in interned.event_categories)
        keys.update((i.iid, i.name) for i in interned.debug_annotation_names)
        texts.update((i.iid, i.str.decode()) for i in interned.debug_annotation_string_values)
        if packet.HasField("track_descriptor"):
            track = packet.track_descriptor
            known = counters if track.HasField("counter") else tracks
            known[track.uuid] = (track.sibling_order_rank, track.name)
            parents[track.uuid] = track.parent_uuid
        if not packet.HasField("track_event"):
            continue
        one, time = packet.track_event, packet.timestamp
        if one.type == event.TYPE_COUNTER:
            counted[counters[one.track_uuid][1]].append(one.counter_value)
            continue
        if time < last[one.track_uuid]:
            problems.append(f"time goes back on {tracks[one.track_uuid]}")
        last[one.track_uuid] = time
        track = tracks[one.track_uuid][1]
        for side, flows in ((begins, one.flow_ids), (ends, one.terminating_flow_ids)):
            for flow in flows:
                if side.setdefault(flow, (time, track)) != (time, track):
                    problems.append(f"flow {flow} has two ends on one side")
        if one.type == event.TYPE_SLICE_END:
            open_slices[one.track_uuid].pop()
            if track == "critical path":
                path[path_begin[1]] += time - path_begin[0]
            continue
        if one.type == event.TYPE_INSTANT:
            # Samples are between calls.
            is_message = categories[one.category_iids[0]] == "message"
            samples[tracks[parents[one.track_uuid]][1]] += not is_message
            instants += is_message
            if is_message and not open_slices[one.track_uuid]:
                problems.append("something is received in no call")
            continue
        category, name = categories[one.category_iids[0]], names[one.name_iid]
        slices[category] += 1
        if category == "root cause":
            rank = tracks[parents[one.track_uuid]][1]
            of_roots[rank] += 1
            names_of.update((flow, rank) for flow in one.flow_ids)
            started.update(one.flow_ids)
            if open_slices[one.track_uuid]:
                problems.append(f"{name} is in another root cause")
        elif category == "critical path":
            names_of.update((flow, name) for flow in one.flow_ids)
            of_path.update(one.flow_ids)
            path_begin = (time, name)
            if open_slices[one.track_uuid]:
                problems.append("the critical path is in two places")
        elif category == "wait":
            hops.update(one.flow_ids)
            colours[one.correlation_id].add(name)
            if not open_slices[one.track_uuid]:
                problems.append(f"{name} is in no call")
        else:
            calls[name] += 1
            if open_slices[one.track_uuid]:
                problems.append(f"{name} is in another call")
        open_slices[one.track_uuid].append(name)
        for value in one.debug_annotations:
            key = keys[value.name_iid]
            if value.HasField("string_value_iid"):
                values[f"{key}={texts[value.string_value_iid]}"] += 1
            else:
                values[key] += value.int_value
    problems += [f"{names} never end" for names in open_slices.values() if names]
    if begins.keys() != ends.keys():
        problems.append("flows have one end only")
    problems += [f"flow {f} goes back" for f in begins if begins[f][0] > ends.get(f, begins[f])[0]]
    json.dump(
        {
            "slices": slices,
            "calls": calls,
            "values": values,
            "tracks": [
                name
                for _, name in sorted(tracks[uuid] for uuid in tracks if parents[uuid])
                if name not in ("root causes", "critical path")
            ],
            "of_roots": of_roots,
            "counters": {name: [min(v), max(v), v[-1]] for name, v in counted.items()},
            "critical_path": path,
            "path_flows": collections.Counter(
                f"{names_of[flow]} > {ends[flow][1]}" for flow in of_path
            ),
            "started": collections.Counter(
                f"{names_of[flow]} > {ends[flow][1]}" for flow in started
            ),
            "flows": len(begins) - len(hops | of_path | started),
            "hops": collections.Counter(f"{begins[hop][1]} > {ends[hop][1]}" for hop in hops),
            "instants": instants,
            "samples": samples,
            "flow_tracks": collections.Counter(
                f"{begins[flow][1]} > {ends[flow][1]}"
                for flow in begins.keys() - (hops | of_path | started)
            ),
            "colours": len(colours),
            "first_ns": min((p.timestamp for p in trace.packet if p.timestamp), default=0),
            "last_ns": max((p.timestamp for p in trace.packet), default=0),
            "problems": problems,
        },
        sys.stdout,
    )


main(sys.argv[1])
