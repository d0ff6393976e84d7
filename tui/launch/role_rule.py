"""The rule over a role's fields in the form, which shows and hides them."""

from __future__ import annotations

from dataclasses import dataclass

from textual.binding import Binding
from textual.message import Message

from ...logs.text.sanitize import plain
from ..ui.bars import key_of
from ..ui.palette import Text
from ..ui.title_rule import TitleRule
from .form_field import Field


class RoleRule(TitleRule, can_focus=True):
    """``─ Role trainer  4 replicas, 2 cpu ───── enter change ─``.

    Args:
        role: the role's name.
    """

    HELP_TITLE = "Role"
    BINDINGS = [Binding("enter,space", "show_or_hide", "Show or hide its fields", id="role.show")]

    @dataclass
    class Toggled(Message):
        """A person shows or hides the role's fields."""

        role: str

    def __init__(self, role: str) -> None:
        super().__init__(f"Role {plain(role)}")
        self.role = role

    def show_fields(self, fields: list[Field], *, shown: bool) -> None:
        """Summarise a role.

        Args:
            fields: the role's fields.
            shown: whether they are visible below the rule.
        """
        texts = {field.name: plain(field.text) for field in fields}
        replicas, memory = texts.get("num_replicas", ""), texts.get("memMB", "")
        words = [f"{replicas} replica{'' if replicas == '1' else 's'}", texts.get("resource", "")]
        words += [f"{texts[unit]} {unit}" for unit in ("cpu", "gpu") if texts.get(unit, "") not in ("", "0")]
        if memory.isdecimal() and int(memory):
            words.append(memory_words(int(memory)))
        if changed := sum(field.is_given for field in fields):
            words.append(f"{changed} changed")
        self.info = Text(", ".join(filter(None, words)))
        self.right = Text(f"{key_of(self, 'role.show')} {'hides' if shown else 'changes'}")

    def action_show_or_hide(self) -> None:
        self.post_message(self.Toggled(self.role))

    def on_click(self) -> None:
        self.action_show_or_hide()

    def on_focus(self) -> None:
        self.active = True

    def on_blur(self) -> None:
        self.active = False


def memory_words(megabytes: int) -> str:
    """Format an amount of memory."""
    return f"{megabytes / 1024:,.4g} GB" if megabytes >= 1024 else f"{megabytes} MB"
