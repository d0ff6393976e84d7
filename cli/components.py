"""The commands about what can be launched and how: builtins, runopts, lint."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..base.files import path_exists
from ..specs.errors import ComponentLoadError, SchedulerError, UnknownSchedulerException
from .output import green, put, put_json, say

if TYPE_CHECKING:
    import argparse

    from ..components.model import LinterMessage
    from ..settings.config import Settings
    from ..specs.run_options import runopts


def _add_builtins(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--print", metavar="NAME", help="print the source of a component's file")
    parser.add_argument("--json", action="store_true", help="print a JSON array of objects")


def _add_runopts(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("scheduler", nargs="?", help="the scheduler; default: all")
    parser.add_argument("--json", action="store_true", help="print a JSON object: the options by scheduler")


def _add_lint(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", nargs="+", metavar="FILE[:FUNCTION]", help="a file, or one component of it")
    parser.add_argument("--json", action="store_true", help="print a JSON array of objects")


# builtins


def _builtins(arguments: Any, settings: Settings) -> int:
    if arguments.print:
        from ..components.finder import get_builtin_source

        put(get_builtin_source(arguments.print).rstrip("\n"))
        return 0
    import dataclasses

    from ..components.finder import list_components

    found = list_components()
    if arguments.json:
        put_json([dataclasses.asdict(summary) for summary in found])
        return 0
    put(f"Found {len(found)} builtin components:")
    width = max(len(summary.name) for summary in found)
    for number, summary in enumerate(found, 1):
        words = f"cannot be used: {summary.error}" if summary.error else summary.summary
        put(f" {number:2d}. {summary.name:<{width}}  {words}".rstrip())
    return 0


# runopts


def _runopts(arguments: Any, settings: Settings) -> int:
    from ..settings.make_runner import make_runner

    found: dict[str, runopts] = {}
    with make_runner(settings) as runner:
        names = [arguments.scheduler] if arguments.scheduler else runner.scheduler_names()
        for name in dict.fromkeys(name.partition("@")[0] for name in names):
            try:
                found[name] = runner.scheduler(name).run_opts()
            except UnknownSchedulerException:
                raise
            except SchedulerError as error:
                if arguments.scheduler:
                    raise
                say(f"{name} is left out: {error}")
    if arguments.json:
        put_json({name: _options_json(options) for name, options in found.items()})
        return 0
    for name, options in found.items():
        print(f"{green(name, sys.stdout)}:")
        put(f"{options!r}\n")
    return 0


def _options_json(options: runopts) -> list[dict[str, Any]]:
    from ..specs.run_options import get_type_name

    return [
        {
            "name": name,
            "type": get_type_name(option.opt_type),
            "default": option.default,
            "required": option.is_required,
            "help": option.help,
        }
        for name, option in options
    ]


# lint


def _lint(arguments: Any, settings: Settings) -> int:
    found = [message for place in arguments.files for message in _lint_place(place)]
    if arguments.json:
        put_json(found)
    for message in [] if arguments.json else found:
        where = f"{message['path']}:{message['line']}:{message['column']}"
        put(f"{where}: {message['severity']}: {message['message']}")
    return 1 if any(message["severity"] == "error" for message in found) else 0


def _lint_place(place: str) -> list[dict[str, Any]]:
    """Return what is wrong with a component, or with all components of a file; a fault that several share once."""
    from ..components.lint import validate
    from ..components.model import LinterMessage

    path, _, function = place.rpartition(":")
    if not path or path_exists(Path(place).expanduser()):
        path, function = place, ""
    functions = [function] if function else _components_of(path)
    if not functions:
        fault = "no function here is a component: annotate it, as in def trainer(...) -> AppDef"
        return [_fault(path, "", LinterMessage("TorchXValidator", fault, 1, 1))]
    found = {}
    for name in functions:
        for message in validate(path, name):
            found.setdefault((message.line, message.char, message.description), _fault(path, name, message))
    return list(found.values())


def _fault(path: str, function: str, message: LinterMessage) -> dict[str, Any]:
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
    """Return the names of a file's components; of an unreadable file any name, as `validate` says what is wrong."""
    from ..components.source import read_source

    try:
        return [node.name for node in read_source(Path(path).expanduser()).components]
    except ComponentLoadError:
        return ["<file>"]


COMMANDS = {
    "builtins": (_add_builtins, _builtins),
    "runopts": (_add_runopts, _runopts),
    "lint": (_add_lint, _lint),
}
