"""Parsers and formats of the values that Slurm's commands print: times, durations, sizes, counts and lists."""

from __future__ import annotations

import re
from collections.abc import Mapping

from ...base.validation import epoch_seconds
from ...logs.text.sanitize import plain

# A task id can be no larger (slurm.conf(5): MaxArraySize), and no text of tasks makes more numbers than that.
_MAX_TASKS = 4_000_001
_MAX_NODES = 100_000
_EMPTY = frozenset(
    ("", "N/A", "(null)", "None", "None assigned", "Unknown", "NONE", "n/a", "INVALID", "NOT_SET", "Partition_Limit")
)
_DURATION = re.compile(r"(?:(?P<days>\d+)-)?(?P<clock>\d+(?::\d+){0,2})(?:\.\d+)?")
_SIZE = re.compile(r"(?P<number>\d{1,15}(?:\.\d{1,6})?)(?P<unit>[KMGTP]?)[nc]?")
_UNITS = {unit: 1 << (10 * power) for power, unit in enumerate(("", "K", "M", "G", "T", "P"))}
_TASKS = re.compile(r"(\d{1,9})(?:-(\d{1,9})(?::(\d{1,9}))?)?")
_NODES = re.compile(r"(?P<before>[^,\[\]]*)\[(?P<ranges>[^\]]*)\](?P<after>[^,\[]*)|(?P<name>[^,\[\]]+)")
_PARTS = ("shard", "mps")
_GPUS = re.compile(r"(?:^|,)(?P<name>gpu|shard|mps)(?::(?P<type>[^,:()]+))?:(?P<count>\d{1,6})(?=[(,]|$)")


def text_or_nothing(value: str) -> str:
    """Return a value, empty where it is one of Slurm's words for none."""
    return "" if value in _EMPTY else value


def parse_time(value: str) -> float | None:
    """Parse an epoch, which Slurm prints with ``SLURM_TIME_FORMAT=%s``; return None for 0 and for no number."""
    return epoch_seconds(value) or None


def parse_count(value: str) -> int:
    """Parse a number such as ``4``, ``1-3`` (the first counts) and ``4000+``; return 0 for none."""
    digits = re.match(r"\d{1,15}", value)
    return int(digits[0]) if digits else 0


def parse_integer(value: str) -> int | None:
    """Parse a whole number; return None for any other text."""
    return int(value) if value.isdecimal() and len(value) < 12 else None


def parse_duration(value: str) -> int | None:
    """Parse a duration such as ``1-02:03:04``, ``02:03.500`` and ``10`` (minutes) to seconds; None for no limit."""
    found = _DURATION.fullmatch(value)
    if found is None:
        return None
    parts = [int(part) for part in found["clock"].split(":")]
    if found["days"] or len(parts) == 3:
        hours, minutes, seconds = [*parts, 0, 0][:3]
    else:
        hours, minutes, seconds = 0, *[*parts, 0][:2]
    return int(found["days"] or 0) * 86400 + hours * 3600 + minutes * 60 + seconds


def format_duration(seconds: float) -> str:
    """Format a duration with all of its units, such as ``1d 2h`` and ``1m 30s``."""
    left, parts = int(seconds), []
    for size, unit in ((86400, "d"), (3600, "h"), (60, "m"), (1, "s")):
        if left >= size:
            parts.append(f"{left // size}{unit}")
            left %= size
    return " ".join(parts) or "0s"


def parse_size(text: str, unit: str = "") -> int | None:
    """Parse a size such as ``4876K`` to bytes, in ``unit`` where it names none; return None for no size.

    A last letter ``n`` or ``c`` (for each node, for each CPU) is ignored.
    """
    found = _SIZE.fullmatch(text)
    return None if found is None else round(float(found["number"]) * _UNITS[found["unit"] or unit])


def format_size(size: float) -> str:
    """Format a size in bytes as Slurm's users write it, such as ``1.5G``."""
    for unit in "TGM":
        if size >= 0.9995 * _UNITS[unit]:  # less is rounded to 1024 of the unit below
            return f"{size / _UNITS[unit]:.1f}".removesuffix(".0") + unit
    return f"{max(1, round(size / 1024))}K"


def parse_exit(value: str) -> tuple[int | None, int]:
    """Parse ``CODE:SIGNAL``, or the raw wait status of squeue before 23.02, to an exit code and a signal.

    A job that ran out of memory has 125 there, with or without the flag of a core.
    """
    code, colon, number = value.partition(":")
    if not code.isdecimal() or len(code) > 9 or (colon and not number.isdecimal()):
        return None, 0
    if colon:
        signal = int(number[:9])
        return (None, signal & 0x7F) if signal else (int(code), 0)
    status = int(code)
    return (None, status & 0x7F) if status & 0x7F else ((status >> 8) & 0xFF, 0)


def parse_tasks(text: str) -> list[int]:
    """Expand a list of array tasks such as ``1,3-5,10-20:2%4``; the ``...`` of a cut list is ignored."""
    numbers: list[int] = []
    for part in text.strip("[]").partition("%")[0].split(","):
        if found := _TASKS.fullmatch(part):
            first = int(found[1])
            last = min(int(found[2] or first), first + _MAX_TASKS)
            numbers += range(first, last + 1, max(1, int(found[3] or 1)))
    return numbers


def parse_tres(text: str) -> dict[str, str]:
    """Parse trackable resources, such as ``cpu=4,mem=100M,gres/gpu=2``, to values by name."""
    return dict(part.split("=", 1) for part in text.split(",") if "=" in part)


def count_gpus(gres: str) -> int:
    """Return the number of GPUs in generic resources such as ``gpu:a100:4(S:0-1),gpu:v100:2``."""
    return sum(int(found["count"]) for found in _GPUS.finditer(gres) if found["name"] == "gpu")


def gpus_by_type(gres: str) -> dict[str, int]:
    """Return the GPUs in generic resources by type, parts of shared GPUs by ``shard`` or ``shard:TYPE``."""
    counts: dict[str, int] = {}
    for found in _GPUS.finditer(gres):
        name, kind = found["name"], found["type"] or ""
        key = plain((kind or name) if name == "gpu" else f"{name}:{kind}".rstrip(":"))
        counts[key] = counts.get(key, 0) + int(found["count"])
    return counts


def count_whole(gpus: Mapping[str, tuple[int, int]]) -> tuple[int, int]:
    """Return the free GPUs and all GPUs of `gpus_by_type`, without the parts of shared ones."""
    whole = [counts for kind, counts in gpus.items() if kind.partition(":")[0] not in _PARTS]
    return sum(free for free, _ in whole), sum(total for _, total in whole)


def expand_nodes(text: str) -> list[str]:
    """Expand a list of nodes such as ``n[1-3,07],gpu2``."""
    names: list[str] = []
    for found in _NODES.finditer(text):
        if found["name"]:
            names.append(found["name"])
            continue
        for part in found["ranges"].split(","):
            first, dash, last = part.partition("-")
            numbers = [part]
            if dash and first.isdecimal() and last.isdecimal():
                end = min(int(last), int(first) + _MAX_NODES)
                numbers = [f"{number:0{len(first)}d}" for number in range(int(first), end + 1)]
            names += (f"{found['before']}{number}{found['after']}" for number in numbers)
    return names[:_MAX_NODES]
