"""The `laggard` command."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence


class CommandError(RuntimeError):
    """The command failed, or there is none. The message is its own line."""


def run(words: Sequence[str | os.PathLike[str]]) -> str:
    """What `laggard` with these words prints. `LAGGARD_BIN` names the command if it is not on the
    `PATH`."""
    command = os.environ.get("LAGGARD_BIN") or shutil.which("laggard")
    if not command:
        raise CommandError("there is no laggard on the PATH; set LAGGARD_BIN to the command")
    done = subprocess.run(
        [command, *(os.fspath(word) for word in words)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    if done.returncode != 0:
        raise CommandError(done.stderr.strip() or f"laggard ended with {done.returncode}")
    return done.stdout
