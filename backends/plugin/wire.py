"""Convert the arguments and values of a scheduler's methods to plain data and back, for a plugin in a worker.

Texts, numbers, lists and mappings are themselves; everything else is ``{"$": CLASS, "value": ...}``. Both ends are the
same version of this package.
"""

from __future__ import annotations

import traceback
from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import fields
from datetime import datetime
from pathlib import Path
from typing import Any

from ...base.errors import TorchXTuiError, describe_error
from ...specs import errors
from ...specs.errors import SchedulerError
from ...specs.roles import AppDef, Role
from ...specs.run_options import runopts
from ...specs.serialize import appdef_from_dict, appdef_to_dict
from ...specs.status import AppState, ReplicaStatus, RoleStatus
from ..shared.bounded_command import CommandOutput
from ..types import (
    Capabilities,
    DescribeAppResponse,
    Finding,
    ListAppResponse,
    NameFault,
    PublishedPort,
    ReplicaUsage,
    StateChange,
    Stream,
)

_DATA: dict[str, Any] = {
    kind.__name__: kind
    for kind in (
        Capabilities,
        CommandOutput,
        DescribeAppResponse,
        Finding,
        ListAppResponse,
        NameFault,
        PublishedPort,
        ReplicaStatus,
        ReplicaUsage,
        RoleStatus,
        StateChange,
    )
}
_MAX_TRACEBACK_SIZE = 20_000  # characters, the end of it
_ENUMS: dict[str, Any] = {kind.__name__: kind for kind in (AppState, Stream)}
_OPTION_TYPES: dict[str, Any] = {
    "str": str,
    "int": int,
    "float": float,
    "bool": bool,
    "list": list[str],
    "dict": dict[str, str],
}


def encode(value: Any) -> Any:
    """Convert a value to plain data.

    Raises:
        AppDefError: A role's metadata has something that JSON does not allow.
        TypeError: The value is of no kind that schedulers are asked or answer.
    """
    if value is None or type(value) in (str, int, float, bool):
        return value
    kind = type(value).__name__
    if _DATA.get(kind) is type(value):
        return {"$": kind, "value": {field.name: encode(getattr(value, field.name)) for field in fields(value)}}
    if _ENUMS.get(kind) is type(value):
        return {"$": kind, "value": value.name}
    if isinstance(value, AppDef):
        return {"$": "AppDef", "value": appdef_to_dict(value)}
    if isinstance(value, Role):
        return {"$": "Role", "value": appdef_to_dict(AppDef("", [value]))}
    if isinstance(value, runopts):
        return {"$": "runopts", "value": [_encode_option(name, option) for name, option in value]}
    if isinstance(value, datetime):
        return {"$": "datetime", "value": value.timestamp()}
    if isinstance(value, bytes):
        return {"$": "bytes", "value": b64encode(value).decode("ascii")}
    return _encode_plain(value)


def _encode_plain(value: Any) -> Any:
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, Path):
        return {"$": "Path", "value": str(value)}
    if isinstance(value, tuple):
        return {"$": "tuple", "value": [encode(item) for item in value]}
    if isinstance(value, list):
        return [encode(item) for item in value]
    if isinstance(value, Mapping):
        return {"$": "dict", "value": [[encode(key), encode(item)] for key, item in value.items()]}
    raise TypeError(f"a {type(value).__name__} cannot be passed on")


def _encode_option(name: str, option: Any) -> list[Any]:
    kind = "list" if option.is_type_list_of_str else "dict" if option.is_type_dict_of_str else option.opt_type.__name__
    return [name, kind, option.help, encode(option.default), option.is_required, list(option.aliases)]


def decode(data: Any) -> Any:
    """Convert plain data back. Raises KeyError, TypeError or ValueError where it is not what `encode` makes."""
    if isinstance(data, list):
        return [decode(item) for item in data]
    if not isinstance(data, dict):
        return data
    kind, value = data["$"], data["value"]
    if kind in _DATA:
        return _DATA[kind](**{name: decode(item) for name, item in value.items()})
    if kind in _ENUMS:
        return _ENUMS[kind][value]
    return _DECODERS[kind](value)


def _decode_options(value: Any) -> runopts:
    options = runopts()
    for name, kind, text, default, required, aliases in value:
        options.add(name, _OPTION_TYPES[kind], text, decode(default), required, aliases=aliases)
    return options


_DECODERS: dict[str, Any] = {
    "AppDef": appdef_from_dict,
    "Role": lambda value: appdef_from_dict(value).roles[0],
    "runopts": _decode_options,
    "datetime": datetime.fromtimestamp,
    "bytes": b64decode,
    "Path": Path,
    "tuple": lambda value: tuple(decode(item) for item in value),
    "dict": lambda value: {decode(key): decode(item) for key, item in value},
}


def encode_error(error: BaseException) -> dict[str, Any]:
    """Convert an error; of one that is not ours, the kind and the first line are told. Its traceback is for the log."""
    told = str(error) if isinstance(error, (TorchXTuiError, ValueError, NotImplementedError)) else describe_error(error)
    attributes: dict[str, Any] = {}
    for name, value in vars(error).items():
        if type(value) in (str, int, float, bool):
            attributes[name] = value
    trace = "".join(traceback.format_exception(error))[-_MAX_TRACEBACK_SIZE:]
    return {"class": type(error).__name__, "text": told, "attributes": attributes, "traceback": trace}


def decode_error(data: Mapping[str, Any]) -> Exception:
    """Convert an error back; one of an unknown kind is a SchedulerError."""
    kind: Any = {"ValueError": ValueError, "NotImplementedError": NotImplementedError}.get(
        str(data.get("class")), getattr(errors, str(data.get("class")), None)
    )
    # Their constructors take what their texts are made of, which is not told.
    is_error = isinstance(kind, type) and issubclass(kind, Exception)
    made: Exception = kind.__new__(kind) if is_error else SchedulerError()
    made.args = (str(data.get("text")),)
    vars(made).update(data.get("attributes") or {})
    return made
