"""Five questions to a report: who waits, for whom, why, what helps, and where."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from . import _html
from ._units import duration, percent
from .report import Report, table_of
from .tables import to_html, to_pandas, to_polars

if TYPE_CHECKING:
    import pandas
    import polars

_TEXT, _TIME, _RANK = pa.string(), pa.float64(), pa.uint32()


@dataclass(frozen=True)
class Answer:
    """A sentence, and the numbers behind it, the largest first."""

    sentence: str
    table: pa.Table

    def pandas(self) -> pandas.DataFrame:
        """The numbers for pandas, without a copy."""
        return to_pandas(self.table)

    def polars(self) -> polars.DataFrame:
        """The numbers for Polars."""
        return to_polars(self.table)

    def __str__(self) -> str:
        return self.sentence

    def _repr_html_(self) -> str:
        return f"<p>{_html.text(self.sentence)}</p>{to_html(self.table)}"


def _share(part: float, whole: float) -> float:
    return 100.0 * part / whole if whole > 0 else 0.0


def who_waits(report: Report) -> Answer:
    """Which ranks wait, and how long. Of a large run, classes of successive ranks."""
    classes = report.data.get("location_classes")
    rows: list[tuple[int, int, float]]
    if classes:
        rows = [(one["first_rank"], one["last_rank"], one["wait_s"]) for one in classes]
    else:
        by_rank: defaultdict[int, float] = defaultdict(float)
        for one in report.data["locations"]:
            by_rank[one["rank"]] += one["wait_s"]
        rows = [(rank, rank, wait) for rank, wait in by_rank.items()]
    rows.sort(key=lambda row: (-row[2], row[0]))
    fields = [("first_rank", _RANK), ("last_rank", _RANK), ("wait_s", _TIME), ("percent", _TIME)]
    table = table_of(fields, [(*row, _share(row[2], report.wait_s)) for row in rows])
    sentence = f"{percent(report.waiting_percent)} of rank time is waiting"
    if rows and rows[0][2] > 0:
        first, last, wait = rows[0]
        who = f"rank {first}" if first == last else f"ranks {first}-{last}"
        sentence += f", longest by {who}: {duration(wait)}"
    return Answer(sentence + ".", table)


def for_whom(report: Report) -> Answer:
    """Which ranks the others wait for, whoever made these late."""
    by_rank: defaultdict[int, float] = defaultdict(float)
    for finding in report.findings:
        for cause in finding.causes:
            by_rank[cause.rank] += cause.severity_s
    rows = sorted(by_rank.items(), key=lambda row: (-row[1], row[0]))
    all_s = sum(by_rank.values())
    fields = [("rank", _RANK), ("waited_for_s", _TIME), ("percent", _TIME)]
    table = table_of(fields, [(*row, _share(row[1], all_s)) for row in rows])
    if not rows:
        return Answer("Nobody waits for another rank.", table)
    rank, waited = rows[0]
    part = _share(waited, all_s)
    return Answer(f"Rank {rank} is waited for most: {duration(waited)}, {percent(part)}.", table)


def why(report: Report) -> Answer:
    """What started the waiting: the root causes; of a report without them, what late ranks did."""
    fields = [("what", _TEXT), ("severity_s", _TIME), ("percent", _TIME), ("because", _TEXT)]
    if report.root_causes is not None:
        roots = report.root_causes
        rows = [(str(one), one.severity_s, one.percent, one.because) for one in roots]
    else:
        rows = [
            (f"rank {cause.rank}, {cause.operation} at {cause.place}", cause.severity_s)
            + (finding.percent * cause.share, cause.because)
            for finding in report.findings
            for cause in finding.causes
        ]
    rows.sort(key=lambda row: -row[1])
    table = table_of(fields, rows)
    if not rows:
        return Answer("No root cause is known.", table)
    what, severity, share, _ = rows[0]
    return Answer(f"{percent(share)} of rank time ({duration(severity)}): {what}.", table)


def what_helps(report: Report) -> Answer:
    """What to try, and how much shorter the run is predicted to be with it, where that is known."""
    rows: list[tuple[str, str, float | None]] = []
    for root in report.root_causes or ():
        rows += [(root.id, hint, root.gain_s) for hint in root.hints[:1]]
    for number, finding in enumerate(report.data["bottlenecks"], start=1):
        said = finding.get("advice", [])
        rows += [(str(number), one["text"], one.get("gain_s")) for one in said]
    rows.sort(key=lambda row: -(row[2] or 0.0))
    fields = [("of", _TEXT), ("try", _TEXT), ("gain_s", _TIME)]
    table = table_of(fields, rows)
    if not rows:
        return Answer("There is nothing to try.", table)
    _, hint, gain = rows[0]
    gained = "" if gain is None else f" The run would be {duration(gain)} shorter."
    return Answer(f"Try: {hint}{gained}", table)


def where(report: Report) -> Answer:
    """In which lines of the program time is lost."""
    by_place: defaultdict[tuple[str, int, str, str], float] = defaultdict(float)
    for one in report.findings:
        place = one.place
        by_place[place.file, place.line, place.function, one.operation] += one.severity_s
    rows = sorted(by_place.items(), key=lambda row: (-row[1], row[0]))
    fields = [("file", _TEXT), ("line", _RANK), ("function", _TEXT), ("operation", _TEXT)]
    fields += [("lost_s", _TIME)]
    table = table_of(fields, [(*place, lost) for place, lost in rows])
    if not rows:
        return Answer("No line of the program loses time.", table)
    (file, line, function, operation), lost = rows[0]
    name = f"{file.rsplit('/', 1)[-1]}:{line} {function}" if file else function
    return Answer(f"{operation} at {name} loses most: {duration(lost)}.", table)
