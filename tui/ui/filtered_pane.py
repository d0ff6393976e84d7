"""A table under its title, with a row for a filter."""

from __future__ import annotations

from typing import Generic, TypeVar

from .cursor_table import CursorTable
from .pane import Pane
from .prompt_input import PromptInput

Table = TypeVar("Table", bound=CursorTable)


class FilteredPane(Pane, Generic[Table]):
    """A table under its title; the filter has a row below it while it acts.

    Args:
        title: the pane's name.
        table: the table.
        placeholder: shown while the filter is empty.
        id: of the widget.
        filter_id: of the field.
    """

    def __init__(self, title: str, table: Table, placeholder: str, *, id: str, filter_id: str) -> None:
        self.table = table
        self.filter = PromptInput(self.keep_filter, placeholder=placeholder, id=filter_id)
        self.filter.display = False
        super().__init__(title, table, self.filter, id=id)

    @property
    def words(self) -> str:
        """The filter."""
        return self.filter.value.strip()

    def ask_filter(self) -> None:
        """Let a person type a filter."""
        self.filter.display = True
        # At once: the next key may be here already.
        self.screen.set_focus(self.filter)

    def keep_filter(self) -> None:
        """Go back to the table; the filter stays unless it is empty."""
        self.screen.set_focus(self.table)
        self.filter.display = bool(self.words)

    def clear_filter(self) -> None:
        """Go back to the whole table."""
        self.filter.value = ""
        self.keep_filter()
