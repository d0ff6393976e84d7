"""Pod overlays: what a role's pods have beyond what a Role can say, in TorchX's form.

An overlay is a part of a pod, such as ``{"spec": {"tolerations": [...]}}``, laid over the pod that the role gives.
It stands in ``role.metadata["kubernetes"]``: as it is, as what `set_overlay` makes of it, or as the path or URL of a
YAML or JSON file that fsspec can open.

Mappings are merged, lists are appended to, a tuple replaces a list, anything else replaces what is there. The keys that
`PUT`, `JOIN` and `DEL` make replace, join by a field, and remove.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from typing import Any

from ....specs.errors import AppDefError
from ....specs.roles import AppDef, Role

Overlay = dict[str, Any]

_PUT, _JOIN, _DEL = "__put__:", "__join__:", "__del__:"


NAMESPACE = "kubernetes"
POD = "V1Pod"
# Marks what `set_overlay` made, as TorchX's does: overlays by their kind.
_BY_KIND = "__torchx_overlays__"
_MOST_BYTES = 1 << 20


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
    """Lay a value over the one that a key has, and return the result; None where nothing is left."""
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
        mate = next((mapping for mapping in joined if on in item and mapping.get(on) == item[on]), None)
        if mate is None:
            joined.append(_fresh(item))
        else:
            mate.update(_fresh(item))
    return joined


def join_parts(key: str) -> tuple[str, str]:
    """Return the list and the field that a key of `JOIN` names."""
    name, colon, on = key.removeprefix(_JOIN).rpartition(":")
    if not (colon and name and on):
        raise AppDefError(f"The overlay has the key {key}: use JOIN(list, on=field), {_JOIN}list:field")
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


__all__ = [
    "DEL",
    "JOIN",
    "NAMESPACE",
    "POD",
    "PUT",
    "Overlay",
    "apply_overlay",
    "get_overlay",
    "read_overlay",
    "set_overlay",
]


def set_overlay(target: AppDef | Role, namespace: str, kind: str, overlay: Any) -> None:
    """Add to the overlay in the metadata of a role; what was added before stays, see `apply_overlay`.

    A later `PUT` or `DEL` of a field, or its plain value after one, takes the place of the earlier; a `JOIN` is joined
    with what the field has.

    Args:
        target: the role.
        namespace: the scheduler, ``kubernetes``.
        kind: what is laid over, ``V1Pod``.
        overlay: a mapping, or a dataclass whose fields are the keys; those that are None are left out.

    Raises:
        AppDefError: the overlay is neither, or does not fit what is there.
    """
    if kind == _BY_KIND:
        raise AppDefError(f"{kind} is not a kind of overlay")
    plain = _plain(overlay, kind)
    if not isinstance(plain, dict):
        raise AppDefError(f"The overlay {kind} is {type(overlay).__name__}: use a mapping or a dataclass")
    metadata: Any = target.metadata
    kept = metadata.get(namespace)
    kinds: Overlay = dict(kept) if isinstance(kept, Mapping) and _BY_KIND in kept else {_BY_KIND: True}
    if isinstance(kept, Mapping) and _BY_KIND not in kept:
        kinds.update({kind: kept[kind]} if kind in kept else {kind: dict(kept)} if kept else {})
    gathered = copy.deepcopy(kinds.get(kind) or {})
    for key, value in plain.items():
        _gather(gathered, key, value)
    metadata[namespace] = {**kinds, kind: gathered}


def get_overlay(target: AppDef | Role, namespace: str, kind: str) -> Overlay:
    """Return the overlay in a role's metadata, empty where there is none; its keys are as they were set.

    Args:
        target: the role.
        namespace: the scheduler, ``kubernetes``.
        kind: what is laid over, ``V1Pod``.

    Raises:
        AppDefError: it is in a file that cannot be read or is no overlay.
    """
    metadata: Any = target.metadata
    overlay = metadata.get(namespace)
    if isinstance(overlay, str):
        overlay = read_overlay(overlay)
    if not isinstance(overlay, Mapping):
        return {}
    if kind in overlay or _BY_KIND in overlay:
        overlay = overlay.get(kind) or {}
        if not isinstance(overlay, Mapping):
            raise AppDefError(f"The overlay {kind} in metadata[{namespace!r}] is {overlay!r:.60}: use a mapping")
    return dict(overlay)


def read_overlay(place: str) -> Overlay:
    """Return the overlay in a file.

    Args:
        place: a path, or a URL that fsspec can open.

    Raises:
        AppDefError: it cannot be read, or is no mapping in YAML or JSON.
    """
    import fsspec
    import yaml

    if not place:
        raise AppDefError("The overlay is an empty text: give a mapping, or the path or URL of a YAML file")
    try:
        opened: Any = fsspec.open(place, "rb")
        with opened as file:
            text = file.read(_MOST_BYTES + 1)
    except Exception as error:  # each of fsspec's file systems raises what it likes
        raise AppDefError(f"The overlay {place} cannot be read: {error}") from error
    if len(text) > _MOST_BYTES:
        raise AppDefError(f"The overlay {place} has more than {_MOST_BYTES >> 20} MB: it is not an overlay of a pod")
    try:
        overlay = yaml.load(text, _loader())  # noqa: S506 - a safe loader, with tuples
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        raise AppDefError(f"The overlay {place} is not YAML: {' '.join(str(error).split())}") from error
    if not isinstance(overlay, dict):
        raise AppDefError(f"The overlay {place} has {type(overlay).__name__}: use a mapping, such as spec: ...")
    return overlay


def _gather(kept: Overlay, key: str, value: Any) -> None:
    """Add one key of an overlay to those that are kept, without their effect."""
    name = field_of(key)
    earlier = {other: kept[other] for other in kept if field_of(other) == name}
    if is_join(key):
        same = next((what for what in earlier.values() if isinstance(what, list)), [])
        _, on = join_parts(key)
        if any(is_join(other) and other != key for other in earlier):
            same = []
        value = joined(same, value, name, on)
    elif key in earlier and not replaces(key):
        value = _kept_merged(earlier[key], value, key)
    for other in earlier:
        del kept[other]
    kept[key] = value


def _kept_merged(there: Any, value: Any, key: str) -> Any:
    if isinstance(there, dict) and isinstance(value, Mapping):
        for inner, what in value.items():
            _gather(there, inner, what)
        return there
    if isinstance(value, tuple):
        return value
    if isinstance(there, tuple) and isinstance(value, list):
        return (*there, *value)
    return merged(there, value, key)


def _plain(value: Any, where: str) -> Any:
    """Return dataclasses within a value as mappings, and enums as their values."""
    if isinstance(value, Enum):
        return value.value
    if is_dataclass(value) and not isinstance(value, type):
        pairs = {field.name: getattr(value, field.name) for field in fields(value)}
        return {name: _plain(what, f"{where}.{name}") for name, what in pairs.items() if what is not None}
    if isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str):
                raise AppDefError(f"The overlay has the key {key!r} in {where}: keys are texts")
        return {key: _plain(what, f"{where}.{key}") for key, what in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)([_plain(item, f"{where}[{number}]") for number, item in enumerate(value)])
    if value is None or isinstance(value, (str, int, float, bool)):
        return value
    raise AppDefError(f"The overlay has {type(value).__name__} at {where}: use mappings, lists, texts and numbers")


@cache
def _loader() -> Any:
    import yaml

    class TupleLoader(yaml.SafeLoader):
        """A safe loader that knows ``!!python/tuple``."""

    def tuple_of(loader: yaml.SafeLoader, node: Any) -> tuple[Any, ...]:
        return tuple(loader.construct_sequence(node, deep=True))

    TupleLoader.add_constructor("tag:yaml.org,2002:python/tuple", tuple_of)
    return TupleLoader
