"""Compare outcomes of ours with TorchX's: values, or kinds of errors. Known differences are in differences.toml."""

import builtins
import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from interop.differences import DIFFERENCES
from support.oracle_counts import ALL_CASES, count
from support.tables import toml_table

import torchx_tui.specs as our_specs

WORDS = toml_table(Path(__file__).with_name("words.toml"))
"""Of each area: the words that cases are composed of."""

Explain = Callable[[Any, Any], "str | None"]
"""Returns the name of the entry that explains a difference of TorchX's outcome and ours, or None."""

# `make test` tries one case of so many, and every explicit example.
_PART = 15


def cases(number):
    """Return how many cases hypothesis tries, the same ones each time: all by `make oracle`, else a part of them."""
    return settings(
        max_examples=number if ALL_CASES else max(10, number // _PART),
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture, HealthCheck.filter_too_much],
        # The first case that differs is small enough to read; making it smaller takes minutes.
        phases=[Phase.explicit, Phase.generate],
    )


def theirs(module="torchx.specs"):
    """Return a module of TorchX; a test that calls this has the fixture `torchx`."""
    return importlib.import_module(module)


class Refused:
    """An error in place of a value; two are equal where TorchX's kind is ours too."""

    def __init__(self, error):
        self.error = error
        self.names = [kind.__name__ for kind in type(error).__mro__]

    def covers(self, other):
        """Return whether what catches the other error catches this one: TorchX's own class, or the builtin one."""
        module = type(other.error).__module__
        if module.startswith("torchx") and not module.startswith("torchx_tui"):
            return other.names[0] in self.names
        return next(name for name in other.names if hasattr(builtins, name)) in self.names

    def __repr__(self):
        return self.names[0]


def outcome(call):
    """Return what a call returns, or what it raised."""
    try:
        return call()
    except (Exception, SystemExit) as error:
        return Refused(error)


def hold(area, their, our, explain=None, case=""):
    """Check that two outcomes are equal, with types of scalars and orders of mappings, or differ as an entry says."""
    if isinstance(their, Refused) and isinstance(our, Refused):
        equal = our.covers(their)
    else:
        equal = repr(their) == repr(our)
    name = None if equal or explain is None else explain(their, our)
    assert equal or name in [entry.name for entry in entries_of(area)], (
        f"no entry of tests/interop/differences.toml explains this: {name}\n"
        f"{area}: {case!r}\n  theirs: {their!r}\n  ours:   {our!r}"
    )
    count(area, name)


def compare(area, act, explain=None, case="", both=()):
    """Compare what a function makes of TorchX's specs and of ours, or of another pair."""
    their, our = (outcome(lambda one=one: act(one)) for one in both or (theirs(), our_specs))
    hold(area, their, our, explain, case)


def entries_of(area):
    """Return the entries of an area."""
    return [entry for entry in DIFFERENCES if entry.area == area]


def each_difference(area):
    """Run a test for each entry of an area that has an example."""
    entries = [entry for entry in entries_of(area) if entry.example]
    return pytest.mark.parametrize("difference", entries, ids=lambda entry: entry.name)


def check_example(difference, names=lambda specs: {}, both=()):
    """Check that an entry's example gives what the entry says.

    Args:
        difference: The entry.
        names: Returns the names that the example uses beside `specs`, for one of the two.
        both: TorchX's specs and ours, or another pair.
    """
    results = [
        repr(outcome(lambda one=one: eval(difference.example, {"specs": one, **names(one)})))
        for one in both or (theirs(), our_specs)
    ]
    assert results == list(difference.gives), results
