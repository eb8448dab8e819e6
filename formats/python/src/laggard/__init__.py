"""Reports and traces of laggard, which says who a parallel program waits for.

`read` opens what the command wrote, five functions ask it:

>>> import laggard
>>> report = laggard.read()
>>> print(laggard.why(report))

Tables are Arrow tables. pandas and Polars see them without a copy.
"""

from ._command import CommandError
from .questions import Answer, for_whom, what_helps, where, who_waits, why
from .report import Cause, Finding, Place, Report, RootCause, read
from .tables import Tables
from .trace import Trace

__all__ = [
    "Answer",
    "Cause",
    "CommandError",
    "Finding",
    "Place",
    "Report",
    "RootCause",
    "Tables",
    "Trace",
    "for_whom",
    "read",
    "what_helps",
    "where",
    "who_waits",
    "why",
]
