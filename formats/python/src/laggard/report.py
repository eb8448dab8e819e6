"""A report: what an analysis found."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from . import _command, _html, _places
from ._units import duration, percent
from .tables import Tables

SCHEMA = "laggard-report/1"
# The name of a report beside its trace.
NAME = "report.json"


@dataclass(frozen=True)
class Place:
    """A line of the program; `callers` tell it from others of the report at the same line."""

    file: str
    line: int
    function: str
    callpath: tuple[str, ...] = ()
    callers: tuple[Place, ...] = ()

    def __str__(self) -> str:
        outer = [one._line(with_function=len(self.callers) == 1) for one in reversed(self.callers)]
        return " via ".join([*outer, self._line()])

    def _line(self, with_function: bool = True) -> str:
        name = self.file.rsplit("/", 1)[-1]
        at = f"{name}:{self.line}" if name and self.line else name
        function = self.function if with_function or not self.line else ""
        return f"{at} {function}".strip() or "unknown place"


@dataclass(frozen=True)
class Cause:
    """Whom ranks waited for, and what it did."""

    rank: int
    operation: str
    place: Place
    severity_s: float
    share: float
    because: str


@dataclass(frozen=True)
class Finding:
    """A pattern in a call at a place. `number` is that of the printed report."""

    number: int
    pattern: str
    name: str
    operation: str
    place: Place
    severity_s: float
    percent: float
    confidence: float
    calls: int
    instances: int
    ranks: str
    causes: tuple[Cause, ...]
    root_causes: Mapping[str, float]
    hints: tuple[str, ...]


@dataclass(frozen=True)
class RootCause:
    """What some ranks did longer than the others, who waited for them in the end."""

    id: str
    ranks: str
    activity: str
    operation: str
    place: Place
    until: str
    severity_s: float
    percent: float
    gain_s: float | None
    gain_percent: float | None
    because: str
    hints: tuple[str, ...]

    def __str__(self) -> str:
        many = "," in self.ranks or "-" in self.ranks
        who = f"{'ranks' if many else 'rank'} {self.ranks.replace(',', ', ')}"
        begin = f"{self.operation} at {self.place}" if self.operation else str(self.place)
        if self.activity == "latency":
            return f"waits in {self.until} lasted longer than the delay of {who} before {begin}"
        were = "were" if many else "was"
        did = {
            "computation": "computed",
            "blocked": f"{were} asleep or blocked",
            "preempted": f"{were} without a processor",
            "kernel": f"{were} in the kernel",
        }.get(self.activity)
        if did is None:
            return f"{who} took longer in {begin}"
        if not self.until and self.activity == "computation":
            return f"{who} {'took' if self.operation else 'computed'} longer in {begin}"
        if not self.until:
            return f"{who} {did} in {begin}"
        if not self.operation:
            return f"{who} {did} until {self.until}"
        if self.until == begin:
            return f"{who} {did} between calls of {begin}"
        return f"{who} {did} between {begin} and {self.until}"


def _place(found: Mapping[str, Any]) -> Place:
    path = tuple(found.get("callpath", ()))
    callers = tuple(map(_place, found.get("callers", ())))
    return Place(found["file"], found["line"], found["function"], path, callers)


def _cause(found: Mapping[str, Any]) -> Cause:
    return Cause(
        found["rank"],
        found["operation"],
        _place(found["location"]),
        found["severity_s"],
        found["share"],
        found["because"],
    )


def _finding(number: int, found: Mapping[str, Any]) -> Finding:
    own = ",".join(str(share["rank"]) for share in found["ranks"])
    return Finding(
        number=number,
        pattern=found["pattern"],
        name=found["name"],
        operation=found["operation"],
        place=_place(found["location"]),
        severity_s=found["severity_s"],
        percent=found["percent"],
        confidence=found["confidence"],
        calls=found["calls"],
        instances=found["instances"],
        ranks=found.get("rank_set") or own,
        causes=tuple(map(_cause, found["causes"])),
        root_causes={part["id"]: part["share"] for part in found.get("root_causes", ())},
        hints=tuple(found["hints"]),
    )


def _root_cause(found: Mapping[str, Any]) -> RootCause:
    until = found.get("until")
    return RootCause(
        id=found["id"],
        ranks=found["rank_set"],
        activity=found["activity"],
        operation=found["operation"],
        place=_place(found["location"]),
        until=f"{until['operation']} at {_place(until)}" if until else "",
        severity_s=found["severity_s"],
        percent=found["percent"],
        gain_s=found.get("gain_s"),
        gain_percent=found.get("gain_percent"),
        because=found.get("because", ""),
        hints=tuple(found.get("hints", ())),
    )


class Report:
    """A report as the command wrote it. `data` is its JSON; `analyzer/docs/report.md` says what is
    in it."""

    def __init__(self, data: Mapping[str, Any], path: Path | None = None) -> None:
        if data.get("schema") != SCHEMA:
            raise ValueError(f"{path or 'this'} is not a report ({SCHEMA})")
        self.data = data
        self.path = path
        self.findings = tuple(
            _finding(at, found) for at, found in enumerate(data["bottlenecks"], start=1)
        )
        roots = data.get("root_causes")
        self.root_causes = None if roots is None else tuple(map(_root_cause, roots))

    @property
    def program(self) -> str:
        """The program and its arguments."""
        run = self.data["run"]
        return " ".join([run["program"], *run["arguments"]])

    @property
    def ranks(self) -> int:
        """Ranks of the run."""
        return int(self.data["run"]["ranks"])

    @property
    def wall_time_s(self) -> float:
        """From the start to the end of the run."""
        return float(self.data["run"]["wall_time_s"])

    def _sum(self, name: str) -> float:
        sums = self.data.get("location_sums")
        if sums is not None:
            return float(sums[name])
        default = self.wall_time_s
        return float(sum(one.get(name, default) for one in self.data["locations"]))

    @property
    def wait_s(self) -> float:
        """Time that all ranks spent waiting."""
        return self._sum("wait_s")

    @property
    def waiting_percent(self) -> float:
        """The same, of all time between start-up and shut-down."""
        wall = self._sum("wall_s")
        return 100.0 * self.wait_s / wall if wall > 0 else 0.0

    @property
    def tables(self) -> Tables:
        """Lists of the report as Arrow tables: `findings`, `causes`, `root_causes`, `locations`,
        `counters`, `metrics`, `operations`, `anomalies`."""
        return Tables({name: _maker(self, name) for name in _SHAPES})

    def text(self, top: int = 10) -> str:
        """The report as the command prints it."""
        if self.path is None:
            raise ValueError("this report is in no file")
        return _command.run(["show", self.path, "--top", str(top)])

    def __repr__(self) -> str:
        return f"<Report of {self.program}: {self.ranks} ranks, {percent(self.waiting_percent)} waiting>"

    def _repr_html_(self) -> str:
        title = (
            f"{Path(self.program).name}: {self.ranks} ranks, {duration(self.wall_time_s)}, "
            f"{percent(self.waiting_percent)} of rank time is waiting"
        )
        parts = [f"<p><b>{_html.text(title)}</b></p>"]
        if self.root_causes:
            roots = [(one.id, one.percent, one.severity_s, one) for one in self.root_causes]
            columns = ["", "% of time", "s", "root cause"]
            parts.append(_html.table(columns, roots, len(roots)))
        rows = [
            (one.number, one.percent, one.severity_s, one.name, f"{one.operation} at {one.place}")
            for one in self.findings
        ]
        parts.append(_html.table(["", "% of time", "s", "finding", "where"], rows, len(rows)))
        return "".join(parts)


def read(path: str | os.PathLike[str] | None = None) -> Report:
    """The report in a file, or beside a trace; by default of the newest run here."""
    file = _places.newest() if path is None else Path(path)
    if file.is_dir():
        file /= NAME
    with file.open(encoding="utf-8") as opened:
        return Report(json.load(opened), file)


def _place_of(one: Any) -> tuple[object, ...]:
    return one.place.file, one.place.line, one.place.function


_PLACE = [("file", pa.string()), ("line", pa.uint32()), ("function", pa.string())]
_ORDER = ["computation_s", "communication_s", "synchronization_s", "io_s", "wait_s"]
_OFF_WORK = ["blocked_s", "preempted_s", "kernel_s"]
_Rows = Sequence[Sequence[object]]


def _findings(report: Report) -> _Rows:
    return [
        (one.number, one.pattern, one.name, one.operation, *_place_of(one))
        + (one.severity_s, one.percent, one.confidence, one.calls, one.instances, one.ranks)
        for one in report.findings
    ]


def _causes(report: Report) -> _Rows:
    return [
        (one.number, cause.rank, cause.operation, *_place_of(cause))
        + (cause.severity_s, cause.share, cause.because)
        for one in report.findings
        for cause in one.causes
    ]


def _root_causes(report: Report) -> _Rows:
    return [
        (one.id, one.ranks, one.activity, one.operation, *_place_of(one), one.until)
        + (one.severity_s, one.percent, one.gain_s, one.gain_percent, one.because)
        for one in report.root_causes or ()
    ]


def _locations(report: Report) -> _Rows:
    return [
        (one["rank"], one["thread"], one["host"], *(one[name] for name in _ORDER))
        + (*(one.get(name, 0.0) for name in _OFF_WORK), one.get("processor_s"), one.get("counted_s"))
        for one in report.data["locations"]
    ]


def _counters(report: Report) -> _Rows:
    return [
        (one["rank"], one["thread"], name, number)
        for one in report.data["locations"]
        for name, number in one.get("counters", {}).items()
    ]


def _metrics(report: Report) -> _Rows:
    metrics = report.data["metrics"].items()
    return [(id, one["total_s"], one["percent"], one["instances"]) for id, one in metrics]


def _operations(report: Report) -> _Rows:
    return [
        (one["operation"], one["operation_type"], one["calls"], one["total_s"], one["wait_s"])
        for one in report.data.get("operations", ())
    ]


def _anomalies(report: Report) -> _Rows:
    return [
        (one["id"], one["severity"], one["count"], one["detail"], one.get("origin"))
        for one in report.data["anomalies"]
    ]


_TEXT, _TIME, _COUNT = pa.string(), pa.float64(), pa.uint64()
_LOST = [("severity_s", _TIME), ("percent", _TIME)]
# Columns of each table, and its rows.
_SHAPES: dict[str, tuple[list[tuple[str, pa.DataType]], Callable[[Report], _Rows]]] = {
    "findings": (
        [("finding", pa.uint32()), ("pattern", _TEXT), ("name", _TEXT), ("operation", _TEXT)]
        + [*_PLACE, *_LOST, ("confidence", _TIME), ("calls", _COUNT), ("instances", _COUNT)]
        + [("ranks", _TEXT)],
        _findings,
    ),
    "causes": (
        [("finding", pa.uint32()), ("rank", pa.uint32()), ("operation", _TEXT), *_PLACE]
        + [("severity_s", _TIME), ("share", _TIME), ("because", _TEXT)],
        _causes,
    ),
    "root_causes": (
        [("id", _TEXT), ("ranks", _TEXT), ("activity", _TEXT), ("operation", _TEXT), *_PLACE]
        + [("until", _TEXT), *_LOST, ("gain_s", _TIME), ("gain_percent", _TIME)]
        + [("because", _TEXT)],
        _root_causes,
    ),
    "locations": (
        [("rank", pa.uint32()), ("thread", pa.uint32()), ("host", _TEXT)]
        + [(name, _TIME) for name in [*_ORDER, *_OFF_WORK, "processor_s", "counted_s"]],
        _locations,
    ),
    "counters": (
        [("rank", pa.uint32()), ("thread", pa.uint32()), ("counter", _TEXT), ("number", _COUNT)],
        _counters,
    ),
    "metrics": (
        [("pattern", _TEXT), ("total_s", _TIME), ("percent", _TIME), ("instances", _COUNT)],
        _metrics,
    ),
    "operations": (
        [("operation", _TEXT), ("operation_type", _TEXT), ("calls", _COUNT)]
        + [("total_s", _TIME), ("wait_s", _TIME)],
        _operations,
    ),
    "anomalies": (
        [("id", _TEXT), ("severity", _TEXT), ("count", _COUNT), ("detail", _TEXT)]
        + [("origin", _TEXT)],
        _anomalies,
    ),
}


def table_of(fields: Sequence[tuple[str, pa.DataType]], rows: _Rows) -> pa.Table:
    """An Arrow table of rows."""
    columns = list(zip(*rows)) or [()] * len(fields)
    arrays = [pa.array(column, kind) for column, (_, kind) in zip(columns, fields)]
    return pa.table(arrays, schema=pa.schema(fields))


def _maker(report: Report, name: str) -> Callable[[], pa.Table]:
    fields, rows = _SHAPES[name]
    return lambda: table_of(fields, rows(report))
