"""How a name that the documentation of TorchX states is written down, and where it lives here.

The documentation spans three generations of TorchX, each in a part of its own: `interop.documented` has them all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

What = Literal[
    "module",
    "class",
    "function",
    "method",
    "static method",
    "class method",
    "abstract method",
    "attribute",
    "value",
    "members",
    "alias",
    "base class",
    "scheduler",
    "run option",
    "named resource",
    "mount",
    "component",
    "command",
    "not here",
]
Kind = Literal["addition", "generation", "upstream fault", "not here"]


@dataclass(frozen=True)
class Difference:
    """What is deliberately not as documented.

    Args:
        kind: ``addition``: there is more here; ``generation``: another generation of TorchX has it so, or the
            documentation contradicts itself; ``upstream fault``: as documented it would be wrong; ``not here``.
        why: The reason, a sentence without a full stop.
        adds: Parameters or members that are here and not documented, in order. Each of them can be left out.
        gives_default: Parameters that are documented as required and have a default here.
    """

    kind: Kind
    why: str
    adds: tuple[str, ...] = ()
    gives_default: tuple[str, ...] = ()


@dataclass(frozen=True)
class Documented:
    """One name of the documentation.

    Args:
        name: As the documentation writes it.
        what: What it is; this decides what is checked.
        here: Where it lives here, ``package.module:Name.attribute``; empty where it does not.
        says: What else is documented. Of whatever is called: its parameters in order with their defaults, without
            ``self``; ``=list`` and ``=dict`` stand for a new, empty one each time. Of `value`: the value. Of
            `members`: their names, with values where there are any. Of `alias` and `base class`: what it is another
            name of, or derived from. Of `run option`: its type and default, or `required`. Of `mount`: texts that it is
            read from. Of `component`: parameters that it has.
        difference: None where it is here as documented.
    """

    name: str
    what: What
    here: str
    says: str = ""
    difference: Difference | None = None


@dataclass(frozen=True)
class Part:
    """One part of the documentation.

    Args:
        title: What it is about.
        generation: Of which age of TorchX it is.
        names: What it names, in its order.
    """

    title: str
    generation: str
    names: tuple[Documented, ...]


def not_here(name: str, why: str) -> Documented:
    """Return a name that lives nowhere here."""
    return Documented(name, "not here", "", "", Difference("not here", why))


LOG_ITER = "(app_id, role_name, k=0, regex=None, since=None, until=None, should_tail=False, streams=None)"
"""The parameters of every `log_iter`."""
