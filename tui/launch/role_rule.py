"""The rule over a role's fields in the form, which shows and hides them."""

from __future__ import annotations

from dataclasses import dataclass

from rich.text import Text
from textual import events
from textual.binding import Binding
from textual.message import Message

from ...logs.text.sanitize import plain
from ..ui.title_rule import TitleRule
from .form_field import Field


class RoleRule(TitleRule, can_focus=True):
    """``─ Role trainer  4 replicas, 2 cpu ───── enter change ─``.

    Args:
        role: the role's name.
    """

    HELP_TITLE = "Role"
    BINDINGS = [Binding("enter,space", "show_or_hide", "Show or hide its fields", id="role.show", show=False)]

    @dataclass
    class Toggled(Message):
        """Somebody wants to see the role's fields, or no more."""

        role: str

    def __init__(self, role: str) -> None:
        super().__init__(f"Role {plain(role)}")
        self.role = role

    def show_fields(self, fields: list[Field], *, shown: bool) -> None:
        """Say what the role has, as its fields say it.

        Args:
            fields: the role's.
            shown: whether they are shown below.
        """
        texts = {field.name: field.text for field in fields}
        changed = sum(field.is_given for field in fields)
        words = [f"{texts.get('num_replicas', '')} replicas" if texts.get("num_replicas") != "1" else "1 replica"]
        words += _resource_words(texts)
        if changed:
            words.append(f"{changed} changed")
        self.info = Text(", ".join(words))
        self.right = Text("enter hides" if shown else "enter changes")

    def action_show_or_hide(self) -> None:
        """Show the fields, or hide them."""
        self.post_message(self.Toggled(self.role))

    def on_click(self) -> None:
        """Show the fields, or hide them."""
        self.action_show_or_hide()

    def on_focus(self, _event: events.Focus) -> None:
        """Light the rule."""
        self.active = True

    def on_blur(self, _event: events.Blur) -> None:
        """Dim the rule."""
        self.active = False


def _resource_words(texts: dict[str, str]) -> list[str]:
    name = texts.get("resource", "")
    words = [plain(name)] if name else []
    for field, unit in (("cpu", "cpu"), ("gpu", "gpu")):
        if texts.get(field) not in (None, "", "0"):
            words.append(f"{plain(texts[field])} {unit}")
    memory = texts.get("memMB", "")
    if memory.isdecimal() and int(memory):
        words.append(memory_words(int(memory)))
    return words


def memory_words(megabytes: int) -> str:
    """Return memory as a person reads it."""
    return f"{megabytes / 1024:,.4g} GB" if megabytes >= 1024 else f"{megabytes} MB"
