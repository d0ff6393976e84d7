"""The application: screens, themes, keys that act everywhere, and the way to the Runner."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.driver import Driver
from textual.filter import LineFilter
from textual.message import Message
from textual.screen import Screen
from textual.worker import Worker

from ..base.errors import ConfigError
from ..base.files import user_name
from ..base.threads import report_thread_failures
from ..specs.handles import parse_app_handle
from ..specs.status import AppState
from .dashboard import Dashboard, Draft
from .format import clock
from .job_alerts import JobAlerts
from .rows import JobRow, backend_word
from .status import Status
from .terminal.clipboard import Clipboard
from .terminal.driver import paced
from .terminal.ordered_keys import done_within
from .terminal.output_filter import ControlFilter
from .terminal.signals import Signals, stop_group
from .terminal.title import TerminalTitle
from .ui import palette
from .ui.base import BaseScreen
from .ui.garbage_collection import collect_while_idle, spare_living
from .ui.theme import choose_theme, css_variables, use_themes
from .ui_state import UiStateFile
from .watch.signals import NO_CHANGE, JobSignals, RowsChanged
from .watch.store import JobStore

if TYPE_CHECKING:
    from textual.command import Provider

    from ..backends.runner import Runner
    from ..settings.config import Settings
    from .launch.progress import LaunchWatch
    from .logs.pane import LogPane
    from .messages import (
        ActionDone,
        ActivityRead,
        BackendChecked,
        BackendFailed,
        FailureExplained,
        JobDescribed,
        JobsChanged,
        LaunchProgressed,
        ProgressRead,
        SchedulerMade,
        StacksTaken,
        Told,
        UsageSampled,
    )
    from .watch.feed import Feed


def _command_provider() -> type[Provider]:
    """Return what the command palette offers; imported when it is first opened."""
    from .command_palette import DashboardCommands

    return DashboardCommands


_log = logging.getLogger(__name__)

# After so long without a key nobody types (s).
_IDLE_SECONDS = 2.0

# Threads that call backends for keys and screens.
_MOST_THREADS = 64

# How long quitting waits for the list of own jobs (s).
_OWN_JOBS_SECONDS = 2.0
# Launches that end within this time are not asked about; cancelled ones have this time to clean up.
_LAUNCH_SECONDS, _CANCELLED_SECONDS = 1.0, 5.0


class TorchXTuiApp(Dashboard):
    """The dashboard.

    Args:
        runner: the one door to the backends.
        settings: what config.toml and the command line chose.
        schedulers: the names of the backends to watch; all of them if None.
        now: the clock, in seconds since the epoch; pictures freeze it.
        ui_state: keeps what is chosen on the screen for the next start.
        problem: what is wrong with config.toml; the status line says it first.
        opens: the handle of a job that was just launched, whose screen is opened first.
        config_file: the config file of the command line, if there is one.
    """

    TITLE = "torchx-tui"
    # The other screens bring style sheets of their own: they are parsed when such a screen is first opened.
    CSS_PATH = ["styles/base.tcss", "styles/jobs.tcss"]
    COMMANDS = {_command_provider}
    COMMAND_PALETTE_BINDING = "ctrl+p"
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow")]

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "leave", "Quit", id="app.quit"),
        Binding("ctrl+q", "leave", "Quit", id="app.quit_always", priority=True),
        Binding("question_mark,f1", "keys", "Keys of this view", id="app.keys"),
        Binding("colon", "command_palette", "Commands", id="app.commands"),
        Binding("ctrl+z", "suspend_process", "Suspend", id="app.suspend"),
        Binding("ctrl+c", "interrupt", "Cancel own jobs and quit", priority=True, system=True),
    ]

    def __init__(
        self,
        runner: Runner,
        settings: Settings,
        *,
        schedulers: list[str] | None = None,
        now: Callable[[], float] = time.time,
        ui_state: UiStateFile | None = None,
        problem: str = "",
        opens: str = "",
        config_file: str | None = None,
    ) -> None:
        no_color = "NO_COLOR" in os.environ  # only the terminal's own colours stay legible under it
        super().__init__(ansi_color=True if no_color else None)
        self._control_filter = ControlFilter()
        self.status = Status(self.set_timer, self._show_status)
        self.alerts = JobAlerts(self)
        self.terminal_clipboard = Clipboard(self, self.status)
        self._title = TerminalTitle(self)
        self._signals = Signals(self._end_by_signal)
        self._is_leaving = False
        self._restore_thread_failures: Callable[[], None] = lambda: None
        self.runner = runner
        self.settings = settings
        self.config_file = config_file
        self.profile: str | None = ""
        self.now = now
        self.ascii_glyphs = settings.ascii
        self.animation_level = "none"
        self.jobs = JobStore()
        self.signals = JobSignals(self)
        self.drafts: dict[str, Draft] = {}
        self.relaunching: set[str] = set()
        self.ui_state = ui_state or UiStateFile()
        self.jobs.answered_before = frozenset(self.ui_state.state.backends)
        self._feed: Feed | None = None
        self._problem, self._opens = problem, opens
        self.schedulers = schedulers
        self.who = f"{user_name()}@{os.uname().nodename.partition('.')[0]}"
        use_themes(self, choose_theme(settings.theme, no_color))
        # Nothing of the keymap is loaded without one.
        if settings.keys:
            from .keymap import check_keymap

            try:
                check_keymap(settings.keys)
            except ConfigError as error:
                self._problem = self._problem or str(error)
            self.set_keymap(settings.keys)

    @property
    def feed(self) -> Feed:
        """What asks the backends; made when it is first needed, after the first paint."""
        if self._feed is None:
            from .watch.feed import Feed

            self._feed = Feed(self.runner, self.post_from_thread, self.settings, lambda: self.now())
        return self._feed

    def get_theme_variable_defaults(self) -> dict[str, str]:
        """Return our own style sheet variables, for themes that are not ours."""
        return css_variables(palette.DARK)

    def get_line_filters(self) -> list[LineFilter]:
        """Return what every drawn line passes through; the last takes control characters away."""
        return [*super().get_line_filters(), self._control_filter]

    def get_driver_class(self) -> type[Driver]:
        """Return the driver, whose output never holds up the event loop."""
        return paced(super().get_driver_class())

    # Life

    def get_default_screen(self) -> Screen[object]:
        """Start on the Jobs screen."""
        from .jobs.screen import JobsScreen

        return JobsScreen()

    def on_mount(self) -> None:
        """Take over the signals, and start the threads once the first screen is painted."""
        # The event loop's own pool has six threads on two cores: so many calls that hang would keep all others back.
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(_MOST_THREADS, "action"))
        self._restore_thread_failures = report_thread_failures(self._show_thread_failure)
        self._signals.install()
        # Textual draws anew what changes only; after ctrl+z or SIGTSTP the terminal shows nothing.
        self.app_resume_signal.subscribe(self, lambda _: self.refresh(layout=True))
        if self._problem:
            self.status.say(self._problem, failed=True)
        self.call_after_refresh(self._start_feed)

    def _start_feed(self) -> None:
        spare_living()
        self.set_interval(_IDLE_SECONDS, self._collect_while_idle)
        self.run_worker(self._find_schedulers(), group="schedulers")

    def _collect_while_idle(self) -> None:
        if self.feed.seconds_without_keys >= _IDLE_SECONDS:
            collect_while_idle()

    async def _find_schedulers(self) -> None:
        """Find the backends, whose entry points are read from disk, and start to watch them."""
        names, reason = self.schedulers, ""
        if names is None:
            try:
                names = await asyncio.to_thread(self.runner.watched_schedulers)
            except Exception as error:  # whatever a package registers
                from ..base.errors import describe_error

                _log.exception("the backends cannot be found")
                names, reason = [], describe_error(error)
                self.status.say(f"the backends cannot be found: {reason}", failed=True)
        self.schedulers = names
        self.jobs.set_schedulers(names, reason)
        self.feed.start(names)
        self.signals.rows.publish(NO_CHANGE)
        if self._opens:
            self._open_launched(self._opens)
        await asyncio.to_thread(self.runner.remove_stale_spools)

    def _open_launched(self, handle: str) -> None:
        """Show a job that was launched before the first screen."""
        from .job.screen import JobScreen

        scheduler, _, app_id = parse_app_handle(handle)
        row = JobRow(handle, scheduler, app_id, AppState.SUBMITTED, submitted_at=self.now())
        self.show_new_job(row)
        self.push_screen(JobScreen(row))

    def on_unmount(self) -> None:
        """End the threads, keep what was chosen last, give the terminal its title back."""
        if self._feed is not None:
            self._feed.end()
        self.ui_state.flush()
        self._title.restore()
        self._restore_thread_failures()

    def _show_thread_failure(self, sentence: str) -> None:
        from .messages import Told

        self.post_from_thread(Told(sentence, failed=True))

    def on_terminal_gone(self) -> None:
        """End as by SIGHUP."""
        self._end_by_signal(False)

    def _end_by_signal(self, ends_own: bool) -> None:
        if ends_own:
            self.runner.end_own_jobs()
        self.exit(0)

    def exit(self, *arguments: Any, **options: Any) -> None:
        """End the app; messages of threads are dropped from now on."""
        self._is_leaving = True
        super().exit(*arguments, **options)

    def show_stacks(self, row: JobRow) -> None:
        from .stacks.screen import StacksScreen

        self.push_screen(StacksScreen(row))

    def post_from_thread(self, message: Message) -> None:
        if self.is_running and not self._is_leaving:
            self.post_message(message)

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        """Say that a worker of the app failed."""
        self.status.say_failed(event)

    def _show_status(self) -> None:
        # An app that ends has no screen.
        if self.screen_stack and isinstance(self.screen, BaseScreen):
            self.screen.refresh_bars()

    def on_told(self, message: Told) -> None:
        """Show a thread's message in the status line."""
        self.status.say(message.text, failed=message.failed)

    # Copies

    @property
    def clipboard(self) -> str:
        """The text that ctrl+v inserts into an input."""
        return self.fit_paste(self.terminal_clipboard.text)

    def copy_to_clipboard(self, text: str) -> None:
        """Copy a selection of an input."""
        self.terminal_clipboard.copy(text, "the selection")

    # What the threads say

    def on_jobs_changed(self, message: JobsChanged) -> None:
        """Take the changes of one backend over."""
        if message.scheduler not in (known := self.ui_state.state.backends):
            self.ui_state.change(backends=(*known, message.scheduler))
        if not message.missing:
            self.status.recovered(message.scheduler)
        elif message.missing != self.jobs.missing.get(message.scheduler):
            words = f"{backend_word(message.scheduler, long=True)}: {message.missing}"
            self.status.say(words, failed=True, about=message.scheduler)
        ended = self.jobs.apply(message)
        self.alerts.announce(ended)
        self.feed.read_ends([row.handle for row in ended])
        if self.settings.terminal_title:
            self._title.show(self.jobs.state_counts())
        self.signals.rows.publish(RowsChanged(message.changed.values(), message.removed))

    def on_backend_failed(self, message: BackendFailed) -> None:
        """Keep the rows, say since when the backend is silent."""
        before = self.jobs.outages.get(message.scheduler)
        is_new = self.jobs.fail(message)
        # The pause grows with each failure.
        is_shown = self.status.is_about(message.scheduler)
        if (is_new or is_shown) and message.scheduler not in self.jobs.not_set_up:
            now = self.now()
            again = f"   next try at {clock(message.next_try, now)}" if message.next_try > now else ""
            words = f"{backend_word(message.scheduler, long=True)}: {message.reason}{again}"
            self.status.say(words, failed=True, about=message.scheduler)
        if is_new or before is None or before.reason != message.reason:
            self.signals.rows.publish(NO_CHANGE)

    def on_backend_checked(self, message: BackendChecked) -> None:
        """Keep what the backend found for the empty screen."""
        self.jobs.findings[message.scheduler] = message.findings
        self.signals.rows.publish(NO_CHANGE)

    def on_scheduler_made(self, message: SchedulerMade) -> None:
        """Keep the scheduler, whose abilities decide which keys are shown."""
        self.jobs.made[message.name] = message.scheduler
        self.screen.refresh_bindings()

    def on_job_described(self, message: JobDescribed) -> None:
        """Publish what a backend says of the job that is looked at."""
        if message.described is not None:
            self.status.recovered(message.handle)
        self.signals.described.publish(message)

    def on_stacks_taken(self, message: StacksTaken) -> None:
        """Keep and publish the last stacks of a job."""
        self.jobs.taken[message.handle] = message
        self.signals.stacks.publish(message)

    def on_activity_read(self, message: ActivityRead) -> None:
        """Publish what a job does; announce its stall."""
        activity = self.feed.activity(message.handle)
        if activity is not None:
            from ..diagnosis.progress.stalls import Kind

            self.signals.activity.publish(message)
            if activity.is_read and (stall := activity.observed(Kind.STALLED)) is not None:
                self.alerts.announce_stall(message.handle, stall.sentence, stall.seconds)

    def on_usage_sampled(self, message: UsageSampled) -> None:
        cores = [usage.cpu for usage in message.usages if usage.cpu is not None]
        self.feed.activities.note_cores(message.handle, cores)
        self.signals.usage.publish(message)

    def on_progress_read(self, message: ProgressRead) -> None:
        self.signals.progress.publish(message)
        for handle, progress in message.progress.items():
            if progress.stalled:
                self.alerts.announce_stall(handle, progress.stalled, progress.stalled_seconds)

    def on_failure_explained(self, message: FailureExplained) -> None:
        """Keep and publish why a job failed."""
        row = self.jobs.explain(message.handle, message.explanation.sentence)
        self.signals.rows.publish(RowsChanged([row] if row else ()))
        self.signals.failures.publish(message)

    @cached_property
    def launches(self) -> LaunchWatch:
        """The launches under way."""
        from .launch.progress import LaunchWatch

        return LaunchWatch(self)

    def on_launch_progressed(self, message: LaunchProgressed) -> None:
        """Show how far a launch is."""
        self.launches.show(message)

    def on_log_pane_said(self, message: LogPane.Said) -> None:
        """Show in the status line what a log pane has to say."""
        self.status.say(message.text, failed=message.failed)

    def on_log_pane_copied(self, message: LogPane.Copied) -> None:
        """Copy what a log pane hands over."""
        self.terminal_clipboard.copy(message.text, message.what)

    def on_action_done(self, message: ActionDone) -> None:
        """Say how an action ended, and ask its backends at once."""
        if message.progress is not None:
            self.launches.end(message.progress)
        handles = message.handles
        if message.is_cancel and not message.failed and not any(map(self.jobs.is_live, handles)):
            # Their end was announced before.
            message.text = f"{len(handles):,} jobs cancelled" if len(handles) > 1 else ""
        if message.text:
            self.status.say(message.text, failed=message.failed)
        if message.results:
            from .job.dialogs import results_dialog

            self.push_screen(results_dialog(self, message.results))
        for handle in message.gone:
            self.jobs.forget(handle)
        for handle in message.handles or (None,):
            self.feed.refresh(handle)
        if message.gone:
            from .job.screen import JobScreen

            # The page of a job that is no more would go on offering everything.
            if isinstance(self.screen, JobScreen) and self.screen.row.handle in message.gone:
                self.pop_screen()
            self.signals.rows.publish(RowsChanged(removed=message.gone))

    @contextmanager
    def suspend(self) -> Iterator[None]:
        """Leave the terminal to another program, which alone gets what is typed, ctrl+c too."""
        with super().suspend(), self._signals.lend_terminal():
            yield

    def show_new_job(self, row: JobRow) -> None:
        """Put a job that was just submitted into the table, and the cursor on it."""
        from .jobs.screen import JobsScreen

        self.jobs.add(row)
        self.signals.rows.publish(RowsChanged([self.jobs.rows[row.handle]]))
        for screen in self.screen_stack:
            if isinstance(screen, JobsScreen):
                screen.table.move_to(row.handle)

    async def on_event(self, event: events.Event) -> None:
        """Take a failure's message away with the next key; a key says that somebody looks."""
        if isinstance(event, (events.Key, events.MouseEvent)):
            self.feed.touch()
        # A key that no widget took comes back.
        if isinstance(event, events.Key) and not event.is_forwarded:
            self.status.clear_failure()
        await super().on_event(event)

    # Keys that act everywhere

    async def action_command_palette(self) -> None:  # type: ignore[override]
        """Show the commands."""
        from .command_palette import CommandsScreen

        if not any(isinstance(screen, CommandsScreen) for screen in self.screen_stack):
            await self.push_screen(CommandsScreen())

    def action_keys(self) -> None:
        """Show the keys of this view."""
        from .ui.keys_screen import KeysScreen

        if not isinstance(self.screen, KeysScreen):
            self.push_screen(KeysScreen(self.screen))

    def action_doctor(self) -> None:
        """Say what is set up here, what is wrong, and what to do."""
        from .doctor.screen import DoctorScreen

        if not isinstance(self.screen, DoctorScreen):
            self.push_screen(DoctorScreen())

    async def action_leave(self) -> None:
        """Quit; a dialog asks before it ends launches, local jobs of its own, or a form with typed values."""
        if self.launches.names:
            self._start_quitting(self._quit_after_launches())
        elif own := await self._own_jobs():
            self._start_quitting(self._ask_to_quit(own))
        elif unsaved := [
            text for each in self.screen_stack if isinstance(each, BaseScreen) and (text := each.unsaved())
        ]:
            self._start_quitting(self._ask_to_lose(unsaved[0]))
        else:
            self.exit(0)

    async def _ask_to_lose(self, unsaved: str) -> None:
        from .ui.dialog import AskDialog

        body = [palette.Text(unsaved, "$style-muted"), palette.Text()]
        if await self.push_screen_wait(AskDialog("Quit?", body, {"": "Back", "y": "Quit"})):
            self.exit(0)

    def _start_quitting(self, quitting: Coroutine[Any, Any, None]) -> None:
        if any(worker.name == "quit" for worker in self.workers):
            quitting.close()
        else:
            self.run_worker(quitting, "quit", group="dialog")

    async def _own_jobs(self) -> list[str]:
        # Their records are files. Where the disk does not answer, jobs go on as after a hangup.
        asked = asyncio.ensure_future(asyncio.to_thread(self.runner.own_jobs))
        return asked.result() if await done_within(asked, _OWN_JOBS_SECONDS) else []

    async def _quit_after_launches(self) -> None:
        """Wait a moment for the launches under way, then ask: a launch that is given up leaves nothing behind."""
        if not await self.launches.ended_within(_LAUNCH_SECONDS):
            from .job.dialogs import launching_dialog

            if not await self.push_screen_wait(launching_dialog(self.launches.names)):
                return
            self.launches.cancel()
            await self.launches.ended_within(_CANCELLED_SECONDS)
        if own := await self._own_jobs():
            await self._ask_to_quit(own)
        else:
            self.exit(0)

    async def _ask_to_quit(self, own: list[str]) -> None:
        from .job.dialogs import quit_dialog

        warnings = [each for each in self.jobs.findings.get("local_cwd", ()) if each.level == "warning"]
        choice = await self.push_screen_wait(quit_dialog(self, own, warnings))
        if not choice:
            return
        if choice == "y":
            self.runner.end_own_jobs()
        else:
            for handle in self.runner.own_jobs():
                self.runner.detach(handle)
        self.exit(0)

    def action_suspend_process(self) -> None:
        """Leave the terminal to the shell, until `fg`."""
        if not self.is_headless and not stop_group():
            self.status.say("Cannot suspend: this program was not started by a shell with job control", failed=True)

    async def action_interrupt(self) -> None:
        """Take ctrl+c for a wish to quit, which asks where jobs would end."""
        await self.action_leave()
