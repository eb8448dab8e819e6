"""Reads an archive with the library's Python bindings: read.py ANCHOR

Prints the number of locations, and how often each kind of event is in it, by name.
"""

import collections
import sys

import otf2

with otf2.reader.open(sys.argv[1]) as archive:
    kinds = collections.Counter(type(event).__name__ for _, event in archive.events)
    print("locations", len(archive.definitions.locations))
for kind, count in sorted(kinds.items()):
    print(kind, count)
