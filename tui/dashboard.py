"""The app as its screens and helpers know it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, cast

from textual.message import Message
from textual.worker import Worker

from .terminal.ordered_keys import OrderedKeysApp

if TYPE_CHECKING:
    from ..backends.runner import Runner
    from ..backends.shared.progress import Progress
    from ..settings.config import Settings
    from .rows import JobRow
    from .status import Status
    from .terminal.clipboard import Clipboard
    from .ui_state import UiStateFile
    from .watch.feed import Feed
    from .watch.signals import JobSignals
    from .watch.store import JobStore


@dataclass(frozen=True)
class Draft:
    """What was typed into a launch form that was left.

    Attributes:
        scheduler: the chosen scheduler.
        fields: text, and whether it is a list of values, of each typed field by section and name.
    """

    scheduler: str
    fields: Mapping[tuple[str, str], tuple[str, bool]]


class Launches(Protocol):
    """The launches under way, each with a dialog."""

    @property
    def under_way(self) -> list[tuple[str, Progress]]:
        """Names and progress of the launches that have reported."""

    def begin(self, what: str) -> Progress:
        """Make the `Progress` of a launch, named ``what``; call `end` with it afterwards."""

    def open(self, progress: Progress) -> None:
        """Open the dialog of a launch."""

    def end(self, progress: Progress) -> None:
        """Close the dialog of a launch that has ended."""


class HeardWorkers:
    """A node whose workers never end the program when they fail. Named before Textual's class among the bases."""

    def run_worker(self, work: Any, *arguments: Any, **options: Any) -> Worker[Any]:
        return super().run_worker(work, *arguments, **{**options, "exit_on_error": False})  # type: ignore[misc]


class Dashboard(HeardWorkers, OrderedKeysApp[int]):
    """What screens and helpers may use of the app, which extends it."""

    runner: Runner
    settings: Settings
    config_file: str | None
    """The config file of the command line, if there is one."""
    profile: str | None
    """The profile of launches: empty for the settings' own, None for none at all."""
    now: Callable[[], float]
    """The clock, in seconds since the epoch."""
    who: str
    """The user and the host, for the top bar."""
    jobs: JobStore
    status: Status
    ui_state: UiStateFile
    terminal_clipboard: Clipboard
    signals: JobSignals
    drafts: dict[str, Draft]
    """What was typed into launch forms that were left, by component or journal id."""
    relaunching: set[str]
    """The handles of jobs that are being launched again."""

    @property
    def feed(self) -> Feed:
        """The threads that ask the backends."""
        raise NotImplementedError

    @property
    def launches(self) -> Launches:
        """The launches under way."""
        raise NotImplementedError

    def post_from_thread(self, message: Message) -> None:
        """Post a message to the app from any thread, without waiting; it is dropped once the app ends."""
        raise NotImplementedError

    def show_new_job(self, row: JobRow) -> None:
        """Put a job that was just submitted into the table, and the cursor on it."""
        raise NotImplementedError

    def show_stacks(self, row: JobRow) -> None:
        """Open the Stacks screen of a job."""
        raise NotImplementedError


class OnDashboard(HeardWorkers):
    """A screen or a widget of the dashboard; failures of its workers are reported."""

    app: Any

    @property
    def dashboard(self) -> Dashboard:
        """The app, with its type."""
        return cast("Dashboard", self.app)

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        if isinstance(self.app, Dashboard):
            self.app.status.say_failed(event)
