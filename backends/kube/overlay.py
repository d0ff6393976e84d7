"""Pod overlays: what a role's pods have beyond what a Role can say, in TorchX's form.

An overlay is a part of a pod, such as ``{"spec": {"tolerations": [...]}}``, laid over the pod that the role gives.
It is in ``role.metadata["kubernetes"]``: the mapping itself, the mapping below ``V1Pod``, as TorchX's `set_overlay`
writes it, or the path or URL of a YAML or JSON file that fsspec can open.

Mappings are merged, lists are appended to, a tuple replaces a list, anything else replaces what is there. The keys that
`PUT`, `JOIN` and `DEL` make replace, join by a field, and remove.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from ...base.bounded_yaml import load_yaml
from ...specs.errors import AppDefError
from ...specs.roles import AppDef, Role, macros
from .objects import KubernetesObject, sanitize_for_serialization

Overlay = dict[str, Any]

_PUT, _JOIN, _DEL = "__put__:", "__join__:", "__del__:"


NAMESPACE = "kubernetes"
POD = "V1Pod"
# Written by TorchX's `set_overlay`: overlays by their kind.
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
    """Merge a value into the one that a key has, and return the result."""
    if there is None or value is None:
        return _fresh(value)
    if _word(there) != _word(value):
        raise AppDefError(f"The overlay has {_word(value)} at {key}, which is {_word(there)}: PUT({key!r}) replaces it")
    if isinstance(value, Mapping):
        apply_overlay(there, value)
        return there
    return [*there, *_fresh(value)] if isinstance(value, list) else _fresh(value)


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
    for what in (there := there or [], value):
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


def get_overlay(target: AppDef | Role, namespace: str, kind: str) -> Overlay:
    """Return the overlay in a role's metadata, empty if there is none; the operators in its keys are kept.

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
        overlay = load_yaml(text, _loader())
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        raise AppDefError(f"The overlay {place} is not YAML: {' '.join(str(error).split())}") from error
    if not isinstance(overlay, dict):
        raise AppDefError(f"The overlay {place} has {type(overlay).__name__}: use a mapping, such as spec: ...")
    return overlay


@cache
def _loader() -> Any:
    import yaml

    class TupleLoader(yaml.SafeLoader):
        """A safe loader that knows ``!!python/tuple``."""

    def tuple_of(loader: yaml.SafeLoader, node: Any) -> tuple[Any, ...]:
        return tuple(loader.construct_sequence(node, deep=True))

    TupleLoader.add_constructor("tag:yaml.org,2002:python/tuple", tuple_of)
    return TupleLoader


def overlay_of(role: Role) -> Overlay:
    """Return the overlay of a role's pods; empty if it has none.

    Raises:
        AppDefError: it cannot be read, or is not an overlay.
    """
    try:
        return get_overlay(role, NAMESPACE, POD)
    except AppDefError as error:
        raise AppDefError(f"Role {role.name}: {error}") from error


def overlaid(pod: KubernetesObject, role: Role, overlay: Overlay, values: macros.Values) -> KubernetesObject:
    """Return a pod with an overlay laid over it, whose macros are replaced.

    Raises:
        AppDefError: the overlay does not fit.
    """
    if not overlay:
        return pod
    try:
        apply_overlay(pod, _replaced(overlay, values))
        made = _without_nulls(sanitize_for_serialization({part: pod.get(part) for part in ("metadata", "spec")}))
        for part in ("metadata", "spec"):
            if not isinstance(made.get(part), dict):
                raise AppDefError(f"The overlay leaves the pod no {part}: leave it out, or give a mapping")
    except AppDefError as error:
        raise AppDefError(f"Role {role.name}: {error}") from error
    return made


def _replaced(value: Any, values: macros.Values) -> Any:
    """Return an overlay with the macros replaced; other signs that macros know stand for themselves, as for TorchX."""
    if isinstance(value, dict):
        return {key: _replaced(inner, values) for key, inner in value.items()}
    if type(value) in (list, tuple):
        return type(value)(_replaced(item, values) for item in value)
    if isinstance(value, str):
        for name, what in values.to_dict().items():
            value = value.replace(f"${{{name}}}", what)
    return value


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(inner) for key, inner in value.items() if inner is not None}
    return [_without_nulls(item) for item in value] if isinstance(value, list) else value
