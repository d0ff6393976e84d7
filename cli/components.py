"""The commands builtins, runopts and lint."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..base.files import path_exists
from ..base.validation import JsonObject
from ..specs.errors import ComponentLoadError, SchedulerError, UnknownSchedulerException
from .output import green, put, put_json, say

if TYPE_CHECKING:
    from ..components.model import LinterMessage
    from ..settings.config import Settings
    from ..specs import run_options


def builtins(arguments: Any, settings: Settings) -> int:
    from ..components.finder import get_builtin_source, list_components

    if arguments.print:
        put(get_builtin_source(arguments.print).rstrip("\n"))
        return 0
    found = list_components()
    if arguments.json:
        put_json(list(map(dataclasses.asdict, found)))
        return 0
    put(f"Found {len(found)} builtin components:")
    width = max(len(summary.name) for summary in found)
    for number, summary in enumerate(found, 1):
        text = f"cannot be used: {summary.error}" if summary.error else summary.summary
        put(f" {number:2d}. {summary.name:<{width}}  {text}".rstrip())
    return 0


def runopts(arguments: Any, settings: Settings) -> int:
    from ..settings.make_runner import make_runner
    from ..specs.run_options import get_type_name

    found: dict[str, run_options.runopts] = {}
    with make_runner(settings) as runner:
        names = [arguments.scheduler] if arguments.scheduler else runner.scheduler_names()
        for name in dict.fromkeys(name.partition("@")[0] for name in names):
            try:
                found[name] = runner.scheduler(name).run_opts()
            except SchedulerError as error:
                if arguments.scheduler or isinstance(error, UnknownSchedulerException):
                    raise
                say(f"{name} is left out: {error}")
    if not arguments.json:
        for name, options in found.items():
            print(f"{green(name, sys.stdout)}:")
            put(f"{options!r}\n")
        return 0
    data = {
        name: [
            {
                "name": key,
                "type": get_type_name(option.opt_type),
                "default": option.default,
                "required": option.is_required,
                "help": option.help,
            }
            for key, option in options
        ]
        for name, options in found.items()
    }
    put_json(data)
    return 0


def lint(arguments: Any, settings: Settings) -> int:
    found = [fault for name in arguments.files for fault in _lint_file(name)]
    if arguments.json:
        put_json(found)
    else:
        for fault in found:
            put("{path}:{line}:{column}: {severity}: {message}".format_map(fault))
    return 1 if any(fault["severity"] == "error" for fault in found) else 0


def _lint_file(name: str) -> list[JsonObject]:
    """Return the faults of ``FILE:FUNCTION`` or of all components of ``FILE``; a fault that several share once."""
    from ..components.lint import validate
    from ..components.model import LinterMessage

    path, _, function = name.rpartition(":")
    if not path or path_exists(Path(name).expanduser()):
        path, function = name, ""
    functions = [function] if function else _components_of(path)
    if not functions:
        fault = "no function here is a component: annotate it, as in def trainer(...) -> AppDef"
        return [_fault_json(path, "", LinterMessage("TorchXValidator", fault, 1, 1))]
    found = {}
    for function in functions:
        for message in validate(path, function):
            key = message.line, message.char, message.description
            found.setdefault(key, _fault_json(path, function, message))
    return list(found.values())


def _fault_json(path: str, function: str, message: LinterMessage) -> JsonObject:
    return {
        "path": path,
        "function": function,
        "line": max(1, message.line),
        "column": max(1, message.char),
        "severity": message.severity,
        "message": message.description,
        "name": message.name,
    }


def _components_of(path: str) -> list[str]:
    """Return the names of a file's components; any name if it cannot be read, since `validate` says why."""
    from ..components.source import read_source

    try:
        return [node.name for node in read_source(Path(path).expanduser()).components]
    except ComponentLoadError:
        return ["<file>"]
