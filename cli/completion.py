"""The command completion, and what it completes: commands and flags, components, schedulers, profiles, handles."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..settings.config import Settings

SHELLS = ("bash", "zsh", "fish")
_PROGRAM = "torchx-tui"
# Records of the journal that are offered, newest first.
_MOST_HANDLES = 50
_INSTALL = """how to install it, in the shell's own start file:
  bash  eval "$(torchx-tui completion bash)"                 in ~/.bashrc
  zsh   eval "$(torchx-tui completion zsh)"                  in ~/.zshrc, after compinit
  fish  torchx-tui completion fish | source                  in ~/.config/fish/config.fish"""


def _add_completion(parser: argparse.ArgumentParser) -> None:
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = _INSTALL
    parser.add_argument("shell", choices=SHELLS)


def _completion(arguments: Any, settings: Settings) -> int:
    from argcomplete.shell_integration import shellcode

    print(shellcode([_PROGRAM], shell=arguments.shell))
    return 0


def complete(parser: argparse.ArgumentParser, environ: Mapping[str, str]) -> None:
    """Answer a shell that asks how a command line can go on, and end the process; return where none asks.

    Args:
        parser: the whole parser.
        environ: the environment, in which the shell puts its question.
    """
    import argcomplete

    for action in _actions(parser):
        completer = _COMPLETERS.get(action.dest)
        if completer is not None:
            action.completer = completer  # type: ignore[attr-defined]
    argcomplete.autocomplete(parser, always_complete_options=False)


def _actions(parser: argparse.ArgumentParser) -> Iterable[argparse.Action]:
    for action in parser._actions:
        yield action
        if isinstance(action, argparse._SubParsersAction):
            for below in action.choices.values():
                yield from _actions(below)


# What can stand in a place; each is called with what was typed of it. -----------------------------------------------


def _components(prefix: str, parsed_args: Any, **_: Any) -> Iterable[str]:
    """Offer components, and after one its flags and those of run."""
    from ..base.errors import TorchXTuiError
    from ..components.command_line import flags_of
    from ..components.finder import describe, list_components
    from .run_arguments import flag_names

    words = [word for word in getattr(parsed_args, "rest", None) or [] if word != "--"]
    if not words:
        return [found.name for found in list_components([Path.cwd()]) if not found.error]
    try:
        parameters = describe(words[0]).parameters
    except TorchXTuiError:
        return []
    theirs = [flags_of(parameter)[-1] for parameter in parameters if parameter.kind != "var_positional"]
    return dict.fromkeys([*theirs, *flag_names(parsed_args.command)])


def _schedulers(prefix: str, **_: Any) -> Iterable[str]:
    from ..settings.make_runner import make_runner

    return make_runner(_settings()).scheduler_names()


def _handles(prefix: str, **_: Any) -> Iterable[str]:
    """Offer the handles that can be had without asking a server: of jobs on this machine, and of our launches."""
    from itertools import islice

    from ..settings.make_runner import make_runner

    with make_runner(_settings()) as runner:
        handles = [app.app_handle for app in runner.list("local_cwd")]
        launched = (record.handle for page, _ in runner.journal.pages(_MOST_HANDLES) for record in page)
        return dict.fromkeys([*handles, *islice(filter(None, launched), _MOST_HANDLES)])


def _profiles(prefix: str, **_: Any) -> Iterable[str]:
    return _settings().profiles


def _settings() -> Settings:
    from ..settings.config import load_settings_lenient

    settings, _ = load_settings_lenient()
    return settings


_COMPLETERS = {
    "rest": _components,
    "print": _components,
    "scheduler": _schedulers,
    "schedulers": _schedulers,
    "handle": _handles,
    "profile": _profiles,
}

COMMANDS = {"completion": (_add_completion, _completion)}
