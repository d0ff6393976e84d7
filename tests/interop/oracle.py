"""How an outcome of ours is held against TorchX's: the value, or the kind of the error; a difference is named."""

from __future__ import annotations

import builtins
import importlib
from collections.abc import Callable
from typing import Any

from hypothesis import HealthCheck, Phase, settings
from interop.differences import DIFFERENCES, Difference
from interop.plain_data import plain
from support.oracle_counts import ALL_CASES, count

__all__ = ["Explain", "Refused", "cases", "entries_of", "hold", "names_of", "outcome", "plain", "same", "theirs"]

# Explains a difference: given TorchX's outcome and ours, the name of the table's entry, or None.
Explain = Callable[[Any, Any], "str | None"]


# `make test` tries one case of so many, and every explicit example.
_PART = 15


def cases(number: int) -> settings:
    """Return how many cases hypothesis tries, the same ones each time: all by `make oracle`, else a part of them."""
    tried = number if ALL_CASES else max(10, number // _PART)
    unhurried = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture, HealthCheck.filter_too_much]
    # The first case that differs is small enough to read; making it smaller takes minutes.
    phases = [Phase.explicit, Phase.generate]
    return settings(
        max_examples=tried, derandomize=True, database=None, deadline=None, suppress_health_check=unhurried,
        phases=phases,
    )  # fmt: skip


def theirs(module: str) -> Any:
    """Return a module of TorchX; a test that calls this has the fixture `torchx`."""
    return importlib.import_module(module)


class Refused:
    """An error in place of a value; two are equal where TorchX's kind is ours too."""

    def __init__(self, error: BaseException) -> None:
        self.error: Any = error
        self.names = [kind.__name__ for kind in type(error).__mro__]
        self.module = type(error).__module__

    @classmethod
    def told(cls, names: list[str], module: str) -> Refused:
        """Return the error of another process, known by its class's names, the own one first."""
        refused = cls(Exception())
        refused.names, refused.module = names, module
        return refused

    def covers(self, other: Refused) -> bool:
        """Return whether what catches the other error catches this one: TorchX's own class, or the builtin one."""
        own = [name for name in other.names if hasattr(builtins, name)]
        raised_by_them = other.module.startswith("torchx") and not other.module.startswith("torchx_tui")
        return (other.names[0] if raised_by_them else own[0]) in self.names

    def __repr__(self) -> str:
        return self.names[0]


def outcome(call: Callable[[], Any]) -> Any:
    """Return what a call gives, or what it raised."""
    try:
        return call()
    except (Exception, SystemExit) as error:
        return Refused(error)


def same(their_outcome: Any, our_outcome: Any) -> bool:
    """Return whether two outcomes are equal, types of scalars and the order of mappings included."""
    if isinstance(their_outcome, Refused) and isinstance(our_outcome, Refused):
        return our_outcome.covers(their_outcome)
    return repr(their_outcome) == repr(our_outcome)


def hold(area: str, their_outcome: Any, our_outcome: Any, explain: Explain, case: Any = "") -> None:
    """Check that two outcomes are equal, or differ as an entry of the table says."""
    if same(their_outcome, our_outcome):
        count(area)
        return
    name = explain(their_outcome, our_outcome)
    told = f"{area}: {case!r}\n  theirs: {their_outcome!r}\n  ours:   {our_outcome!r}"
    assert name is not None, f"a difference that tests/interop/differences.py does not explain\n{told}"
    assert name in names_of(area), f"no entry is named {name}\n{told}"
    count(area, name)


def names_of(area: str) -> list[str]:
    """Return the names of the entries of an area."""
    return [entry.name for entry in entries_of(area)]


def entries_of(area: str) -> list[Difference]:
    """Return the entries of an area."""
    return [entry for entry in DIFFERENCES if entry.area == area]
