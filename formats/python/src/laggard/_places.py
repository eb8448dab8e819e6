"""Where traces are, as the command looks for them."""

from __future__ import annotations

import os
import re
from pathlib import Path


def newest() -> Path:
    """Of `laggard-trace`, `laggard-trace.1`, … the run that began last; `LAGGARD_TRACE_DIR` is
    another name."""
    usual = Path(os.environ.get("LAGGARD_TRACE_DIR") or "laggard-trace")
    name = re.compile(re.escape(usual.name) + r"(?:\.(\d+))?")
    found = []
    for path in usual.parent.iterdir() if usual.parent.is_dir() else ():
        matched = name.fullmatch(path.name)
        if matched and any(path.glob("*.lgt")):
            claim = path / "run.json"
            began = claim.stat().st_mtime_ns if claim.exists() else 0
            found.append((began, int(matched[1] or 0), path))
    return max(found)[2] if found else usual
