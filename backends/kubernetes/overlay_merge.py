"""Laying one object over another, with keys that replace, join and remove; the rules are those of TorchX's overlays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...specs import AppDefError

Overlay = dict[str, Any]

_PUT, _JOIN, _DEL = "__put__:", "__join__:", "__del__:"


def PUT(key: str) -> str:
    """Return the key under which a value replaces what is there."""
    return _PUT + key


def JOIN(key: str, *, on: str) -> str:
    """Return the key under which a list is joined with the one that is there.

    Args:
        key: the list's key.
        on: the field that tells which of their mappings belong together; fields of the later one win.
    """
    return f"{_JOIN}{key}:{on}"


def DEL(key: str) -> str:
    """Return the key that removes a key; its value does not matter."""
    return _DEL + key


def apply_overlay(base: Overlay, overlay: Mapping[str, Any]) -> None:
    """Lay an overlay over an object, which is changed.

    Args:
        base: the object.
        overlay: the overlay.

    Raises:
        AppDefError: a mapping or list is laid over something else, or a `JOIN` is malformed.
    """
    for key, value in overlay.items():
        if not isinstance(key, str):
            raise AppDefError(f"The overlay has the key {key!r}: keys are texts")
        if key.startswith(_DEL):
            base.pop(key.removeprefix(_DEL), None)
        elif key.startswith(_PUT):
            base[key.removeprefix(_PUT)] = _fresh(value)
        elif key.startswith(_JOIN):
            name, on = join_parts(key)
            base[name] = joined(base.get(name), value, name, on)
        else:
            base[key] = merged(base.get(key), value, key)


def merged(there: Any, value: Any, key: str) -> Any:
    """Return what a key has once a value is laid over what is there, None where nothing is."""
    if there is None or value is None:
        return _fresh(value)
    if isinstance(there, dict) and isinstance(value, Mapping):
        apply_overlay(there, value)
        return there
    if isinstance(there, (list, tuple)) and isinstance(value, list):
        return [*there, *_fresh(value)]
    if isinstance(there, (list, tuple)) and isinstance(value, tuple):
        return _fresh(value)
    if isinstance(there, (dict, list, tuple)) or isinstance(value, (Mapping, list, tuple)):
        raise AppDefError(f"The overlay has {_word(value)} at {key}, which is {_word(there)}: PUT({key!r}) replaces it")
    return value


def _fresh(value: Any) -> Any:
    """Return a value that nothing was there for, as the server takes it: its own keys have their effect."""
    if isinstance(value, Mapping):
        made: Overlay = {}
        apply_overlay(made, value)
        return made
    if isinstance(value, (list, tuple)):
        return [_fresh(item) for item in value]
    return value


def joined(there: Any, value: Any, name: str, on: str) -> list[Any]:
    """Return the list ``there`` joined with another by a field of their mappings, see `JOIN`."""
    if there is None:
        there = []
    for what in (there, value):
        if not isinstance(what, (list, tuple)) or not all(isinstance(item, Mapping) for item in what):
            raise AppDefError(f"The overlay joins {name}: both must be lists of mappings, and one is {what!r:.60}")
    joined: list[Any] = [dict(item) for item in there]
    for item in value:
        mate = next((one for one in joined if on in item and one.get(on) == item[on]), None)
        if mate is None:
            joined.append(_fresh(item))
        else:
            mate.update(_fresh(item))
    return joined


def join_parts(key: str) -> tuple[str, str]:
    """Return the list and the field that a key of `JOIN` names."""
    name, colon, on = key.removeprefix(_JOIN).rpartition(":")
    if not (colon and name and on):
        raise AppDefError(f"The overlay has the key {key}: want JOIN(list, on=field), {_JOIN}list:field")
    return name, on


def _word(value: Any) -> str:
    return "a mapping" if isinstance(value, Mapping) else "a list" if isinstance(value, (list, tuple)) else "a value"


def field_of(key: str) -> str:
    """Return the field that a key is about, be it of `PUT`, `JOIN` or `DEL`."""
    return join_parts(key)[0] if is_join(key) else key.removeprefix(_PUT).removeprefix(_DEL)


def is_join(key: str) -> bool:
    """Tell whether `JOIN` made a key."""
    return key.startswith(_JOIN)


def replaces(key: str) -> bool:
    """Tell whether `PUT` or `DEL` made a key: what the field had does not matter."""
    return key.startswith((_PUT, _DEL))
