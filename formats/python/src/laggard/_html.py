"""HTML for notebooks. Names come from anybody's program: all texts are escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

# Rows of a table that are shown.
ROWS = 20
# Letters of a text that are shown.
LETTERS = 200


def text(value: object) -> str:
    """A value as text of a cell."""
    shown = f"{value:.6g}" if isinstance(value, float) else str("" if value is None else value)
    kept = "".join(one if one.isprintable() else "\N{REPLACEMENT CHARACTER}" for one in shown)
    return escape(kept if len(kept) <= LETTERS else kept[:LETTERS] + "…")


def table(columns: Sequence[str], rows: Iterable[Sequence[object]], of: int) -> str:
    """A table of the first rows, and how many there are."""
    head = "".join(f"<th>{text(name)}</th>" for name in columns)
    body = "".join(
        "<tr>" + "".join(f"<td>{text(cell)}</td>" for cell in row) + "</tr>"
        for _, row in zip(range(ROWS), rows)
    )
    more = f"<p>{of} rows</p>" if of > ROWS else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"
