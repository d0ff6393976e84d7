"""Looking for TorchX's local jobs among this machine's processes: what each look of the poller costs.

300 more processes of this user run meanwhile, 16 of which are replicas of 8 jobs, beside 200 jobs that have ended.
Budget: 10 ms a look.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

from benchmarks._budget import judged
from benchmarks._sizes import scaled
from torchx_tui.backends.local.torchx.jobs import TorchXJobs
from torchx_tui.specs.handles import make_unique

PROCESSES, JOBS, REPLICAS, FINISHED = 300, 8, 2, 200
ROUNDS = scaled(30, 1)
# Young processes are looked at again; see `JobProcesses`.
SETTLED_SECONDS = 3.0

Row = tuple[str, str]


def replica_environments(logs: Path) -> list[dict[str, str]]:
    """Return the environments that TorchX would give the replicas, and make the folders of their logs."""
    environments = []
    for app_id in [make_unique("bench") for _ in range(JOBS)]:
        for number in range(REPLICAS):
            folder = logs / "torchx" / app_id / "trainer" / str(number)
            folder.mkdir(parents=True)
            (folder / "stdout.log").touch()
            marks = {
                "TORCHX_JOB_ID": f"local_cwd://torchx/{app_id}",
                "TORCHELASTIC_ERROR_FILE": str(folder / "error.json"),
            }
            environments.append({**os.environ, **marks})
    return environments


def write_finished(logs: Path) -> None:
    """Write what TorchX leaves of jobs that have ended."""
    for app_id in [make_unique("ended") for _ in range(FINISHED)]:
        folder = logs / "torchx" / app_id
        (folder / "trainer" / "0").mkdir(parents=True)
        (folder / "trainer" / "0" / "stdout.log").touch()
        replica = {"replica_id": 0, "pid": 1, "exitcode": 0}
        success = {"app_id": app_id, "final_state": "SUCCEEDED", "last_updated": time.time()}
        (folder / "SUCCESS").write_text(json.dumps({**success, "roles": {"trainer": [replica]}}))


def run() -> list[Row]:
    """Measure a first look and those that follow."""
    with tempfile.TemporaryDirectory() as folder:
        logs = Path(folder) / "logs"
        write_finished(logs)
        marked = replica_environments(logs)
        environments = [*marked, *[dict(os.environ)] * (PROCESSES - len(marked))]
        started = [subprocess.Popen(["sleep", "600"], env=env, start_new_session=True) for env in environments]
        try:
            time.sleep(SETTLED_SECONDS)
            jobs = TorchXJobs(lambda: [logs], Path(folder) / "state")
            seconds, found = [], {}
            for _ in range(ROUNDS + 1):
                began = time.perf_counter()
                found = jobs._look()
                seconds.append(time.perf_counter() - began)
                time.sleep(0.1)
            assert len(found) >= JOBS + FINISHED
        finally:
            for process in started:
                process.kill()
                process.wait()
    present = sum(name.isdigit() for name in os.listdir("/proc")) + PROCESSES  # noqa: PTH208
    first, *others = (second * 1000 for second in seconds)
    label = f"TorchX's jobs among {present} processes"
    return [
        (f"{label}: first look", f"{first:.1f} ms"),
        (f"{label}: each look, median", judged(statistics.median(others), 10, " ms", digits=1)),
        (f"{label}: each look, worst of {ROUNDS}", f"{max(others):.1f} ms"),
    ]
