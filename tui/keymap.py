"""The keys that a person may choose: every binding with a name, its default, and what it does."""

from __future__ import annotations

import difflib
import importlib
import inspect
import pkgutil
from collections.abc import Mapping
from typing import NamedTuple

from textual.binding import Binding
from textual.dom import DOMNode

from ..base.errors import ConfigError


class NamedKey(NamedTuple):
    """A binding that a keymap can change.

    Attributes:
        id: its name, such as ``jobs.cancel``.
        keys: the keys that it has by default, parted by commas.
        words: what it does.
    """

    id: str
    keys: str
    words: str


def named_keys() -> dict[str, NamedKey]:
    """Return all bindings that can be changed, by their names; every screen and widget is imported for it."""
    found: dict[str, NamedKey] = {}
    for owner in owners():
        for binding in owner.__dict__.get("BINDINGS", ()):
            if isinstance(binding, Binding) and binding.id and not binding.system:
                found[binding.id] = NamedKey(binding.id, binding.key, binding.description)
    return dict(sorted(found.items()))


def check_keymap(keymap: Mapping[str, str]) -> None:
    """Refuse names that no key has.

    Raises:
        ConfigError: the message says which, and what is near.
    """
    known = named_keys()
    for name in keymap:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1, cutoff=0.4)
            hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(known)}"
            raise ConfigError(f"config.toml: keys: {name} is not the name of a key; {hint}")


def owners() -> list[type[DOMNode]]:
    """Return every class of the dashboard that can have keys."""
    import torchx_tui.tui as tui

    found: list[type[DOMNode]] = []
    for module in pkgutil.walk_packages(tui.__path__, f"{tui.__name__}."):
        for _, owner in inspect.getmembers(importlib.import_module(module.name), inspect.isclass):
            if issubclass(owner, DOMNode) and owner.__module__ == module.name:
                found.append(owner)
    return found


def keys_page() -> str:
    """Return docs/reference/keys.md."""
    from .ui.bars import key_words

    rows = [f"| `{key.id}` | {_code(key_words(key.keys))} | {key.words} |" for key in named_keys().values()]
    return "\n".join([_PAGE_HEAD, "| name | keys | what it does |", "|---|---|---|", *rows, ""])


def _code(keys: str) -> str:
    words = keys.replace("page ", "page_").split()
    return " ".join(f"`{word.replace('_', ' ')}`" for word in words)


_PAGE_HEAD = """\
# Keys

`?` shows the keys of the view that is open. These have names; the table `[keys]` of config.toml gives them other keys:

    [keys]
    "jobs.cancel" = "ctrl+x"
    "logs.follow" = "f,G"

Keys are written as Textual names them: `n`, `N`, `ctrl+n`, `f5`, `slash`, `question_mark`. Several are parted by
commas. A key that meant something else on the same screen means the new thing there. A name that no key has is said
at the start.
"""
