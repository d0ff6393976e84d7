"""A scheduler with canned answers, for pictures and for faults that a real backend cannot be made to show."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from torchx_tui.backends.api import (
    DescribeAppResponse,
    Finding,
    ListAppResponse,
    Scheduler,
    StateChange,
    Stream,
)
from torchx_tui.specs.errors import LogUnreadableError
from torchx_tui.specs.resources import Resource
from torchx_tui.specs.roles import AppDef, AppDryRunInfo, Role
from torchx_tui.specs.run_options import runopts
from torchx_tui.specs.status import AppState, ReplicaStatus, RoleStatus

# 2026-11-21 10:45:32 UTC; pictures freeze the clock here.
NOW = 1795258732.0
MINUTE, HOUR, DAY = 60.0, 3600.0, 86400.0


class CannedScheduler(Scheduler):
    """Answers from what a test put into it."""

    def __init__(self, session_name: str = "torchx", logs: Path | None = None) -> None:
        super().__init__("local", session_name)
        self.apps: dict[str, ListAppResponse] = {}
        self.described: dict[str, DescribeAppResponse] = {}
        self.logs = logs
        self.error: Exception | None = None
        self.cancelled: list[str] = []
        self.findings = [Finding("ok", "this machine: 32 cpu, 2 gpu, 251 GB")]

    def _validate(self, app, scheduler, cfg) -> None:
        """Take roles without resources too, as schedulers here do."""

    def add(
        self,
        app_id: str,
        state: AppState,
        age: float,
        *,
        replicas: int = 1,
        running: int | None = None,
        why: str = "",
        component_args: Iterable[str] = (),
    ) -> None:
        submitted = NOW - age
        active = running if running is not None else (replicas if state is AppState.RUNNING else 0)
        final = state in (AppState.SUCCEEDED, AppState.FAILED, AppState.CANCELLED)
        started = submitted + 2 if state not in (AppState.SUBMITTED, AppState.PENDING) else None
        finished = submitted + min(age, 20 * MINUTE) if final else None
        self.apps[app_id] = ListAppResponse(
            app_id,
            state,
            name=app_id.rpartition("-")[0],
            submitted_at=submitted,
            started_at=started,
            finished_at=finished,
            replicas_running=active,
            replicas_wanted=replicas,
            replicas_succeeded=replicas if state is AppState.SUCCEEDED else 0,
            user="alice",
            msg=why,
        )
        role = Role(
            "trainer", "image", entrypoint="python3", args=["train.py", *component_args], num_replicas=replicas,
            resource=Resource(2, 0, 4096),
        )  # fmt: skip
        statuses = [
            ReplicaStatus(k, state, "trainer", "login03", started_at=started, finished_at=finished,
                          exit_code=(0 if state is AppState.SUCCEEDED else 1) if final else None, pid=4100 + k)
            for k in range(replicas)
        ]  # fmt: skip
        timeline = [StateChange(AppState.SUBMITTED, submitted)]
        if started is not None:
            timeline.append(StateChange(AppState.RUNNING, started))
        if finished is not None:
            timeline.append(StateChange(state, finished))
        self.described[app_id] = DescribeAppResponse(
            app_id=app_id,
            state=state,
            msg=why or "<NONE>",
            roles=[role],
            roles_statuses=[RoleStatus("trainer", statuses)],
            name=app_id.rpartition("-")[0],
            submitted_at=submitted,
            started_at=started,
            finished_at=finished,
            timeline=timeline,
            user="alice",
            host="login03",
            log_dir=f"/home/alice/.local/state/torchx-tui/local/torchx/{app_id}",
        )

    def set_state(self, app_id: str, state: AppState) -> None:
        self.apps[app_id] = replace(self.apps[app_id], state=state)
        self.described[app_id] = replace(self.described[app_id], state=state)

    def schedule(self, dryrun_info):
        raise NotImplementedError

    def _submit_dryrun(self, app, cfg) -> AppDryRunInfo[Any]:
        return AppDryRunInfo(app, request_text)

    def _run_opts(self):
        opts = runopts()
        opts.add("log_dir", str, "Directory to write stdout/stderr log files of replicas.")
        opts.add("prepend_cwd", bool, "If set, prepends CWD to replica's PATH.", default=False)
        return opts

    def describe(self, app_id):
        self._answer()
        return self.described.get(app_id)

    def list(self, cfg=None):
        self._answer()
        return [replace(app) for app in self.apps.values()]

    def _cancel_existing(self, app_id):
        self.cancelled.append(app_id)
        self.set_state(app_id, AppState.CANCELLED)

    def _delete_existing(self, app_id):
        self.apps.pop(app_id, None)
        self.described.pop(app_id, None)

    def describe_native(self, app_id):
        return json.dumps({"app_id": app_id}, indent=1)

    def check(self):
        self._answer()
        return self.findings

    def log_files(self, app_id, role_name, k):
        if self.logs is None:
            raise LogUnreadableError("local has no logs to read")
        return {Stream.COMBINED: self.logs / app_id / role_name / str(k) / "combined.log"}

    def write_log(self, app_id: str, k: int, chunks: Sequence[tuple[float, str, str]]) -> None:
        """Write a replica's combined log: seconds before now, stream letter and text of each chunk."""
        assert self.logs is not None
        folder = self.logs / app_id / "trainer" / str(k)
        folder.mkdir(parents=True, exist_ok=True)
        offset, log, index = 0, b"", ""
        for ago, stream, text in chunks:
            index += f"{offset} {NOW - ago:.3f} {stream}\n"
            log += text.encode()
            offset = len(log)
        (folder / "combined.index").write_text(index)
        (folder / "combined.log").write_bytes(log)

    def _answer(self) -> None:
        if self.error is not None:
            raise self.error


def let_run_commands(scheduler: CannedScheduler) -> CannedScheduler:
    """Give a scheduler the ability to run commands; a test that runs some replaces `run_beside`."""
    vars(scheduler).update(run_beside=lambda *_: pytest.fail("a command was run"))
    return scheduler


def request_text(app: AppDef) -> str:
    """Return a request as text, without what differs from run to run."""
    lines = [f"app: {app.name}", "roles:"]
    for role in app.roles:
        lines += [
            f"  {role.name}:",
            f"    replicas: {role.num_replicas}",
            f"    entrypoint: {role.entrypoint}",
            "    args:",
        ]
        lines += [f"    - {arg.splitlines()[0][:60]}" for arg in role.args if arg]
    return "\n".join(lines)


def busy_scheduler(logs: Path) -> CannedScheduler:
    """Return a scheduler with jobs in every state, and logs of the newest ones."""
    scheduler = CannedScheduler(logs=logs)
    scheduler.add("qwen2-7b-dpo-d2t5m0xk8wqhzn", AppState.SUBMITTED, 20, replicas=16)
    scheduler.add("eval-mmlu-h3v9q1zj6pcx0d", AppState.RUNNING, 3 * MINUTE)
    scheduler.add("mixtral-8x7b-pt-w5zj0r7tn2bqcls", AppState.PENDING, 18 * MINUTE, replicas=64,
                  why="waits for 2 running jobs to end (max_running = 2)")  # fmt: skip
    scheduler.add("llama3-8b-sft-zq2wmx7v5hkdfd", AppState.RUNNING, 41 * MINUTE, replicas=16)
    scheduler.add("vit-l16-ft-p0d8s6k2c9xq2v", AppState.RUNNING, 52 * MINUTE, replicas=2)
    scheduler.add("llama3-8b-sft-b7n1xk4t9wz0rg", AppState.FAILED, HOUR, replicas=4,
                  why="RuntimeError: loss is nan: trainer/2, exit 1")  # fmt: skip
    scheduler.add("tokenize-pile-m4c8z2v6q1kd7t", AppState.SUCCEEDED, 2 * HOUR, replicas=4)
    scheduler.add(
        "whisper-ft-c1j6t9k3x5vz8m", AppState.CANCELLED, 5 * HOUR, replicas=4, why="cancelled by alice after 12m"
    )
    scheduler.add("debug-nccl-v4x0k8c2d6tm9q", AppState.UNKNOWN, 11 * HOUR, replicas=2,
                  why="its supervisor ended without a word")  # fmt: skip
    for day in range(1, 14):
        scheduler.add(f"eval-arc-t2z8d4q0m{day:02d}5c", AppState.SUCCEEDED, day * DAY)
    failed = scheduler.described["llama3-8b-sft-b7n1xk4t9wz0rg"]
    failed.structured_error_msg = TRACEBACK
    for replica in failed.roles_statuses[0].replicas:
        if replica.id == 2:
            replica.exit_code = 1
        else:
            replica.exit_code, replica.signal, replica.state = -15, "SIGTERM", AppState.CANCELLED
    for k in range(16):
        scheduler.write_log("llama3-8b-sft-zq2wmx7v5hkdfd", k, list(_steps(k)))
    for k in range(4):
        scheduler.write_log("llama3-8b-sft-b7n1xk4t9wz0rg", k, list(_steps(k, fails=k == 2, loses_peer=k < 2)))
    scheduler.write_log("eval-mmlu-h3v9q1zj6pcx0d", 0, EVAL_LOG)
    return scheduler


TRACEBACK = """Traceback (most recent call last):
  File "/home/alice/train.py", line 212, in train_step
    loss = model(batch).loss
  File "/home/alice/model.py", line 1183, in forward
    check_finite(logits)
RuntimeError: loss is nan at step 14917
"""

EVAL_LOG = [
    (60, "o", "model  acme/llama3-8b-sft-12390  bf16\n"),
    (59, "o", "task   mmlu, 57 subjects, 14,042 questions, 5-shot\n"),
    (58, "e", "WARNING generation config not found, using the defaults of the model\n"),
    (50, "e", "Tokenizing:   3%|          |\rTokenizing: 100%|##########| 14042/14042 [00:21<00:00, 655.3it/s]\n"),
    (30, "o", "abstract_algebra         100 done   acc 0.3400\n"),
    (20, "o", "anatomy                  135 done   acc 0.6074\n"),
    (15, "e", "WARNING astronomy: 2 prompts cut to 8,192 tokens\n"),
    (10, "o", "astronomy                152 done   acc 0.6842\n"),
    (5, "o", "business_ethics          100 done   acc 0.6300\n"),
]


def _steps(k: int, *, fails: bool = False, loses_peer: bool = False):
    for step in range(40):
        text = f"step {14600 + step * 10}  loss {1.9 - step / 100:.4f}  lr 1.94e-05  3.41 it/s\n"
        yield 600 - step * 10 - k / 10, "o", text
        if step % 13 == k % 13:
            yield 599 - step * 10 - k / 10, "e", f"WARNING dataloader worker {k} slow: {700 + k} ms/batch\n"
    if fails:
        yield 190, "e", "ERROR train.py:212 step 14917 failed on rank 2\n" + TRACEBACK
    if loses_peer:
        yield 189 - k / 10, "e", f"RuntimeError: Connection closed by peer [10.0.0.3]:{31337 + k}\n"
