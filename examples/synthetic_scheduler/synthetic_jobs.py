"""A scheduler of made-up jobs: an example of a plug-in, and a backend that is as large or as bad as one likes.

The environment chooses: SYNTHETIC_JOBS (how many there are), SYNTHETIC_CHANGING (which part of them changes from one
look to the next, 0.01), and SYNTHETIC_FAULT, a file with one word that says how it misbehaves at the moment:

    hang      does not answer, until the file says something else
    slow      answers after 20 s
    flaky     fails each other time
    garbage   answers with something else than a list
    drop      fails in the midst of an answer
    gone      refuses the connection
"""

from __future__ import annotations

import itertools
import os
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from torchx_tui.backends.api import DescribeAppResponse, Finding, ListAppResponse, Scheduler
from torchx_tui.specs.errors import SchedulerError
from torchx_tui.specs.resources import Resource
from torchx_tui.specs.roles import AppDryRunInfo, Role
from torchx_tui.specs.status import AppState, ReplicaStatus, RoleStatus

_STATES = (AppState.RUNNING, AppState.PENDING, AppState.RUNNING, AppState.FAILED, AppState.SUCCEEDED)
_NAMES = ("llama3-8b-sft", "eval-mmlu", "mixtral-pretrain", "tokenize", "vit-finetune")
_WHY = {AppState.FAILED: "RuntimeError: loss is nan: trainer/2, exit 1", AppState.PENDING: "waits for 8 GPUs"}


class SyntheticScheduler(Scheduler[Any]):
    """Jobs that exist nowhere.

    Args:
        session_name: the session part of handles.
        jobs: how many there are.
        changing: the part of them that changes from one look to the next.
    """

    def __init__(self, session_name: str, jobs: int = 1000, changing: float = 0.01) -> None:
        super().__init__("synthetic", session_name)
        now = time.time()
        self._apps = [_app(number, now) for number in range(jobs)]
        self._changing = changing
        self._looks = itertools.count()
        self._cancelled: set[str] = set()
        self._lock = threading.Lock()

    def list(self, cfg: Mapping[str, Any] | None = None) -> list[ListAppResponse]:
        """Return all jobs; some of them differ from the last time."""
        look = next(self._looks)
        answer = _misbehave(look)
        if answer is not None:
            return answer
        with self._lock:
            count = len(self._apps)
            for step in range(int(count * self._changing)):
                number = (look * 7919 + step * 104_729) % count
                app = self._apps[number]
                if app.app_id not in self._cancelled:
                    self._apps[number] = replace(app, msg=f"step {look}", replicas_running=look % 9)
            return self._apps[:]

    def describe(self, app_id: str) -> DescribeAppResponse | None:
        """Return one job."""
        app = next((app for app in self._apps if app.app_id == app_id), None)
        if app is None:
            return None
        role = Role("trainer", app.image, entrypoint="python3", args=["train.py"], num_replicas=app.replicas_wanted)
        role.resource = Resource(8, 1, 32_000)
        replicas = [ReplicaStatus(k, app.state, "trainer", f"node{k}") for k in range(app.replicas_wanted)]
        return DescribeAppResponse(
            app_id, app.state, msg=app.msg, roles=[role], roles_statuses=[RoleStatus("trainer", replicas)],
            name=app.name, submitted_at=app.submitted_at, started_at=app.started_at, finished_at=app.finished_at,
        )  # fmt: skip

    def log_iter(self, app_id: str, role_name: str, k: int = 0, *_: Any, **__: Any) -> Iterator[str]:
        """Yield some lines."""
        return iter([f"{app_id} {role_name}/{k} line {number}\n" for number in range(20)])

    def check(self) -> list[Finding]:
        """Say how many jobs there are."""
        return [Finding("ok", f"{len(self._apps):,} made-up jobs")]

    def schedule(self, dryrun_info: AppDryRunInfo[Any]) -> str:
        """Launch nothing.

        Raises:
            SchedulerError: always.
        """
        raise SchedulerError("made-up jobs cannot be launched: choose another scheduler")

    def _submit_dryrun(self, app: Any, cfg: Any) -> AppDryRunInfo[Any]:
        return AppDryRunInfo(app, str)

    def _cancel_existing(self, app_id: str) -> None:
        with self._lock:
            for number, app in enumerate(self._apps):
                if app.app_id == app_id:
                    self._cancelled.add(app_id)
                    self._apps[number] = replace(app, state=AppState.CANCELLED, finished_at=time.time())


def create_scheduler(session_name: str, **_: Any) -> SyntheticScheduler:
    """Return the scheduler that the environment asks for."""
    jobs = int(os.environ.get("SYNTHETIC_JOBS", "1000"))
    return SyntheticScheduler(session_name, jobs, float(os.environ.get("SYNTHETIC_CHANGING", "0.01")))


def _app(number: int, now: float) -> ListAppResponse:
    state = _STATES[number % len(_STATES)]
    submitted = now - 30 - number * 13
    ended = state in (AppState.FAILED, AppState.SUCCEEDED)
    wanted = 1 + number % 16
    return ListAppResponse(
        f"{_NAMES[number % len(_NAMES)]}-{number:06d}",
        state,
        name=_NAMES[number % len(_NAMES)],
        submitted_at=submitted,
        started_at=None if state is AppState.PENDING else submitted + 5,
        finished_at=submitted + 20 if ended else None,
        replicas_running=wanted if state is AppState.RUNNING else 0,
        replicas_wanted=wanted,
        user=("alice", "bob", "carol")[number % 3],
        image="registry/train:1",
        msg=_WHY.get(state, ""),
    )


def _fault() -> str:
    path = os.environ.get("SYNTHETIC_FAULT")
    return Path(path).read_text().strip() if path and Path(path).exists() else ""


def _misbehave(look: int) -> Any:
    while (fault := _fault()) == "hang":
        time.sleep(0.1)
    if fault == "slow":
        time.sleep(20)
    elif fault == "flaky" and look % 2:
        raise SchedulerError("the connection was reset by peer")
    elif fault == "garbage":
        return "<html><body>502 Bad Gateway</body></html>"
    elif fault == "drop":
        raise ConnectionError("incomplete answer: 12 of 4,096 bytes")
    elif fault == "gone":
        raise ConnectionRefusedError("connection refused: 10.0.0.1:6443")
    return None
