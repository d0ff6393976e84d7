"""A dialog that is a list with a cursor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding
from textual.widget import Widget
from textual.widgets import OptionList, Static

from .bars import key_of
from .dialog import Answer, Dialog
from .options import Options
from .palette import Text


class ListDialog(Dialog[Answer]):
    """A list between a title and hints; the cursor moves whatever widget of the dialog has the focus.

    A subclass gives the rows and says what enter does.

    Args:
        title: a text of ours.
    """

    HINTS: ClassVar[Sequence[tuple[str, str]]] = (("list.choose", "choose"), ("dialog.back", "back"))
    """The names of bindings, or keys of bindings without a name, parted by blanks, and what they do."""
    AUTO_FOCUS = ""
    BINDINGS = [
        # Before a field of the dialog, which would scroll its one line; letters are the field's while it has the focus.
        Binding("down,ctrl+n", "move(1)", "Down", priority=True, id="list.down"),
        Binding("up,ctrl+p", "move(-1)", "Up", priority=True, id="list.up"),
        Binding("pagedown", "page(1)", "Page down", priority=True, id="list.page_down"),
        Binding("pageup", "page(-1)", "Page up", priority=True, id="list.page_up"),
        Binding("j", "move(1)", "Down", id="list.down_letter"),
        Binding("k", "move(-1)", "Up", id="list.up_letter"),
        Binding("enter", "choose", "Choose", id="list.choose"),
    ]

    def __init__(self, title: str) -> None:
        super().__init__()
        self._title = title
        self._list = Options(id="dialog-list", markup=False)
        # Its keys are the dialog's, which [keys] can change.
        self._list.can_focus = False
        self._hints = Static(markup=False, id="dialog-hints")

    def heading(self) -> str:
        return self._title

    def rows(self) -> list[Text]:
        """Return the texts of the list, a row each."""
        raise NotImplementedError

    def choose(self, row: int) -> None:
        """Answer with a row of the list."""
        raise NotImplementedError

    def compose_answer(self) -> ComposeResult:
        """Yield the list, what stands below it, and the hints."""
        yield self._list
        yield from self.compose_below()
        yield self._hints

    def compose_below(self) -> ComposeResult:
        """Yield what stands between the list and the hints, if anything."""
        yield from ()

    def first_focus(self) -> Widget | None:
        """Return nothing: the keys are the dialog's."""
        return None

    def on_mount(self) -> None:
        """Fill the list."""
        self.show_rows()

    @property
    def cursor(self) -> int:
        """The row at the cursor, 0 where there are no rows."""
        return self._list.highlighted or 0

    def show_rows(self, cursor: int | None = None) -> None:
        """Draw rows and hints anew.

        Args:
            cursor: the row that the cursor goes to; where it is by default.
        """
        cursor = self.cursor if cursor is None else cursor
        rows = self.rows()
        self._list.set_options(rows)
        self._list.highlighted = min(cursor, len(rows) - 1) if rows else None
        hints = Text()
        for names, words in self.HINTS:
            keys = " ".join(key_of(self, name) if "." in name else name for name in names.split())
            hints.append(keys, "bold $style-accent").append(f" {words}   ", "$style-muted")
        self._hints.update(hints)

    def action_move(self, step: int) -> None:
        """Move the cursor by a number of rows."""
        if count := self._list.option_count:
            self._list.highlighted = min(max(self.cursor + step, 0), count - 1)

    def action_page(self, step: int) -> None:
        """Move the cursor by a number of pages."""
        self.action_move(step * max(1, self._list.size.height - 1))

    def action_choose(self) -> None:
        """Answer with the row at the cursor."""
        if self._list.option_count:
            self.choose(self.cursor)

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Answer with the row that was clicked."""
        self.choose(event.option_index)
