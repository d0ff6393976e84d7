"""What the tests of local apps use again and again."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from support.waiting import wait_until

from torchx_tui.backends.local.record import Run, read_run
from torchx_tui.backends.local.scheduler import LocalScheduler
from torchx_tui.specs import AppDef, Role
from torchx_tui.specs.processes import is_running, job_processes, send_signal


def role(script: str, *, name: str = "r", replicas: int = 1, **fields: Any) -> Role:
    """Return a role whose replicas run a shell script."""
    return Role(name, "", entrypoint="sh", args=["-c", script], num_replicas=replicas, **fields)


def app(script: str, *, name: str = "job", replicas: int = 1, **fields: Any) -> AppDef:
    """Return an app of one role."""
    return AppDef(name, [role(script, replicas=replicas, **fields)])


_LAUNCHER = (
    "import sys\n"
    "from pathlib import Path\n"
    "from torchx_tui.backends.local.scheduler import LocalScheduler\n"
    "from torchx_tui.specs import AppDef, Role\n"
    "root, script, replicas = sys.argv[1:]\n"
    "role = Role('r', '', entrypoint='sh', args=['-c', script], num_replicas=int(replicas))\n"
    "scheduler = LocalScheduler('session', root=Path(root), grace_seconds=1.0)\n"
    "print(scheduler.submit(AppDef('job', [role]), {}))\n"
)


def launch_from_another_process(root: Path, script: str, replicas: int, prepare: Callable[[], Any]) -> str:
    """Launch an app from a process of which ``prepare``, called in it, has changed limits or rights."""
    argv = [sys.executable, "-c", _LAUNCHER, str(root), script, str(replicas)]
    return subprocess.run(argv, stdout=subprocess.PIPE, text=True, check=True, preexec_fn=prepare).stdout.strip()


class Local:
    """A scheduler in a folder of its own, and what tests do with it again and again."""

    def __init__(self, root: Path, **arguments: Any) -> None:
        self.root = root
        arguments = {"grace_seconds": 1.0, "handle_signals": False, **arguments}
        self.scheduler = LocalScheduler("session", root=root, **arguments)

    def start(self, script: str, cfg: dict[str, Any] | None = None, **fields: Any) -> str:
        return self.scheduler.submit(app(script, **fields), cfg or {})

    def run(self, app_id: str) -> Run:
        found = self.scheduler._runs.find(app_id)
        assert found is not None
        return found

    def state(self, app_id: str) -> dict[str, Any]:
        return json.loads((self.run(app_id).folder / "state.json").read_text())

    def edit_state(self, app_id: str, /, **changes: Any) -> None:
        path = self.run(app_id).folder / "state.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))

    def running(self, app_id: str) -> dict[str, Any]:
        """Wait until the state file has the pids of the replicas; return it."""

        def ready() -> dict[str, Any] | None:
            state = self.state(app_id)
            return state if state["state"] == "RUNNING" else None

        return wait_until(ready, f"the start of {app_id}")

    def ended(self, app_id: str, seconds: float = 20) -> Run:
        return wait_until(lambda: (run := self.run(app_id)).over and run, f"the end of {app_id}")

    def lines(self, app_id: str, **arguments: Any) -> list[str]:
        return list(self.scheduler.log_iter(app_id, arguments.pop("role", "r"), **arguments))

    def end_all(self) -> None:
        """Leave nothing running, whatever the test did to state files."""
        pids = []
        for app_id in self.scheduler._runs.app_ids():
            folder = self.scheduler._runs.folder(app_id)
            run = None if folder is None else read_run(app_id, folder)
            if run is None or not run.document:
                continue
            pids.append((run.document["pid"], run.document["pid_started"]))
            if not run.over and run.here:
                self.scheduler.cancel(app_id)
            for process in job_processes(run.job_id, set()) if run.job_id else ():
                send_signal(process, signal.SIGKILL)
        for pid, started in pids:
            wait_until(lambda p=pid, s=started: not is_running(p, s), f"the end of supervisor {pid}")


def alive(marker: str) -> list[int]:
    """Return the processes whose command line has ``marker``, zombies excepted."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                if marker.encode() in (entry / "cmdline").read_bytes():
                    found.append(int(entry.name))
            except OSError:
                continue
    return found
