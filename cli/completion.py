"""The command completion, and the completers of components, schedulers, profiles and handles."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..settings.config import Settings

# Handles of the journal that are offered, newest first.
_MOST_HANDLES = 50


def completion(arguments: Any, settings: Settings) -> int:
    from argcomplete.shell_integration import shellcode

    print(shellcode(["torchx-tui"], shell=arguments.shell))
    return 0


def complete() -> None:
    """Answer a shell that asks for completions, and end the process; return if it asks for nothing."""
    import argcomplete

    from .commands import build_parser

    parser = build_parser()
    for action in _actions(parser):
        if completer := _COMPLETERS.get(action.dest):
            action.completer = completer  # type: ignore[attr-defined]
    argcomplete.autocomplete(parser, always_complete_options=False)


def _actions(parser: argparse.ArgumentParser) -> Iterable[argparse.Action]:
    for action in parser._actions:
        yield action
        if isinstance(action, argparse._SubParsersAction):
            for below in action.choices.values():
                yield from _actions(below)


def _components(parsed_args: Any, **_: Any) -> Iterable[str]:
    """Offer components; after a component its options and those of run."""
    from ..base.errors import TorchXTuiError
    from ..components.finder import describe, list_components
    from .commands import flag_names

    words = [word for word in getattr(parsed_args, "rest", None) or [] if word != "--"]
    if not words:
        return [found.name for found in list_components([Path.cwd()]) if not found.error]
    try:
        parameters = describe(words[0]).parameters
    except TorchXTuiError:
        return []
    theirs = [f"--{parameter.name}" for parameter in parameters if parameter.kind != "var_positional"]
    return dict.fromkeys([*theirs, *flag_names(parsed_args.command)])


def _schedulers(**_: Any) -> Iterable[str]:
    from ..settings.make_runner import make_runner

    return make_runner(_settings()).scheduler_names()


def _handles(**_: Any) -> Iterable[str]:
    """Offer the handles that are known without asking a server: of local jobs and of the journal."""
    from itertools import islice

    from ..settings.make_runner import make_runner

    with make_runner(_settings()) as runner:
        handles = [app.app_handle for app in runner.list("local_cwd")]
        launched = (record.handle for page, _ in runner.journal.pages(_MOST_HANDLES) for record in page)
        return dict.fromkeys([*handles, *islice(filter(None, launched), _MOST_HANDLES)])


def _profiles(**_: Any) -> Iterable[str]:
    return _settings().profiles


def _settings() -> Settings:
    from ..settings.config import load_settings_lenient

    return load_settings_lenient()[0]


_COMPLETERS = {
    "rest": _components,
    "print": _components,
    "scheduler": _schedulers,
    "schedulers": _schedulers,
    "handle": _handles,
    "profile": _profiles,
}
