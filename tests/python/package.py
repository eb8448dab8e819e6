"""The Python package, as a user has it: what it reads in a trace, and a notebook with it.

Usage: package.py TRACE NOTEBOOK HOSTILE-REPORT; prints JSON."""

import html.parser
import json
import os
import sys

import laggard
import nbformat
import pyarrow as pa
import pyarrow.compute as pc
from nbclient import NotebookClient


class Tags(html.parser.HTMLParser):
    """The elements of a text, and attributes of any."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.attributes = set(), []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes += attrs


def addresses(arrays):
    """Where the values of arrays begin in memory."""
    return [one.buffers()[-1].address + one.offset * one.type.bit_width // 8 for one in arrays]


def copied(table, arrays_of):
    """Columns of numbers that are elsewhere in memory than the table's."""
    numbers = [
        field.name
        for field in table.schema
        if pa.types.is_integer(field.type) or pa.types.is_floating(field.type)
    ]
    assert len(numbers) > 5
    return [name for name in numbers if addresses(arrays_of(name)) != addresses(table[name].chunks)]


def copied_by_pandas(table):
    frame = laggard.tables.to_pandas(table)
    return copied(table, lambda name: frame[name].array._pa_array.chunks)


def copied_by_polars(table):
    frame = laggard.tables.to_polars(table)
    return copied(table, lambda name: [one.to_arrow() for one in frame[name].get_chunks()])


def run(notebook, trace):
    """The types of all outputs of a notebook, which fails if a cell does."""
    with open(notebook, encoding="utf-8") as file:
        read = nbformat.read(file, as_version=4)
    nbformat.validate(read)
    os.environ["LAGGARD_TRACE"] = trace
    NotebookClient(read, timeout=240, kernel_name="python3").execute()
    cells = [cell for cell in read.cells if cell.cell_type == "code"]
    return [
        sorted(kind for output in cell.outputs for kind in output.get("data", {}))
        for cell in cells
    ]


def main(trace, notebook, hostile):
    opened = laggard.Trace(trace)
    before = pa.total_allocated_bytes()
    tables = opened.tables()
    messages = tables["messages"]
    rows = {name: tables[name].num_rows for name in tables}
    mapped = pa.total_allocated_bytes() - before
    report = opened.report()
    answers = [laggard.who_waits, laggard.for_whom, laggard.why, laggard.what_helps, laggard.where]
    answers = {ask.__name__: ask(report) for ask in answers}
    odd = laggard.read(hostile)
    shown = [odd._repr_html_(), odd.tables._repr_html_(), laggard.where(odd)._repr_html_()]
    tags = [Tags(text) for text in shown]
    refused = ""
    try:
        laggard.Trace(os.path.dirname(notebook)).report()
    except laggard.CommandError as error:
        refused = str(error)
    json.dump(
        {
            "file": laggard.__file__,
            "rows": rows,
            "bytes": pc.sum(messages["bytes"]).as_py(),
            "allocated_by_mapping": mapped,
            "copied_by_pandas": copied_by_pandas(messages),
            "copied_by_polars": copied_by_polars(messages),
            "program": report.program,
            "waiting_percent": report.waiting_percent,
            "lost_s": sum(one.severity_s for one in report.findings),
            "text": report.text(top=1),
            "answers": {
                name: {
                    "sentence": str(one),
                    "rows": one.table.to_pylist(),
                    "pandas": len(one.pandas()),
                    "polars": len(one.polars()),
                }
                for name, one in answers.items()
            },
            "what_if": opened.what_if("--network", "latency=0")["schema"],
            "refused": refused,
            "newest": [str(laggard.Trace().path), laggard.read().program],
            "off_work": odd.tables["locations"]
            .select(["computation_s", "blocked_s", "preempted_s", "kernel_s"])
            .to_pylist()[:2],
            "tags": sorted(set().union(*(one.tags for one in tags))),
            "attributes": sum((one.attributes for one in tags), []),
            "notebook": run(notebook, trace),
        },
        sys.stdout,
    )


main(*sys.argv[1:])
