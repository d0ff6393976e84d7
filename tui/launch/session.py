"""The state of one launch form without its widgets, and the questions to config, component and backend."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ...backends.abilities import KnowsValues, SuggestsPartitions
from ...backends.shared.progress import Progress
from ...base.trust import UntrustedError, trust_folder
from ...components.model import ComponentDoc
from ...components.python_script import is_python_name
from ...settings.launch_defaults import LaunchDefaults, resolve
from .commands import commands_text, prefers_torchx
from .form_field import ARGUMENT, LAUNCH, OPTION, Origin
from .form_model import FormModel
from .partitions import PartitionsFound, find_partitions
from .work import dry_run, list_shipped, named_resource, request_diff, why_unusable

if TYPE_CHECKING:
    from ...backends.api import Finding, WorkspaceListing
    from ...backends.history.journal import LaunchRecord
    from ...backends.runner import Runner
    from ...components.sbatch_script import ScriptLine
    from ...settings.config import Settings
    from ...specs.run_options import runopts
    from ..dashboard import Draft
    from .foreign_job import ForeignJob


@dataclass(frozen=True)
class Start:
    """What a form is filled from besides its component's last launch.

    Attributes:
        record: an earlier launch.
        foreign: a job that was not launched here.
        changes: texts of arguments and run options that replace its own, by name.
        draft: what was typed into the form when it was left.
        chosen: the scheduler, whatever the others name.
    """

    record: LaunchRecord | None = None
    foreign: ForeignJob | None = None
    changes: Mapping[str, str] | None = None
    draft: Draft | None = None
    chosen: str = ""

    @property
    def is_relaunch(self) -> bool:
        return self.record is not None or self.foreign is not None

    @property
    def scheduler(self) -> str:
        source = self.draft or self.record or self.foreign
        return self.chosen or (source.scheduler if source else "")


@dataclass(frozen=True)
class _Loaded:
    scheduler: str
    options: runopts
    workspace: str | None
    has_partitions: bool
    defaults: LaunchDefaults
    torchx: bool


class LaunchSession:
    """One form: its model, its dry run, its workspace and the partitions with room for it.

    Blocking calls run in threads. To cancel a coroutine cancels the call as well.

    Args:
        runner: answers and launches.
        settings: the settings of config.toml.
        start: what the form is filled from.
        doc: the component; None for a job that was not launched here.
        last: the newest launch of the component.

    Attributes:
        model: the fields.
        last: the launch that the form is compared with.
        config_fault: why config cannot be read: a launch would ignore a part of it.
        is_file_faulty: whether that is a `.torchxconfig`, which can be ignored.
        failure: why there is no request, or why a launch failed, unless it is the error of a field.
        findings: warnings of the backend.
        is_answered: whether the dry run of the form with its current values has ended.
        request: the last valid request.
        label: the job of a sweep that the request is for; empty without a sweep.
        interpreter: the Python that ran the component; empty for this program's own.
        note: why the request is out of date.
        diff: name, earlier and present text of each field that differs from `last`, or from a job.
        not_repeated: what of a job is not launched again; None unless the form was filled from one.
        request_diff: the lines that the form's changes remove from and add to the request that repeats a job.
        script_lines: the lines of a batch script with their changes.
        command: the shell command that does the same.
        workspace: the workspace that is, or is being, listed.
        listing: what would be shipped of it; None until it is listed.
        unreadable: why it cannot be listed.
        has_partitions: whether the backend suggests partitions.
        partitions: the partitions for the present form; None until the backend answers.
        unusable: why schedulers cannot be used, by name.
    """

    def __init__(
        self,
        runner: Runner,
        settings: Settings,
        start: Start,
        doc: ComponentDoc | None = None,
        last: LaunchRecord | None = None,
    ) -> None:
        self._runner, self._settings, self._start = runner, settings, start
        if start.foreign is not None:
            self.model = FormModel(ComponentDoc("", "module", "", ""), start.foreign.app, start.foreign.unknown)
        else:
            assert doc is not None
            self.model = FormModel(doc)
        self.last = start.record or last
        self.not_repeated = None if start.foreign is None else start.foreign.notes
        self.request_diff: list[str] = []
        self._repeating = ""
        self.config_fault = self.failure = ""
        self.is_file_faulty = self._may_try_again = False
        self.findings: list[Finding] = []
        self.is_answered = False
        self.request = self.label = self.interpreter = self.note = self.command = ""
        self.diff: list[tuple[str, str, str]] = []
        self.script_lines: list[ScriptLine] = []
        self.workspace = self.unreadable = ""
        self.listing: WorkspaceListing | None = None
        self.has_partitions = False
        self.partitions: PartitionsFound | None = None
        self.unusable: dict[str, str] = {}
        self._torchx = self._partitions_are_asked = self._reads_resource = False
        self._first_build: Progress | None = None

    async def load(
        self,
        scheduler: str = "",
        profile: str | None = "",
        *,
        first: bool = False,
        refill: bool = False,
        trusted: Path | None = None,
    ) -> tuple[list[str], UntrustedError | None]:
        """Read config and the run options of a scheduler, and fill the form; typed texts stay.

        Args:
            scheduler: the scheduler; config's or the last launch's if empty.
            profile: the profile, see `LaunchDefaults.load`.
            first: whether the form is new.
            refill: whether arguments are filled from config again.
            trusted: a folder to trust before.

        Returns:
            Lost arguments and mistakes in config, and the refusal of a file of another user.
        """
        model, start = self.model, self._start
        loaded = await asyncio.to_thread(self._read, start.scheduler if first else scheduler, profile, trusted)
        defaults = loaded.defaults
        if refill:
            model.drop_given()
        model.choose_scheduler(loaded.scheduler, loaded.options, workspace=loaded.workspace)
        if first:
            self._fill_first()
        model.profile = defaults.profile
        self._torchx, self.has_partitions = loaded.torchx, loaded.has_partitions
        # The new field may have another one.
        self.workspace, self.config_fault = "", ""
        lost = [f"{model.doc.name} no longer has {', '.join(model.lost_arguments)}: the value is left out"]
        lost = lost if first and model.lost_arguments else []
        if first and start.is_relaunch:
            return [*lost, *resolve(defaults).problems], None
        resolved = resolve(defaults, loaded.scheduler, loaded.options, model.doc.name, model.doc)
        if first or refill:
            model.fill_given(ARGUMENT, resolved.arguments)
        model.fill_given(OPTION, resolved.options)
        workspace = defaults.workspace()
        model.fill_given(LAUNCH, {"workspace": workspace} if workspace else {})
        self.config_fault, self.is_file_faulty = next(iter(resolved.faults), ""), bool(resolved.file_faults)
        return [*lost, *resolved.problems], defaults.untrusted

    def _read(self, scheduler: str, profile: str | None, trusted: Path | None) -> _Loaded:
        if trusted is not None:
            trust_folder(trusted)
        model, runner = self.model, self._runner
        defaults = LaunchDefaults.load(self._settings, profile, ignore_files=model.ignores_config)
        given, last = defaults.scheduler(), self.last.scheduler if self.last else ""
        candidates = (scheduler, model.doc.scheduler, given.value if given else "", model.scheduler, last)
        wanted = next(filter(None, candidates), "")
        name = wanted if wanted in runner.scheduler_names() else runner.default_scheduler()
        chosen = runner.scheduler(name)
        workspace = chosen.usual_workspace if is_python_name(model.doc.name) else ""
        return _Loaded(
            name,
            chosen.run_opts(),
            workspace if chosen.takes_workspace else None,
            isinstance(chosen, SuggestsPartitions),
            defaults,
            prefers_torchx(self._settings.launch),
        )

    def _fill_first(self) -> None:
        model, start = self.model, self._start
        if self.last is not None:
            model.fill(self.last, Origin.RELAUNCHED if start.is_relaunch else Origin.LAST_RUN)
        if start.foreign is not None:
            model.fill_cfg(start.foreign.cfg)
            model.keep_job(start.foreign.scheduler)
        for name, text in (start.changes or {}).items():
            model.set(ARGUMENT if model.get(ARGUMENT, name) else OPTION, name, text)
        if start.draft is not None:
            model.fill_draft(start.draft)

    async def learn_values(self) -> bool:
        """Ask the backend for the values of run options; return whether a field was filled with its only one."""
        chosen = await asyncio.to_thread(self._runner.scheduler, self.model.scheduler)
        if not isinstance(chosen, KnowsValues):
            return False
        return bool(self.model.learn(await asyncio.to_thread(chosen.known_values)))

    async def check_schedulers(self) -> None:
        self.unusable = await asyncio.to_thread(why_unusable, self._runner)

    @property
    def fault(self) -> str:
        """The first error of a field or of config, without which there is no dry run."""
        wrong = next(iter(self.model.errors()), None)
        return f"{wrong.name}: {wrong.error}" if wrong else self.config_fault

    @property
    def is_ready(self) -> bool:
        """Whether the form can be launched."""
        return self.model.is_whole and not self.fault and (not self.failure or self._may_try_again)

    def changed(self) -> None:
        """Discard the answers for the form as it was, and update what is derived from its fields."""
        model = self.model
        self.failure, self.findings, self._may_try_again = "", [], False
        self.partitions, self._partitions_are_asked = None, False
        self.diff, self.script_lines = model.diff(self.last), model.script_lines()
        self.is_answered = bool(self.fault)
        if self.is_answered:
            self.note = self.fault
        if not model.errors():
            self.command = commands_text(model, torchx=self._torchx)

    def fail(self, error: str) -> None:
        """Show why a launch failed; it may be tried again, since causes such as a full disk go away."""
        self.failure, self._may_try_again = error, True

    async def dry_run(self, report: Callable[[str], object]) -> bool:
        """Make the request, or find the field with the error; return whether the fields of roles are others now.

        Args:
            report: called from a thread with the progress of a slow component.
        """
        progress = build = Progress(report)
        if self._first_build is None:
            # Not cancelled when the form changes: the next build would repeat its imports.
            build = self._first_build = Progress(report)
        try:
            done = await asyncio.to_thread(dry_run, self._runner, self.model.plan(), progress, build)
        except asyncio.CancelledError:
            progress.cancel()
            raise
        model = self.model
        has_other_fields = done.app is not None and model.base is None and model.take_app(done.app)
        wrong = model.get(*done.at) if done.error else None
        if wrong is not None:
            wrong.error = done.error
        self.is_answered, self._may_try_again = True, False
        self.failure, self.findings = "" if wrong else done.error, done.findings
        self.note, self.interpreter = done.error, done.interpreter
        if not done.error:
            self.request, self.label = done.text, model.plan().label
            if self.not_repeated is not None:
                # A form that lacks something at first has no request that repeats the job.
                before = self._repeating = self._repeating if self.diff else done.text
                name = model.base.name if model.base else ""
                self.request_diff = await asyncio.to_thread(request_diff, before, done.text, name) if before else []
        return has_other_fields

    def close(self) -> None:
        """Cancel the first build."""
        if self._first_build is not None:
            self._first_build.cancel()

    def takes_other_workspace(self) -> bool:
        """Take the workspace of the form; return whether `list_workspace` has to list it."""
        field = self.model.get(LAUNCH, "workspace")
        text = field.text if field is not None else ""
        if text == self.workspace:
            return False
        self.workspace, self.listing, self.unreadable = text, None, ""
        return bool(text)

    async def list_workspace(self) -> None:
        """List what would be shipped; a workspace that cannot be read is the error of its field."""
        workspace, cancelled = self.workspace, threading.Event()
        try:
            found = await asyncio.to_thread(list_shipped, self._runner, workspace, lambda: not cancelled.is_set())
        except asyncio.CancelledError:
            cancelled.set()
            raise
        if workspace != self.workspace:
            return
        self.listing, self.unreadable = found
        field = self.model.get(LAUNCH, "workspace")
        if self.unreadable and field is not None and field.text == workspace:
            field.error = self.unreadable

    async def find_partitions(self) -> None:
        """Ask the backend for partitions, once for each state of the form: estimates are expensive."""
        if not self._partitions_are_asked and not self.fault:
            self._partitions_are_asked = True
            self.partitions = await asyncio.to_thread(find_partitions, self._runner, self.model.plan())

    async def read_resource(self) -> None:
        """Read the named resource of the form, made by code of others, until it is the present one."""
        # One at a time: each letter names another one.
        while not self._reads_resource and (name := self.model.unread_resource):
            self._reads_resource = True
            try:
                self.model.learn_resource(name, await asyncio.to_thread(named_resource, name))
            finally:
                self._reads_resource = False
