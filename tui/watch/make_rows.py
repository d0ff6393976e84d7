"""Rows of the job table from what a backend listed, completed by the journal; texts of others are made safe here."""

from __future__ import annotations

import logging
import shlex
import time
from collections.abc import Iterable, Set
from typing import TYPE_CHECKING

from ...backends.shared.secrets import mask_args, mask_text
from ...logs.text.sanitize import plain
from ...specs.handles import parse_app_handle
from ...specs.status import AppState, is_terminal
from ..format import clock
from ..rows import JobRow

if TYPE_CHECKING:
    from ...backends.api import ListAppResponse
    from ...backends.history.journal import LaunchRecord

logger = logging.getLogger(__name__)


def arguments_text(record: LaunchRecord) -> str:
    """Return a launch's arguments as a person would type them, secrets masked."""
    words: list[str] = []
    for name, value in record.arguments.items():
        if isinstance(value, (list, tuple)):
            words += mask_args([str(item) for item in value])
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
        called=_called(app, record),
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
        kind=plain(app.kind),
        notes=tuple(plain(note) for note in app.notes),
        foreign=app.foreign,
        limit_at=app.limit_at,
        group=plain(record.group) if record else "",
        swept=_swept(record) if record else (),
        after=tuple(f"{app.app_handle.rpartition('/')[0]}/{app_id}" for app_id in app.after),
    )


def _swept(record: LaunchRecord) -> tuple[tuple[str, str], ...]:
    return tuple((plain(name), plain(text)) for name, text in record.swept.items())


def _called(app: ListAppResponse, record: LaunchRecord | None) -> str:
    """Return the app's name where its id is a mere number, as Slurm's are."""
    if not app.app_id.isdecimal():
        return ""
    return plain(app.name or (str(record.app.get("name", "")) if record else ""))


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
    # The backend has forgotten the job, or does not answer: what is known of it is old.
    goes_on = not is_terminal(state) and state is not AppState.UNKNOWN
    seen = clock(record.state_at, time.time()) if record.state_at is not None else "at its launch"
    why = plain(record.message)
    if not record.handle and not record.error:
        why = "launch interrupted: the job may have been submitted"
    return JobRow(
        handle=handle,
        scheduler=record.scheduler,
        app_id=handle.rpartition("/")[2],
        state=state,
        wanted=sum(int(role.get("num_replicas", 1)) for role in record.app.get("roles", [])),
        submitted_at=record.at,
        finished_at=None if goes_on else record.state_at,
        component=plain(record.component),
        arguments=arguments_text(record),
        why=f"last seen {seen}" if goes_on else why or plain(record.error),
        user=plain(record.user),
        group=plain(record.group),
        swept=_swept(record),
        history=True,
    )
