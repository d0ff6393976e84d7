"""Functions shared by the commands about one job."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ..base.validation import JsonObject
from ..settings.make_runner import make_runner
from ..specs.errors import UnknownAppException
from ..specs.handles import parse_app_handle
from ..specs.status import AppState
from .output import say

if TYPE_CHECKING:
    from ..backends.job import Job
    from ..backends.runner import Runner
    from ..backends.types import DescribeAppResponse
    from ..settings.config import Settings
    from ..specs.errors import BackendUnavailableError
    from ..specs.status import AppStatus

# The longest interval between two questions about a job that is waited for (s), as in TorchX.
_WAIT_INTERVAL_S = 1.0


@contextmanager
def with_job(settings: Settings, handle: str) -> Iterator[tuple[Runner, Job]]:
    with make_runner(settings) as runner:
        yield runner, runner.job(handle)


def describe_job(job: Job) -> DescribeAppResponse:
    """Describe a job.

    Raises:
        UnknownAppException: its backend does not know it.
    """
    found = job.describe()
    if found is None:
        raise UnknownAppException(job.handle)
    return found


def describe_through_outage(job: Job) -> DescribeAppResponse:
    """Describe a job; retry while its backend cannot be reached."""
    return job.until_answered(lambda: describe_job(job), on_lost=_say_outage)


def wait_for_job(job: Job, timeout: float | None = None) -> AppStatus:
    """Wait for a job's end and return its status; retry while its backend cannot be reached.

    Raises:
        UnknownAppException: its backend does not know it.
        TimeoutError: it has not ended in time.
    """
    status = job.wait(_WAIT_INTERVAL_S, timeout=timeout, on_lost=_say_outage)
    if status is None:
        raise UnknownAppException(job.handle)
    return status


def _say_outage(error: BackendUnavailableError) -> None:
    say(f"{error}; retrying until it answers")


def job_json(handle: str, state: AppState | None) -> JsonObject:
    """Return the keys that every JSON object of a job has."""
    scheduler, _, app_id = parse_app_handle(handle)
    return {"handle": handle, "app_id": app_id, "scheduler": scheduler, "state": None if state is None else str(state)}


def exit_code(state: AppState) -> int:
    return 0 if state is AppState.SUCCEEDED else 1
