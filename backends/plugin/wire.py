"""The table of methods of a plugin's process, and their arguments, answers and errors as plain data.

Both ends are made of the table. Arguments and answers are decoded by the annotations of `Scheduler` and its abilities.
"""

from __future__ import annotations

import functools
import inspect
import logging
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from subprocess import CalledProcessError
from typing import Any, get_args, get_origin, get_type_hints

import msgspec

from ...base.errors import TorchXTuiError, describe_error
from ...base.typed_data import convert
from ...base.validation import JsonObject
from ...logs.source.stream import Cursor, LogStream  # noqa: F401
from ...specs import errors
from ...specs.errors import InvalidRunConfigException, SchedulerError
from ...specs.roles import AppDef
from ...specs.run_options import get_type_name, runopts
from ...specs.serialize import appdef_from_dict, appdef_to_dict
from .. import types
from ..shared.bounded_command import CommandOutput  # noqa: F401
from ..types import Capabilities, DescribeAppResponse

logger = logging.getLogger(__name__)

ANSWER_TIMEOUT_S = 60.0
QUICK_TIMEOUT_S = 10.0
"""For a method that asks no backend."""
LAUNCH_TIMEOUT_S = 24 * 3600.0
"""For launches, and the builds before them."""
_MAX_TRACEBACK_SIZE = 20_000  # characters, the end of it
_OPTION_TYPES = {get_type_name(kind): kind for kind in (str, int, float, bool, list[str], dict[str, str])}
# A line each: the name, and what it does, as in "NAME could not ACTION". The first four are of the process itself.
# One of the scheduler that the plugin does not override is not asked: that of `Scheduler` itself answers.
_TABLE = """
open                 be loaded
dry_run              make the request
launch               launch
build                build a workspace
close                close
run_opts             list its run options
known_values         list the values of its run options
_pre_build_validate  accept this app
_validate            accept this app
check                be checked
preflight            check a launch
check_names          check names
partitions           list its partitions
cluster              describe its cluster
estimate_start       estimate a start
alternatives         find an earlier start
list                 list jobs
set_all_users        choose whose jobs are listed
missing_jobs         say which jobs are missing
subscribe            report changes
exists               find a job
has_ended            describe a job
describe             describe a job
describe_native      read a request back
usage                measure usage
log_iter             read a log
log_files            find a log
shell_command        open a shell
run_beside           run a command beside a replica
actions              list actions
act                  change a job
cancel               cancel a job
_cancel_existing     cancel a job
delete               delete a job
_delete_existing     delete a job
own_app_ids          list its own jobs
detach               detach a job
end_own              end its own jobs
prune                remove old jobs
"""
_ROWS = (line.partition(" ") for line in _TABLE.strip().splitlines())
METHODS = {name: action.strip() for name, _, action in _ROWS}
"""The methods of the table, each with what it does."""
TIMEOUTS_S = {"launch": LAUNCH_TIMEOUT_S, "build": LAUNCH_TIMEOUT_S, "close": 1.0, "run_opts": QUICK_TIMEOUT_S}
"""Seconds after which a call is given up, where it is not after `ANSWER_TIMEOUT_S`."""


@dataclass
class Opened:
    """The answer to `open`: attributes of the plugin's scheduler, and the methods of the table that it overrides."""

    capabilities: Capabilities
    context: str
    takes_contexts: bool
    runs_once_per_node: bool
    builds_workspaces: bool
    methods: list[str]


def encode(value: Any) -> Any:
    """Convert an argument or answer to plain data.

    Raises:
        AppDefError: a role's metadata has something that JSON does not allow.
        TypeError: the value has another type than arguments and answers have.
    """
    if isinstance(value, AppDef):
        return appdef_to_dict(value)
    if isinstance(value, DescribeAppResponse):
        return {**encode({**vars(value), "roles": None}), "roles": appdef_to_dict(AppDef("", value.roles))}
    return msgspec.to_builtins(value, enc_hook=_encode_other)


def _encode_other(value: Any) -> Any:
    if isinstance(value, runopts):
        return [
            [name, get_type_name(option.opt_type), option.help, option.default, option.is_required, option.aliases]
            for name, option in value
        ]
    if isinstance(value, (str, Path)):
        return str(value)
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Sequence):
        return list(value)
    raise TypeError(f"a {type(value).__name__} cannot be passed on")


def decode(data: Any, kind: Any) -> Any:
    """Convert plain data back to a type. A list of jobs is decoded one by one, so that a bad one costs only itself.

    Raises:
        ValueError: it is not of that type; the message says where.
    """
    if kind is AppDef:
        return appdef_from_dict(data)
    if DescribeAppResponse in get_args(kind):
        return data and DescribeAppResponse(
            roles=appdef_from_dict(data.pop("roles")).roles,
            **{name: decode(value, _hints(DescribeAppResponse)[name]) for name, value in data.items()},
        )
    if get_origin(kind) is list and isinstance(data, list):
        return [value for item in data for value in _decode_item(item, *get_args(kind))]
    return convert(data, kind, dec_hook=_decode_other)


def _decode_item(data: Any, kind: Any) -> list[Any]:
    try:
        return [convert(data, kind, dec_hook=_decode_other)]
    except msgspec.ValidationError as error:
        logger.warning("left out of an answer: %s", error)
        return []


def _decode_other(kind: Any, data: Any) -> Any:
    if kind is not runopts:
        return kind(data)
    options = runopts()
    for name, type_name, text, default, required, aliases in data:
        options.add(name, _OPTION_TYPES[type_name], text, default, required, aliases=aliases)
    return options


# The modules of the contract import what they are annotated with for type checkers only.
_hints = functools.cache(functools.partial(get_type_hints, localns={**vars(types), **globals()}))


def decode_arguments(function: Callable[..., Any], data: Sequence[Any]) -> tuple[list[Any], dict[str, Any]]:
    """Convert the positional and keyword arguments of a method back, by its annotations."""
    hints = _hints(function)
    names = [*inspect.signature(function).parameters][1:]
    positional, keywords = data
    return (
        [decode(value, hints[name]) for name, value in zip(names, positional, strict=False)],
        {name: decode(value, hints[name]) for name, value in keywords.items()},
    )


def decode_answer(function: Callable[..., Any], data: Any) -> Any:
    """Convert the answer of a method back, by its annotation."""
    return decode(data, _hints(function)["return"])


def plugin_error(name: str, action: str, error: BaseException) -> TorchXTuiError:
    """Make an error of this package, with the plugin's name, of one that a plugin raised."""
    if isinstance(error, TorchXTuiError):
        return error
    if type(error).__name__ == "InvalidRunConfigException":  # TorchX's
        given: Any = error
        return InvalidRunConfigException(
            str(error).partition(". Given: ")[0], str(getattr(given, "cfg_key", "")), getattr(given, "cfg", {}) or {}
        )
    reason, is_whole = describe_error(error), False
    if isinstance(error, CalledProcessError):
        printed = error.stderr or error.output or b""
        text = (printed.decode("utf-8", "replace") if isinstance(printed, bytes) else str(printed)).strip()
        command = [error.cmd] if isinstance(error.cmd, (str, bytes)) else list(error.cmd)
        reason, is_whole = f"{command[0]} ended with {error.returncode}", bool(text)
        if text:
            reason += f": {text.splitlines()[-1].strip()}"
    made = SchedulerError(f"{name} could not {action}: {reason}")
    vars(made)["lacks_output"] = not is_whole
    return made


def encode_error(error: BaseException) -> JsonObject:
    """Convert an error; its traceback is for the log file."""
    attributes = {name: value for name, value in vars(error).items() if type(value) in (str, int, float, bool)}
    trace = "".join(traceback.format_exception(error))[-_MAX_TRACEBACK_SIZE:]
    return {"class": type(error).__name__, "text": str(error), "attributes": attributes, "traceback": trace}


def decode_error(data: Mapping[str, Any], output: str) -> Exception:
    """Convert an error back; one of an unknown kind is a SchedulerError.

    Args:
        data: what `encode_error` returned.
        output: what the plugin printed during the call; the last line is added where it may say more than the error.
    """
    name, text = str(data.get("class")), str(data.get("text"))
    attributes = dict(data.get("attributes") or {})
    lines = output.strip().splitlines()
    if attributes.pop("lacks_output", False) and lines:
        text = f"{text}: {lines[-1].strip()}"
    builtin = {"ValueError": ValueError, "NotImplementedError": NotImplementedError}
    kind: Any = builtin.get(name) or getattr(errors, name, None)
    # The constructors take other arguments than the text.
    is_error = isinstance(kind, type) and issubclass(kind, Exception)
    made: Exception = kind.__new__(kind) if is_error else SchedulerError(text)
    made.args = (text,)
    vars(made).update(attributes)
    return made
