"""A job that goes on when another has ended: the form with the dependency and the newest checkpoint filled in."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ...base.errors import TorchXTuiError
from ...components.finder import describe
from ...diagnosis.progress.checkpoints import newest_checkpoint
from ...logs.text.sanitize import plain
from ...specs.handles import parse_app_handle
from ..messages import Told

if TYPE_CHECKING:
    from ...backends.history.journal import LaunchRecord
    from ..dashboard import Dashboard
    from ..rows import JobRow

# How components and scripts call the argument, the likeliest first.
_RESUMES = (r"resume", r"(?:load|from|init)_?(?:checkpoint|ckpt)", r"checkpoint(?!.*dir)|ckpt(?!.*dir)")

_NO_ARGUMENT = "The component has no argument for a checkpoint"


def find_continuation(app: Dashboard, row: JobRow, record: LaunchRecord | None) -> dict[str, str]:
    """Return what differs in a launch that goes on after a job: the dependency, and the argument with the checkpoint.

    It reads the job's folders and the end of its logs, so it is called off the event loop. What was found is said.

    Args:
        app: is told what was found.
        row: the job.
        record: its launch, None where it was not launched here.
    """
    changes = {} if row.is_final else {"dependency": f"afterany:{parse_app_handle(row.handle)[2]}"}
    described = app.runner.job(row.handle).describe()
    logs = app.runner.job(row.handle).replica_logs(described) if described is not None else []
    paths = [path for log in logs for path in (log.combined, log.stdout, log.stderr) if path is not None]
    folders = [Path(described.log_dir)] if described is not None and described.log_dir else []
    found = newest_checkpoint(folders, paths)
    name = resume_argument(_parameter_names(record))
    if found is None:
        app.post_from_thread(Told("No checkpoint was found in the job's folder or its logs"))
    elif not name:
        app.post_from_thread(Told(f"Newest checkpoint: {plain(str(found))}. {_NO_ARGUMENT}"))
    else:
        changes[name] = str(found)
    return changes


def resume_argument(names: Sequence[str]) -> str:
    """Return which argument takes a checkpoint to go on from, by its name; empty where none does."""
    for pattern in _RESUMES:
        for name in names:
            if re.search(pattern, name, re.IGNORECASE):
                return name
    return ""


def _parameter_names(record: LaunchRecord | None) -> list[str]:
    if record is None or not record.component:
        return []
    try:
        return [parameter.name for parameter in describe(record.component).parameters]
    except TorchXTuiError:
        # The form says what is wrong with the component.
        return []
