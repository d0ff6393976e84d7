"""The command configure: a .torchxconfig to fill in."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..backends.torchxconfig import CONFIG_FILE, dump
from ..base.errors import ConfigError
from ..base.files import path_exists
from .output import put, say

if TYPE_CHECKING:
    import argparse

    from ..settings.config import Settings


def _add_configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-s", "--schedulers", metavar="A,B", help="the schedulers; default: all")
    parser.add_argument("-a", "--all", action="store_true", help="write all run options, not only required ones")
    parser.add_argument("--print", action="store_true", help=f"print the file instead of writing {CONFIG_FILE}")
    parser.add_argument("--force", action="store_true", help=f"replace a {CONFIG_FILE}; the old one is kept beside it")


def _configure(arguments: Any, settings: Settings) -> int:
    names = [name.strip() for name in (arguments.schedulers or "").split(",") if name.strip()]
    text = io.StringIO()
    dump(text, names or None, required_only=not arguments.all)
    if arguments.print:
        put(text.getvalue().rstrip("\n"))
        return 0
    path = Path(CONFIG_FILE)
    try:
        kept = _put_aside(path) if arguments.force else None
        with path.open("x", encoding="utf-8") as file:
            file.write(text.getvalue())
    except FileExistsError:
        advice = "--print shows what would be written, --force replaces it and keeps the old one beside it"
        raise ConfigError(f"{path.absolute()} exists already: {advice}") from None
    except OSError as error:
        raise ConfigError(f"{path.absolute()} cannot be written: {error.strerror}") from error
    say(f"wrote {path.absolute()}{f'; the old one is {kept.absolute()}' if kept else ''}")
    return 0


def _put_aside(path: Path) -> Path | None:
    """Rename a file, so that none is lost, and return its new path; None where there is none."""
    if not path_exists(path):
        return None
    kept = path.with_name(f"{path.name}.bak")
    number = 1
    while path_exists(kept):
        number += 1
        kept = path.with_name(f"{path.name}.bak{number}")
    return path.rename(kept)


COMMANDS = {"configure": (_add_configure, _configure)}
