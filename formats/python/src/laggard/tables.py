"""Tables by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

import pyarrow as pa

from . import _html

if TYPE_CHECKING:
    import pandas
    import polars


def to_pandas(table: pa.Table) -> pandas.DataFrame:
    """The table for pandas, whose columns are those of Arrow: nothing is copied."""
    import pandas

    return table.to_pandas(types_mapper=pandas.ArrowDtype, split_blocks=True)


def to_polars(table: pa.Table) -> polars.DataFrame:
    """The table for Polars: nothing is copied but columns of texts that repeat."""
    import polars

    frame = polars.from_arrow(table, rechunk=False)
    assert isinstance(frame, polars.DataFrame)
    return frame


def to_html(table: pa.Table) -> str:
    """Its first rows for a notebook."""
    shown = table.slice(0, _html.ROWS).to_pylist()
    rows = ([row[name] for name in table.column_names] for row in shown)
    return _html.table(table.column_names, rows, table.num_rows)


class Tables(Mapping[str, pa.Table]):
    """Arrow tables by name, each made or mapped when it is asked for."""

    def __init__(self, makers: Mapping[str, Callable[[], pa.Table]], keeps: object = None) -> None:
        self._makers = dict(makers)
        self._made: dict[str, pa.Table] = {}
        # What must live as long as the tables: the directory of their files.
        self._keeps = keeps

    def __getitem__(self, name: str) -> pa.Table:
        if name not in self._made:
            self._made[name] = self._makers[name]()
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._makers)

    def __len__(self) -> int:
        return len(self._makers)

    def pandas(self, name: str) -> pandas.DataFrame:
        """A table for pandas, without a copy."""
        return to_pandas(self[name])

    def polars(self, name: str) -> polars.DataFrame:
        """A table for Polars."""
        return to_polars(self[name])

    def __repr__(self) -> str:
        return f"Tables({', '.join(self)})"

    def _repr_html_(self) -> str:
        rows = [(name, self[name].num_rows, ", ".join(self[name].column_names)) for name in self]
        return _html.table(["table", "rows", "columns"], rows, len(rows))
