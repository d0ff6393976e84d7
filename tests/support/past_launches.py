"""Launches of the past, written into a journal."""

from __future__ import annotations

from support.canned import NOW

from torchx_tui.backends.history.journal import Journal, LaunchRecord
from torchx_tui.backends.history.launch_record import LaunchOrigin
from torchx_tui.specs.roles import AppDef


def launched(
    journal: Journal, component: str, ago: float, state: str, cwd: str = "", app_id: str = "", group: str = ""
) -> LaunchRecord:
    """Note a launch of a component.

    Args:
        journal: where.
        component: its name, as it was typed.
        ago: how long ago it was, in seconds.
        state: the name of the state that was last seen.
        cwd: where it was typed; the current folder if empty.
        app_id: the job's id.
        group: of the sweep that it is part of.
    """
    record = journal.record_intent(
        AppDef("job", []),
        "local_cwd",
        "torchx",
        {},
        origin=LaunchOrigin(component, {}, group=group),
        expected_app_id=app_id,
    )
    return journal.update(record, at=NOW - ago, state=state, app_id=app_id, **({"cwd": cwd} if cwd else {}))
