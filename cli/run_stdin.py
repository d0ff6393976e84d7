"""What `run --stdin` reads: one JSON object with the fields that TorchX's has."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Any

from ..base.errors import TorchXTuiError
from .output import say

# The fields of the JSON object that --stdin reads, and what each of them is.
_STDIN = {
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
# What may not stand on the command line beside --stdin.
_NOT_WITH_STDIN = {
    *("rest", "scheduler", "scheduler_args", "workspace", "set", "parent_run_id"),
    *("wait", "log", "tee_logs", "detach", "open"),
}


def read_stdin(arguments: Any, default_scheduler: str) -> dict[str, Any]:
    """Return the JSON object on stdin; its fields are put into ``arguments``.

    Args:
        arguments: what the parser made of the command line; it is changed.
        default_scheduler: the one that may be named beside the object, and says nothing then.

    Raises:
        TorchXTuiError: it is no such object, a field is unknown or of the wrong type, or something else stands on the
            command line as well.
    """
    given = [name for name, value in vars(arguments).items() if value and name in _NOT_WITH_STDIN]
    # As in TorchX, where the default stands there without a word.
    if arguments.scheduler == default_scheduler:
        given.remove("scheduler")
    if given:
        raise TorchXTuiError(f"--stdin takes everything from the JSON object: leave out {', '.join(given)}")
    try:
        data = json.load(sys.stdin)
    except ValueError as error:
        raise TorchXTuiError(f"what is on stdin is not JSON: {error}") from error
    if not isinstance(data, dict):
        raise TorchXTuiError(f"what is on stdin is not a JSON object, but {json.dumps(data)[:40]}")
    for name, value in data.items():
        _check_field(name, value)
    if not data.get("component_name"):
        raise TorchXTuiError("the JSON object on stdin has no component_name: it names the component to launch")
    for name in ("scheduler", "workspace", "parent_run_id"):
        setattr(arguments, name, data.get(name))
    for name in ("dryrun", "wait", "log", "tee_logs"):
        setattr(arguments, name, getattr(arguments, name, False) or data.get(name, False))
    return data


def _check_field(name: str, value: Any) -> None:
    kind = _STDIN.get(name)
    if kind is None:
        from ..backends.torchxconfig import nearest

        raise TorchXTuiError(f"the JSON object on stdin: {name} is not a field of it; {nearest(name, _STDIN)}")
    if value is not None and not isinstance(value, kind):
        raise TorchXTuiError(f"the JSON object on stdin: {name} is {json.dumps(value)[:40]}, use a {kind.__name__}")


def argument_texts(component: str, data: Mapping[str, Any]) -> dict[str, str | list[str]]:
    """Return the component's arguments of a JSON object, as texts by parameter.

    What is no argument of the component is said on stderr and left out, as TorchX leaves it out.

    Raises:
        TorchXTuiError: the words of component_args_str are no arguments of the component.
    """
    from ..backends.torchxconfig import nearest
    from ..components.command_line import parse_command_line
    from ..components.finder import describe
    from ..components.values import to_text

    words = data.get("component_args_str") or []
    if words:
        return parse_command_line(component, [str(word) for word in words])
    known = [parameter.name for parameter in describe(component).parameters]
    texts: dict[str, str | list[str]] = {}
    for name, value in (data.get("component_args") or {}).items():
        if name not in known:
            say(f"component_args: {name} is not an argument of {component}, and left out; {nearest(name, known)}")
        elif isinstance(value, list):
            texts[name] = [str(item) for item in value]
        elif value is not None:
            texts[name] = str(value).lower() if isinstance(value, bool) else to_text(value)
    return texts
