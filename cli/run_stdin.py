"""The JSON object that `run --stdin` reads, with TorchX's fields."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Any

from ..backends.torchxconfig import nearest
from ..base.errors import TorchXTuiError
from ..components.command_line import GivenTexts, parse_command_line
from ..components.finder import describe
from ..components.values import to_text
from .output import say

_FIELDS = {
    "component_name": str,
    "component_args": dict,
    "component_args_str": list,
    "scheduler": str,
    "scheduler_args": dict,
    "scheduler_cfg": dict,
    "dryrun": bool,
    "wait": bool,
    "log": bool,
    "workspace": str,
    "parent_run_id": str,
    "tee_logs": bool,
}
# The fields that are also arguments of the command line.
_ARGUMENTS = {"scheduler", "workspace", "parent_run_id", "dryrun", "wait", "log", "tee_logs"}
# Arguments that are refused beside --stdin.
_NOT_WITH_STDIN = {
    *("rest", "scheduler", "scheduler_args", "workspace", "set", "parent_run_id"),
    *("wait", "log", "tee_logs", "detach", "open"),
}


def read_stdin(arguments: Any, default_scheduler: str) -> tuple[str, GivenTexts, dict[str, Any]]:
    """Read the object, put its fields into ``arguments``, and return the component, its arguments and run options.

    Args:
        arguments: the parsed command line.
        default_scheduler: the scheduler that may be named on the command line as well, and is ignored.

    Raises:
        TorchXTuiError: it is not such an object, a field is unknown or of the wrong type, or the command line has
            arguments that belong into the object.
    """
    given = [name for name, value in vars(arguments).items() if value and name in _NOT_WITH_STDIN]
    # TorchX's own command line always has the default there.
    if arguments.scheduler == default_scheduler:
        given.remove("scheduler")
    if given:
        raise TorchXTuiError(f"--stdin takes everything from the JSON object: leave out {', '.join(given)}")
    try:
        data = json.load(sys.stdin)
    except ValueError as error:
        raise TorchXTuiError(f"stdin is not JSON: {error}") from error
    if not isinstance(data, dict):
        raise TorchXTuiError(f"stdin is not a JSON object: {json.dumps(data)[:40]}")
    for name, value in data.items():
        if (kind := _FIELDS.get(name)) is None:
            raise TorchXTuiError(f"the JSON object on stdin: {name} is not a field; {nearest(name, _FIELDS)}")
        if value is not None and not isinstance(value, kind):
            raise TorchXTuiError(f"the JSON object on stdin: {name} is {json.dumps(value)[:40]}, use a {kind.__name__}")
    data = {name: value for name, value in data.items() if value is not None}
    component = data.get("component_name")
    if not component:
        raise TorchXTuiError("the JSON object on stdin has no component_name: it names the component to launch")
    for name in _ARGUMENTS & data.keys():
        setattr(arguments, name, data[name] or getattr(arguments, name, None))
    options = {**data.get("scheduler_cfg", {}), **data.get("scheduler_args", {})}
    return component, _argument_texts(component, data), options


def _argument_texts(component: str, data: Mapping[str, Any]) -> GivenTexts:
    """Return the component's arguments as texts by parameter; unknown ones are reported and ignored, as in TorchX."""
    if words := data.get("component_args_str"):
        return parse_command_line(component, list(map(str, words)))
    known = [parameter.name for parameter in describe(component).parameters]
    texts: GivenTexts = {}
    for name, value in data.get("component_args", {}).items():
        if name not in known:
            say(f"component_args: {name} is not an argument of {component}, and left out; {nearest(name, known)}")
        elif isinstance(value, list):
            texts[name] = [*map(str, value)]
        elif value is not None:
            texts[name] = str(value).lower() if isinstance(value, bool) else to_text(value)
    return texts
