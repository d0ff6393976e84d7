"""What replicas use: real process trees, and GPUs by recorded answers of nvidia-smi."""

import os
import platform
import re
import signal
import subprocess
from pathlib import Path

import psutil
import pytest
from backend.local.support import python_app, started
from support.waiting import wait_until

from torchx_tui.backends.local.record import Run
from torchx_tui.backends.local.usage import UsageSampler, describe_use

MEGABYTE = 1 << 20
# The cores that a busy process has at least on a loaded machine; an idle one has none.
BUSY_CORES = 0.02
# A child of the replica works and holds 200 MB, as the workers of torchrun do.
BUSY = """
import subprocess, sys
subprocess.run([sys.executable, "-c", "b = bytearray(200 << 20)\\nwhile True: pass"])
"""


def wait_for_usage(local, app_id, test):
    return wait_until(lambda: (usages := local.scheduler.usage(app_id)) and test(usages) and usages, "its usage")


def test_children_of_a_replica_count(local):
    def is_busy(usages):
        held = [one for one in usages if (one.cpu or 0) > BUSY_CORES and (one.memory or 0) > 200 * MEGABYTE]
        return len(held) == 2

    app_id = local.start(python_app(BUSY, replicas=2))
    usages = wait_for_usage(local, app_id, is_busy)
    assert [(one.role, one.replica) for one in usages] == [("r", 0), ("r", 1)]
    for one in usages:
        assert (one.cpu or 0) < (one.cpu_total or 0) + 0.5
        assert (one.memory or 0) < (one.memory_total or 0)
    local.cancel(app_id)
    assert local.scheduler.usage(app_id) == []


def test_system_time_counts(local):
    app_id = local.start(python_app("file = open('/dev/zero', 'rb', 0)\nwhile True: file.read(1 << 22)"))
    wait_for_usage(local, app_id, lambda usages: (usages[0].cpu or 0) > BUSY_CORES)


def test_quiet_replica_uses_next_to_nothing(local):
    app_id = local.start_running()
    (usage,) = wait_for_usage(local, app_id, lambda usages: usages[0].cpu is not None and usages[0].cpu < 0.1)
    assert (usage.gpus, usage.gpu, usage.gpu_memory) == (0, None, None)


def run_of(pid):
    """Return an app of which this is the only process; a second replica has ended."""
    entry = {"role": "r", "id": 3, "pid": pid, "pid_started": started(pid), "exit_code": None}
    return Run("job-1", Path("/none"), {"replicas": [entry, {**entry, "exit_code": 0}]})


def test_memory_is_that_of_all_processes():
    with subprocess.Popen(["sh", "-c", "sleep 300 & echo $!; wait"], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        pids = [process.pid, int(process.stdout.readline())]
        run, sampler = run_of(process.pid), UsageSampler()

        def is_exact():
            (usage,) = sampler.sample(run)
            assert (usage.role, usage.replica) == ("r", 3)
            return usage.memory == sum(psutil.Process(pid).memory_info().rss for pid in pids)

        try:
            # The system may take some from them at any time.
            wait_until(is_exact, "the memory of both")
        finally:
            os.kill(pids[1], signal.SIGKILL)
            process.kill()


# As an A100 node with driver 535 answers to --format=csv,noheader,nounits.
FIRST, SECOND = "GPU-5d0f7c0e-7a0f-1b5e-6c5d-8a1c1d5a7f10", "GPU-0a2c1d5e-1111-2222-3333-444455556666"
THIRD = "GPU-ffffffff-1111-2222-3333-444455556666"
GPUS = f"{FIRST}, 97, 81920\n{SECOND}, 12, 81920\n{THIRD}, [N/A], [N/A]"
APPS = f"PID, {FIRST}, 70000\nPID, {SECOND}, 512\n1, {THIRD}, 9999"
UNKNOWN = (0, None, None, None)


def put_nvidia_smi(tmp_path, monkeypatch, gpus, apps, code=0):
    """Put a program on the PATH that answers as nvidia-smi; PID in its processes is this one's."""
    for name, text in (("gpus", gpus), ("apps", apps.replace("PID", str(os.getpid())))):
        (tmp_path / name).write_text(f"{text}\n", encoding="latin-1")
    program = tmp_path / "nvidia-smi"
    program.write_text(
        f'#!/bin/sh\ncase "$1" in\n*query-gpu*) cat {tmp_path}/gpus;;\n*query-compute-apps*) cat {tmp_path}/apps;;\n'
        f"*) exit 1;;\nesac\nexit {code}\n"
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")


@pytest.mark.parametrize(
    ("gpus", "apps", "code", "expected"),
    [
        (GPUS, APPS, 0, (2, pytest.approx(1.09), 70512 * MEGABYTE, 2 * 81920 * MEGABYTE)),
        (GPUS, APPS, 9, UNKNOWN),
        *((answer, answer, 0, UNKNOWN) for answer in ("", "No devices were found", "a, b, c, d, e", "\x01\xff")),
    ],
    ids=["two", "failed", "empty", "no_devices", "more_fields", "no_text"],
)
def test_gpus_by_their_processes(tmp_path, monkeypatch, gpus, apps, code, expected):
    put_nvidia_smi(tmp_path, monkeypatch, gpus, apps, code)
    (usage,) = UsageSampler().sample(run_of(os.getpid()))
    assert (usage.gpus, usage.gpu, usage.gpu_memory, usage.gpu_memory_total) == expected
    assert usage.memory


def test_this_machine_with_its_gpus(local, tmp_path, monkeypatch):
    gpus = f"{FIRST}, NVIDIA H200, 70000\n{SECOND}, NVIDIA H200, 4\n{THIRD}, NVIDIA H200, 9000"
    put_nvidia_smi(tmp_path, monkeypatch, gpus, f"PID, {FIRST}, 70000")
    (pool,) = local.scheduler.cluster().pools
    # The third one is used by a process that cannot be seen.
    assert (pool.name, pool.kind, pool.gpus) == (platform.node(), "machine", {"NVIDIA H200": (1, 3)})
    assert (pool.cpus, pool.memory, pool.note) == (psutil.cpu_count(), psutil.virtual_memory().total, "")
    assert 0 < pool.memory_free <= pool.memory


def test_jobs_of_this_machine_are_counted_with_their_use(monkeypatch, tmp_path):
    put_nvidia_smi(tmp_path, monkeypatch, GPUS, f"PID, {FIRST}, 70000\nPID, {SECOND}, 512")
    assert re.fullmatch(r"1 job of yours: \d+\.\d GB and 2 GPUs", describe_use([run_of(os.getpid())]))
    assert describe_use([]) == ""
