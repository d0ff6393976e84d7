"""One row of the job table: what a backend listed, completed by the journal."""

from __future__ import annotations

import logging
import shlex
import time
from collections.abc import Iterable, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..backends.logs.sanitize import plain
from ..backends.secrets import mask_text
from ..specs import AppState, is_terminal, parse_app_handle

if TYPE_CHECKING:
    from ..backends.api import ListAppResponse
    from ..backends.journal import LaunchRecord

logger = logging.getLogger(__name__)

# What people call a scheduler in a column of six cells.
BACKEND_WORDS = {"local_cwd": "local", "local_docker": "docker", "kubernetes": "k8s"}


def backend_word(scheduler: str, *, long: bool = False) -> str:
    """Return a scheduler's word on screen, such as ``local`` for ``local_cwd``."""
    if long and scheduler == "kubernetes":
        return scheduler
    return BACKEND_WORDS.get(scheduler, scheduler)


@dataclass(frozen=True)
class JobRow:
    """What the table knows of one job.

    Attributes:
        handle: the app handle, the row's key.
        scheduler: the scheduler's name.
        app_id: the app's id.
        state: the state as the backend says it; for history, the last one seen.
        running: replicas that run now; succeeded ones once the job is final.
        wanted: replicas asked for.
        component: the component that made it, if the journal knows.
        arguments: that component's arguments, as typed.
        why: the reason of the state in words, cause first; empty where there is nothing to say.
        history: the backend no longer knows the job, the journal does.
        foreign: TorchX did not launch it.
    """

    handle: str
    scheduler: str
    app_id: str
    state: AppState
    running: int = 0
    wanted: int = 0
    submitted_at: float | None = None
    started_at: float | None = None
    finished_at: float | None = None
    component: str = ""
    arguments: str = ""
    why: str = ""
    user: str = ""
    image: str = ""
    notes: tuple[str, ...] = ()
    history: bool = False
    foreign: bool = False

    @property
    def name(self) -> str:
        """The app id as it may be drawn: a backend could hold anything."""
        return plain(self.app_id)

    @property
    def is_final(self) -> bool:
        """Whether the job has ended; where nobody saw how, its state is UNKNOWN."""
        return is_terminal(self.state) or (self.state is AppState.UNKNOWN and self.finished_at is not None)

    def age_seconds(self, now: float | None = None) -> float | None:
        """Return how long ago the job was submitted, or None if that is not known."""
        if self.submitted_at is None:
            return None
        return max(0.0, (time.time() if now is None else now) - self.submitted_at)

    @property
    def duration_seconds(self) -> float | None:
        """How long the job ran, for a job that ended."""
        if self.finished_at is None or self.started_at is None:
            return None
        return max(0.0, self.finished_at - self.started_at)


def arguments_text(record: LaunchRecord) -> str:
    """Return a launch's arguments as a person would type them, secrets masked."""
    words: list[str] = []
    for name, value in record.arguments.items():
        if isinstance(value, (list, tuple)):
            words += [str(item) for item in value]
        else:
            words += [f"--{name}", mask_text(name, str(value))]
    return plain(shlex.join(words))


def row_of(app: ListAppResponse, record: LaunchRecord | None) -> JobRow:
    """Return the row of a listed app, with what the journal adds."""
    scheduler = parse_app_handle(app.app_handle).scheduler_backend
    final = is_terminal(app.state)
    return JobRow(
        handle=app.app_handle,
        scheduler=scheduler,
        app_id=app.app_id,
        state=app.state,
        running=app.replicas_succeeded if final else app.replicas_running,
        wanted=app.replicas_wanted,
        submitted_at=app.submitted_at or (record.at if record else None),
        started_at=app.started_at,
        finished_at=app.finished_at,
        component=plain(record.component) if record else "",
        arguments=arguments_text(record) if record else "",
        why=plain(app.msg),
        user=plain(app.user or (record.user if record else "")),
        image=plain(app.image),
        notes=tuple(plain(note) for note in app.notes),
        foreign=app.foreign,
    )


def history_rows(records: Iterable[LaunchRecord], known: Set[str]) -> list[JobRow]:
    """Return a row for each launch of the journal that no backend lists; ``known`` are the handles they do."""
    rows = []
    for record in records:
        try:
            row = _history_row(record)
        except Exception:  # whatever another program wrote costs that record alone
            logger.warning("the launch %s cannot be shown", record.id, exc_info=True)
            continue
        if row.handle not in known:
            rows.append(row)
    return rows


def _history_row(record: LaunchRecord) -> JobRow:
    handle = record.handle or f"{record.scheduler}://{record.session}/{record.app.get('name', '')}-{record.id}"
    state = AppState[record.state] if record.state in AppState.__members__ else AppState.UNKNOWN
    return JobRow(
        handle=handle,
        scheduler=record.scheduler,
        app_id=handle.rpartition("/")[2],
        state=state,
        wanted=sum(int(role.get("num_replicas", 1)) for role in record.app.get("roles", [])),
        submitted_at=record.at,
        finished_at=record.state_at,
        component=plain(record.component),
        arguments=arguments_text(record),
        why=plain(record.message),
        user=plain(record.user),
        history=True,
    )
