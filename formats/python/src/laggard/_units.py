"""Numbers with units, as the command prints them."""

from __future__ import annotations


def duration(seconds: float) -> str:
    """`1.25 s`, `118 ms`, `3.40 µs`."""
    for least, factor, unit in [(0.9995, 1, "s"), (0.9995e-3, 1e3, "ms"), (0.9995e-6, 1e6, "µs")]:
        if abs(seconds) >= least:
            return f"{_three_digits(seconds * factor)} {unit}"
    return f"{_three_digits(seconds * 1e9)} ns" if seconds > 0 else "0 s"


def percent(value: float) -> str:
    """`41.2 %`, `3.7 %`, `0.10 %`."""
    if value >= 99.95 or value == 0:
        return f"{value:.0f} %"
    return f"{value:.1f} %" if value >= 0.995 else f"{value:.2f} %"


def _three_digits(value: float) -> str:
    size = abs(value)
    return f"{value:.{0 if size >= 99.95 else 1 if size >= 9.995 else 2}f}"
