"""The command configure: a .torchxconfig to fill in."""

from __future__ import annotations

import io
import itertools
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..backends.torchxconfig import CONFIG_FILE, dump
from ..base.errors import ConfigError
from ..base.files import path_exists
from .output import put, say

if TYPE_CHECKING:
    from ..settings.config import Settings


def configure(arguments: Any, settings: Settings) -> int:
    names = [name.strip() for name in (arguments.schedulers or "").split(",") if name.strip()]
    text = io.StringIO()
    dump(text, names or None, required_only=not arguments.all)
    if arguments.print:
        put(text.getvalue().rstrip("\n"))
        return 0
    path = Path(CONFIG_FILE).absolute()
    done = f"wrote {path}"
    try:
        if arguments.force and path_exists(path):
            names = (f"{CONFIG_FILE}.bak{number if number > 1 else ''}" for number in itertools.count(1))
            backup = next(one for one in map(path.with_name, names) if not path_exists(one))
            done += f"; the old one is {path.rename(backup)}"
        with path.open("x", encoding="utf-8") as file:
            file.write(text.getvalue())
    except FileExistsError:
        advice = "--print shows what would be written, --force replaces it and keeps the old one beside it"
        raise ConfigError(f"{path} exists already: {advice}") from None
    except OSError as error:
        raise ConfigError(f"{path} cannot be written: {error.strerror}") from error
    say(done)
    return 0
