"""The rows of all jobs: from what a list, or a watch, says of each, and nothing more."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

from ...specs.errors import BackendUnavailableError
from ...specs.status import AppState, is_terminal
from ..types import ListAppResponse
from . import labels
from .api_server import ApiServer
from .causes import job_message
from .jobs import JOBS, count_of, is_torchx, jobs_path, make_app_id, tasks_of, template_labels
from .phases import app_state, finished_at, started_at, submitted_at
from .shapes import KubernetesObject, checked_job, items_of, list_version

_log = logging.getLogger(__name__)

_PAGE = 500
# A broken server may announce pages without end.
_MOST_PAGES, _LONGEST_LIST_S = 400, 120.0


class Known(NamedTuple):
    """What was found out about a job when it was last described, and a list does not say.

    Attributes:
        state: the state that it was found in; nothing of this holds in another one.
        reason: why it is in it.
        finished_at: when it ended, in seconds since the epoch; None where that is not known.
    """

    state: AppState
    reason: str = ""
    finished_at: float | None = None


class KnownReasons:
    """Why jobs are in their states, and when they ended, as found when each was last described.

    It holds as long as the job's state does.
    """

    def __init__(self) -> None:
        self._known: dict[str, Known] = {}
        self._lock = threading.Lock()

    def learn(self, uid: str, known: Known) -> None:
        """Keep what was found out about a job."""
        with self._lock:
            self._known[uid] = known

    def of(self, uid: str, state: AppState) -> Known:
        """Return the known reason and end of a job in its state."""
        known = self._known.get(uid)
        return known if known is not None and known.state is state else Known(state)

    def forget(self, uid: str) -> None:
        """Forget a job that is no more."""
        with self._lock:
            self._known.pop(uid, None)


def uid_of(job: KubernetesObject) -> str:
    """Return a job's uid, which an earlier one of the same name does not have."""
    return str(job["metadata"].get("uid") or "")


def row_of(job: KubernetesObject, reasons: KnownReasons) -> ListAppResponse:
    """Return the row of a job.

    Args:
        job: the job.
        reasons: what is known of why jobs are in their states.
    """
    state = app_state(job)
    status = job.get("status") or {}
    tasks = tasks_of(job)
    wanted = sum(count_of(task) for task in tasks)
    annotations = job["metadata"].get("annotations") or {}
    known = reasons.of(uid_of(job), state)
    return ListAppResponse(
        app_id=make_app_id(job),
        state=state,
        name=name_of(job),
        submitted_at=submitted_at(job) or None,
        started_at=started_at(job),
        finished_at=finished_at(job) or known.finished_at,
        # Counts are dropped when a job has ended, and while its pods end.
        replicas_running=0 if is_terminal(state) else status.get("running") or 0,
        replicas_wanted=wanted,
        replicas_succeeded=wanted if state is AppState.SUCCEEDED else status.get("succeeded") or 0,
        user=annotations.get(labels.USER, ""),
        image=image_of(tasks[0]) if tasks else "",
        msg=known.reason or job_message(job),
        foreign=not is_torchx(job),
    )


def name_of(job: KubernetesObject) -> str:
    """Return the name that a job was launched under; the job's own where TorchX did not launch it."""
    pod_labels = template_labels(tasks_of(job)[0]) if tasks_of(job) else {}
    return pod_labels.get(labels.APP_NAME) or pod_labels.get(labels.KUBERNETES_NAME) or job["metadata"]["name"]


def image_of(task: KubernetesObject) -> str:
    """Return the image of a task's first container."""
    containers = ((task.get("template") or {}).get("spec") or {}).get("containers") or [{}]
    return str(containers[0].get("image") or "")


def pages(server: ApiServer, namespace: str) -> Iterator[tuple[list[KubernetesObject], str]]:
    """Yield the jobs of a namespace page by page, each with the version of the list that it is of.

    Args:
        server: the server.
        namespace: the namespace; all of them where empty.

    Raises:
        ApiError: the list cannot be read; status 410 where it changed too much between two pages.
        BackendUnavailableError: the server is away.
    """
    path = jobs_path(namespace) if namespace else JOBS
    params: dict[str, Any] = {"limit": _PAGE}
    deadline = time.monotonic() + _LONGEST_LIST_S
    for _ in range(_MOST_PAGES):
        answer = server.request("GET", path, params=params)
        metadata = answer.get("metadata")
        yield _jobs_of(answer, namespace), list_version(answer)
        following = metadata.get("continue") if isinstance(metadata, dict) else None
        if not following:
            return
        if time.monotonic() > deadline:
            raise BackendUnavailableError(f"{server.host} did not list all jobs within {_LONGEST_LIST_S:.0f} s")
        params["continue"] = following
    raise BackendUnavailableError(f"{server.host} lists more than {_MOST_PAGES * _PAGE:,} jobs: name a namespace")


def _jobs_of(answer: KubernetesObject, namespace: str) -> list[KubernetesObject]:
    """Return the jobs of a page; what is no job is left out, and noted."""
    items = items_of(answer)
    jobs = [job for item in items if (job := checked_job(item)) is not None]
    if len(jobs) < len(items):
        _log.warning("%d of %d jobs of %s have no usable name: not shown", len(items) - len(jobs), len(items),
                     namespace or "all namespaces")  # fmt: skip
    return jobs
