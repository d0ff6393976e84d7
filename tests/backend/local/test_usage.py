"""What replicas use: real process trees, and GPUs by recorded answers of nvidia-smi."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from backend.local.support import Local
from support.waiting import PATIENCE, wait_until

from torchx_tui.backends.local.record import Run
from torchx_tui.backends.local.usage import UsageSampler
from torchx_tui.backends.types import ReplicaUsage
from torchx_tui.specs import AppDef, AppState, Role
from torchx_tui.specs.processes import read_process

MEGABYTE = 1 << 20
# A child of the replica works and holds 200 MB, as the workers of torchrun do.
BUSY = """
import subprocess, sys
subprocess.run([sys.executable, "-c", "b = bytearray(200 << 20)\\nwhile True: pass"])
"""


def start(local: Local, program: str, replicas: int = 1) -> str:
    role = Role("r", "", entrypoint=sys.executable, args=["-c", program], num_replicas=replicas)
    return local.scheduler.submit(AppDef("job", [role]), {})


def wait_for_usage(local: Local, app_id: str, test) -> list[ReplicaUsage]:
    deadline = time.monotonic() + PATIENCE
    while not test(usages := local.scheduler.usage(app_id)):
        assert time.monotonic() < deadline, usages
        time.sleep(0.2)
    return usages


def test_a_replicas_children_count(local: Local) -> None:
    app_id = start(local, BUSY, replicas=2)
    usages = wait_for_usage(
        local,
        app_id,
        lambda usages: len(usages) == 2 and all((one.cpu or 0) > 0.3 and one.memory > 200 * MEGABYTE for one in usages),
    )
    assert [(one.role, one.replica) for one in usages] == [("r", 0), ("r", 1)]
    assert all(one.cpu_total and one.cpu < one.cpu_total + 0.5 for one in usages if one.cpu)
    assert all(one.memory_total and one.memory_total > one.memory for one in usages if one.memory)
    local.scheduler.cancel(app_id)
    local.ended(app_id)
    assert local.scheduler.usage(app_id) == []


def test_what_the_system_does_for_a_replica_counts(local: Local) -> None:
    program = "file = open('/dev/zero', 'rb', 0)\nwhile True: file.read(1 << 22)"
    app_id = start(local, program)
    wait_for_usage(local, app_id, lambda usages: usages and (usages[0].cpu or 0) > 0.3)


def test_a_quiet_replica_uses_next_to_nothing(local: Local) -> None:
    app_id = start(local, "import time; time.sleep(1000)")
    (usage,) = wait_for_usage(local, app_id, lambda usages: usages and usages[0].cpu is not None)
    (usage,) = wait_for_usage(local, app_id, lambda usages: usages[0].cpu < 0.1)
    assert (usage.gpus, usage.gpu, usage.gpu_memory) == (0, None, None)


def test_the_memory_of_a_replica_is_that_of_its_processes() -> None:
    with subprocess.Popen(["sh", "-c", "sleep 300 & echo $!; wait"], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        pids = [process.pid, int(process.stdout.readline())]
        try:
            found = read_process(process.pid)
            assert found is not None
            entry = {"role": "r", "id": 3, "pid": process.pid, "pid_started": found.start, "exit_code": None}
            run, sampler = Run("job-1", Path("/none"), {"replicas": [entry, {**entry, "exit_code": 0}]}), UsageSampler()

            def is_exact() -> bool:
                (usage,) = sampler.sample(run)
                assert (usage.role, usage.replica) == ("r", 3)
                return usage.memory == sum(psutil.Process(pid).memory_info().rss for pid in pids)

            # The system may take some from them at any time.
            wait_until(is_exact, "the memory of both")
        finally:
            os.kill(pids[1], signal.SIGKILL)
            process.kill()


@pytest.fixture
def nvidia_smi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Return a function that lets ``nvidia-smi`` give recorded answers."""

    def answer(gpus: str, apps: str) -> None:
        folder = tmp_path / "bin"
        folder.mkdir(exist_ok=True)
        program = folder / "nvidia-smi"
        program.write_text(
            f"#!/bin/sh\ncase \"$1\" in\n*query-gpu*) cat <<'END'\n{gpus}\nEND\n;;\n"
            f"*query-compute-apps*) cat <<'END'\n{apps}\nEND\n;;\n*) exit 1;;\nesac\n"
        )
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")

    return answer


# As an A100 node with driver 535 answers to --format=csv,noheader,nounits.
GPUS = """GPU-5d0f7c0e-7a0f-1b5e-6c5d-8a1c1d5a7f10, 97, 81920
GPU-0a2c1d5e-1111-2222-3333-444455556666, 12, 81920
GPU-ffffffff-1111-2222-3333-444455556666, [N/A], [N/A]"""


def test_gpus_are_told_by_the_processes_on_them(local: Local, nvidia_smi) -> None:
    app_id = start(local, "import time; time.sleep(1000)")
    (usage,) = wait_for_usage(local, app_id, bool)
    run = running(local, app_id)
    pid = run.replicas[0]["pid"]
    nvidia_smi(
        GPUS,
        f"{pid}, GPU-5d0f7c0e-7a0f-1b5e-6c5d-8a1c1d5a7f10, 70000\n"
        f"{pid}, GPU-0a2c1d5e-1111-2222-3333-444455556666, 512\n"
        "1, GPU-ffffffff-1111-2222-3333-444455556666, 9999",
    )
    (usage,) = local.scheduler.usage(app_id)
    assert usage.gpus == 2
    assert usage.gpu == pytest.approx(1.09)
    assert usage.gpu_memory == 70512 * MEGABYTE
    assert usage.gpu_memory_total == 2 * 81920 * MEGABYTE


def test_an_nvidia_smi_that_fails_tells_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = read_process(os.getpid())
    assert mine is not None
    entry = {"role": "r", "id": 0, "pid": mine.pid, "pid_started": mine.start, "exit_code": None}
    program = tmp_path / "nvidia-smi"
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    answers = []
    for code in (0, 9):
        program.write_text(
            f'#!/bin/sh\ncase "$1" in *apps*) echo "{mine.pid}, A, 5";; *) echo "A, 50, 7";; esac; exit {code}\n'
        )
        program.chmod(0o755)
        (usage,) = UsageSampler().sample(Run("job-1", Path("/none"), {"replicas": [entry]}))
        answers.append((usage.gpus, usage.gpu, usage.gpu_memory, usage.gpu_memory_total))
    assert answers == [(1, 0.5, 5 * MEGABYTE, 7 * MEGABYTE), (0, None, None, None)]


@pytest.mark.parametrize("answer", ["", "No devices were found", "a, b, c, d, e", "\x00\xff"])
def test_what_nvidia_smi_cannot_tell_is_left_out(local: Local, nvidia_smi, answer: str) -> None:
    app_id = start(local, "import time; time.sleep(1000)")
    wait_for_usage(local, app_id, bool)
    nvidia_smi(answer, answer)
    (usage,) = local.scheduler.usage(app_id)
    assert (usage.gpus, usage.gpu) == (0, None)
    assert usage.memory


def running(local: Local, app_id: str) -> Run:
    run = local.scheduler._runs.get(app_id)
    assert run.state is AppState.RUNNING
    return run
