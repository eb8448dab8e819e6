"""A trace: every call of a run."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import feather

from . import _command, _places
from .report import NAME, Report, read
from .tables import Tables


class Trace:
    """A trace directory, or the anchor file of an OTF2 archive; by default the newest run here."""

    def __init__(self, path: str | os.PathLike[str] | None = None) -> None:
        self.path = _places.newest() if path is None else Path(path)
        if not self.path.exists():
            raise FileNotFoundError(f"{self.path}: there is no such trace")
        self._tables: Tables | None = None

    @property
    def _home(self) -> Path:
        return self.path if self.path.is_dir() else self.path.parent

    def report(self, *options: str) -> Report:
        """The report beside the trace; without one, or with options of `laggard analyze`, it is
        analysed now."""
        file = self._home / NAME
        if options or not file.exists():
            _command.run(["analyze", self.path, "-q", *options])
        return read(file)

    def tables(self, directory: str | os.PathLike[str] | None = None) -> Tables:
        """The tables of `laggard export --to arrow`, mapped and not read: columns that nobody looks
        at cost no memory. They are written into `directory`, which must not exist, or into a
        temporary one."""
        if directory is None and self._tables is not None:
            return self._tables
        temporary = None
        if directory is None:
            temporary = tempfile.TemporaryDirectory(prefix="laggard-")
            directory = Path(temporary.name) / "tables"
        _command.run(["export", self.path, "--to", "arrow", "-o", Path(directory), "-q"])
        files = sorted(Path(directory).glob("*.arrow"))
        tables = Tables({file.stem: _Mapped(file) for file in files}, keeps=temporary)
        if temporary is not None:
            self._tables = tables
        return tables

    def what_if(self, *changes: str) -> dict[str, Any]:
        """The run replayed with changes, as `laggard what-if` takes them:
        `trace.what_if("--network", "latency=0")`."""
        found = json.loads(_command.run(["what-if", self.path, "--format", "json", *changes]))
        assert isinstance(found, dict)
        return found

    def __repr__(self) -> str:
        return f"<Trace {str(self.path)!r}>"

    def _repr_html_(self) -> str:
        return self.report()._repr_html_()


class _Mapped:
    """Maps a table's file."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def __call__(self) -> pa.Table:
        return feather.read_table(self.file, memory_map=True)
