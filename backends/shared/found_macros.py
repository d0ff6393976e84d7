"""Texts of replicas, in which macros stand replaced, as the role had them: so that they can be launched again."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from ...specs.roles import macros

_NUMBERS = re.compile(r"(\d+)")


@dataclass(frozen=True)
class Place:
    """What the macros stood for in one replica.

    Args:
        app_id: the job's name; empty where it has no random part, and so may be in a text by chance.
        replica_id: the replica's number.
        rank0_env: the names that the variable with the first replica's host may have.
    """

    app_id: str
    replica_id: int
    rank0_env: tuple[str, ...] = ()


def as_given(texts: Sequence[str], places: Sequence[Place]) -> str | None:
    """Return the text of a role that became these in its replicas; None where no macro tells what differs.

    Args:
        texts: the text in each replica.
        places: what the macros stood for there.
    """
    split = [_split(text, place) for text, place in zip(texts, places, strict=True)]
    made: list[tuple[bool, str]] = []
    for index, parts in enumerate(zip_longest(*split)):
        if index % 2:
            if len(set(parts)) > 1:
                return None
            made.append((True, parts[0]))
        elif None in parts or (found := _numbered(parts, places)) is None:
            return None
        else:
            made += found
    return _joined(made)


def as_given_or_first(texts: Sequence[str], places: Sequence[Place], what: str, lost: list[str]) -> str:
    """Return the text of a role as `as_given`; where no macro tells what differs, that of the first replica.

    Args:
        texts: the text in each replica.
        places: what the macros stood for there.
        what: what it is, such as "worker: its argument 2".
        lost: gets a sentence where the first replica's was taken.
    """
    found = as_given(texts, places)
    if found is not None:
        return found
    lost.append(f"{what} differs between its replicas: that of the first is used for all")
    return literal(texts[0])


def command_as_given(
    commands: Sequence[Sequence[str]], places: Sequence[Place], role: str, lost: list[str]
) -> list[str]:
    """Return the entrypoint and the arguments of a role, which became these in its replicas.

    Args:
        commands: what each replica runs.
        places: what the macros stood for there.
        role: its name.
        lost: gets what could not be rebuilt.
    """
    if len({len(command) for command in commands}) > 1:
        commands, places = commands[:1], places[:1]
        lost.append(f"{role}: the arguments of its replicas differ: those of the first are used for all")
    return [
        as_given_or_first(texts, places, f"{role}: its argument {number}", lost)
        for number, texts in enumerate(zip(*commands, strict=True))
    ]


def variable_as_given(
    name: str, values: Sequence[Mapping[str, str]], places: Sequence[Place], role: str, lost: list[str]
) -> str:
    """Return the value of a role's variable.

    Args:
        name: the variable.
        values: the variables of each replica.
        places: what the macros stood for there.
        role: its name.
        lost: gets what could not be rebuilt.
    """
    return as_given_or_first([each.get(name, "") for each in values], places, f"{role}: its variable {name}", lost)


def literal(text: str) -> str:
    """Return a text as a role has it that comes out as it is here."""
    return text.replace("$", "$$") if macros.Values("", "", "").substitute(text) != text else text


def _split(text: str, place: Place) -> list[str]:
    """Return a text in parts, of which every second one is a macro."""
    names = dict.fromkeys(place.rank0_env, macros.rank0_env)
    sought = [rf"(?<!\w){re.escape(name)}(?!\w)" for name in names]
    if place.app_id:
        names[place.app_id] = macros.app_id
        sought.append(re.escape(place.app_id))
    if not sought:
        return [text]
    parts = re.split(f"({'|'.join(sought)})", text)
    return [names[part] if index % 2 else part for index, part in enumerate(parts)]


def _numbered(parts: Sequence[str], places: Sequence[Place]) -> list[tuple[bool, str]] | None:
    """Unify parts that may differ in the replica's number; None where they differ in more."""
    if len(set(parts)) == 1:
        return [(False, parts[0])]
    made: list[tuple[bool, str]] = []
    for same in zip_longest(*(_NUMBERS.split(part) for part in parts)):
        if len(set(same)) == 1:
            made.append((False, same[0]))
        elif all(number == str(place.replica_id) for number, place in zip(same, places, strict=True)):
            made.append((True, macros.replica_id))
        else:
            return None
    return made


def _joined(parts: Sequence[tuple[bool, str]]) -> str:
    if not any(is_macro for is_macro, _ in parts):
        return literal("".join(text for _, text in parts))
    return "".join(text if is_macro else text.replace("$", "$$") for is_macro, text in parts)
