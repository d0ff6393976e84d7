"""A small app with a log pane alone, and logs for it."""

from contextlib import asynccontextmanager

from log_writing import LogWriter
from support.screens import Logs

from torchx_tui.tui.logs.pane import LogPane
from torchx_tui.tui.terminal.ordered_keys import OrderedKeysApp
from torchx_tui.tui.ui.theme import use_themes

SIZE = (60, 11)


class LogApp(OrderedKeysApp):
    """Shows the logs of writers, or others, in a `LogPane`; it keeps what that says and what it wants to be copied."""

    CSS = "Input { height: 1; border: none; }"

    def __init__(self, *sources, is_final=None, theme="torchx-dark"):
        super().__init__()
        self.logs = [getattr(source, "log", source) for source in sources]
        self.is_final = is_final
        self.pane = LogPane()
        self.said, self.copies, self.statuses = [], [], []
        use_themes(self, theme)

    def get_theme_variable_defaults(self):
        return {"bar": "#181d25", "line": "#333c4b"}

    def compose(self):
        yield self.pane

    def on_mount(self):
        self.pane.show(self.logs, is_final=self.is_final)
        self.pane.focus_log()

    def on_log_pane_status_changed(self, message):
        self.statuses.append(message.status)

    def on_log_pane_said(self, message):
        self.said.append(message.text)

    def on_log_pane_copied(self, message):
        self.copies.append((message.text, message.what))


@asynccontextmanager
async def logs_of(*sources, app=None, size=SIZE, count=0, **options):
    """Start the app with logs, or another such app, and wait until so many lines are read and some are drawn."""
    app = app or LogApp(*sources, **options)
    async with app.run_test(size=size) as pilot:
        logs = Logs(pilot)
        if count:
            await logs.counted(count)
            await logs.until(logs.rows, "some lines")
        yield logs


def written(folder, text, replica=0):
    """Return the writer of a replica that has printed a text."""
    writer = LogWriter(folder, replica)
    writer.write(text if isinstance(text, bytes) else text.encode())
    return writer


def numbered(folder, count, replica=0, word="line"):
    """Return the writer of a replica that has printed numbered lines, from 0."""
    return written(folder, "".join(f"{word} {number}\n" for number in range(count)), replica)
