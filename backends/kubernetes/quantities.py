"""Amounts as Kubernetes writes them, such as ``1500m`` and ``2Gi``, as numbers."""

from __future__ import annotations

import re
from typing import Any

_QUANTITY = re.compile(r"(?P<number>[+-]?(\d+\.?\d*|\.\d+))(?P<unit>m|u|n|[kMGTPE]|[KMGTPE]i|[eE][+-]?\d+)?")
_LONGEST, _MOST = 40, 1e21
_DECIMAL = {"": 1.0, "n": 1e-9, "u": 1e-6, "m": 1e-3, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18}
_BINARY = {f"{letter}i": 1024.0**power for power, letter in enumerate("KMGTPE", 1)}


def cores(quantity: Any) -> float | None:
    """Return an amount as a number, such as of CPUs; None where it is none, or more than any machine has."""
    text = str(quantity).strip()
    found = _QUANTITY.fullmatch(text) if len(text) <= _LONGEST else None
    if quantity is None or found is None:
        return None
    unit = found["unit"] or ""
    factor = _DECIMAL.get(unit) or _BINARY.get(unit) or float(f"1{unit}")
    amount = float(found["number"]) * factor
    return amount if abs(amount) < _MOST else None


def megabytes(quantity: Any) -> int | None:
    """Return an amount of memory in megabytes (10**6 bytes, as TorchX asks for), at least 1; None where it is none."""
    found = cores(quantity)
    return None if found is None else max(1, round(found / 1e6))
