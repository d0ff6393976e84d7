"""What the tests of local apps share: a driver of the scheduler, state files, and processes."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any
from unittest.mock import ANY

from support.waiting import wait_until

from torchx_tui.backends.local.record import FORMAT, read_run
from torchx_tui.backends.local.runs import Runs
from torchx_tui.backends.local.scheduler import LocalScheduler
from torchx_tui.base.processes import boot_id, is_running, job_processes, read_process, send_signal
from torchx_tui.specs.roles import AppDef, Role
from torchx_tui.specs.status import AppState

NOBODY = 1 << 22
"""A number that no process has."""


def role(script, *, name="r", replicas=1, **fields):
    """Return a role whose replicas run a shell script."""
    return Role(name, "", entrypoint="sh", args=["-c", script], num_replicas=replicas, **fields)


def app(script, *, name="job", replicas=1, **fields):
    """Return an app of one role."""
    return AppDef(name, [role(script, replicas=replicas, **fields)])


def python_app(program, *, name="r", replicas=1):
    """Return an app of one role whose replicas run a Python program."""
    return AppDef("job", [Role(name, "", entrypoint=sys.executable, args=["-u", "-c", program], num_replicas=replicas)])


def entry(number=0, **fields):
    """Return a replica as a state file has it: its process has ended."""
    known = {"role": "r", "id": number, "pid": NOBODY, "pid_started": "1", "exit_code": None, "started_at": 20.0}
    return {**known, "finished_at": None, "command": "sh", "cwd": None, "error_file": None, **fields}


def document(*replicas, **fields):
    """Return the content of a state file of an app that has succeeded."""
    return {
        "format": FORMAT,
        "state": "SUCCEEDED",
        "host": os.uname().nodename,
        "boot_id": boot_id(),
        "pid": NOBODY,
        "pid_started": "1",
        "job_id": "local_cwd://s/job-1",
        "name": "job",
        "user": "alice",
        "heartbeat": 50.0,
        "submitted_at": 10.0,
        "started_at": 20.0,
        "finished_at": 60.0,
        "timeline": [["SUBMITTED", 10.0], ["SUCCEEDED", 60.0]],
        "app": {"name": "job", "roles": []},
        "replicas": list(replicas),
        **fields,
    }


def started(pid):
    """Return the start time of a process as state files have it."""
    found: Any = read_process(pid)
    return found.start


_LAUNCHER = """
import sys, time
from pathlib import Path
from torchx_tui.backends.local.scheduler import LocalScheduler
from torchx_tui.specs import AppDef, Role
root, script, replicas, then = sys.argv[1:]
scheduler = LocalScheduler('session', root=Path(root), grace_seconds=1.0)
def launch():
    role = Role('r', '', entrypoint='sh', args=['-c', script], num_replicas=int(replicas))
    return scheduler.submit(AppDef('job', [role]), {})
exec(then)
"""


def launcher_arguments(root, script, *, replicas=1, then="print(launch())"):
    """Return the arguments of a program that defines ``launch()``, which launches an app, and executes ``then``."""
    return [sys.executable, "-c", _LAUNCHER, str(root), script, str(replicas), then]


def launch_from_another_process(root, script, replicas, prepare):
    """Launch an app from a process of which ``prepare``, called in it, has changed limits or rights."""
    argv = launcher_arguments(root, script, replicas=replicas)
    return subprocess.run(argv, stdout=subprocess.PIPE, text=True, check=True, preexec_fn=prepare).stdout.strip()


class Local:
    """A scheduler in a folder of its own, with verbs for tests."""

    def __init__(self, root, **arguments):
        self.root = root
        given: dict[str, Any] = {"grace_seconds": 1.0, "handle_signals": False, **arguments}
        self.scheduler = LocalScheduler("session", root=root, **given)

    @property
    def runs(self):
        """The apps, read anew."""
        return Runs(self.root)

    def start(self, made, cfg=None, **fields):
        """Launch an app, or a shell script as one."""
        return self.scheduler.submit(app(made, **fields) if isinstance(made, str) else made, cfg or {})

    def finish(self, made, cfg=None, **fields):
        """Launch an app and wait for its end."""
        return self.ended(self.start(made, cfg, **fields))

    def start_running(self, script="exec sleep 300", **fields):
        """Launch an app and wait until its replicas run."""
        app_id = self.start(script, **fields)
        self.running(app_id)
        return app_id

    def put(self, app_id, text):
        """Write a state file, as if the app had been launched; return the folder."""
        folder = self.root / "session" / app_id
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "state.json").write_bytes(text if isinstance(text, bytes) else json.dumps(text).encode())
        self.runs.records.mkdir(exist_ok=True)
        self.runs.write_record(app_id, folder)
        return folder

    def run(self, app_id):
        return self.runs.get(app_id)

    def state(self, app_id):
        return json.loads((self.run(app_id).folder / "state.json").read_text())

    def describe(self, app_id):
        described = self.scheduler.describe(app_id)
        assert described is not None
        return described

    def running(self, app_id):
        """Wait until the state file has the pids of the replicas; return it."""
        return wait_until(lambda: (state := self.state(app_id))["state"] == "RUNNING" and state, f"start of {app_id}")

    def pending(self, app_id):
        """Wait until an app waits for others."""
        wait_until(lambda: self.run(app_id).state is AppState.PENDING, f"waiting of {app_id}")

    def ended(self, app_id, seconds=20):
        return wait_until(lambda: (run := self.run(app_id)).over and run, f"the end of {app_id}")

    def end_as(self, app_id, state):
        """Wait for an app's end in a state."""
        run = self.ended(app_id)
        assert run.state is state
        return run

    def cancel(self, app_id):
        """Cancel an app and wait for its end."""
        self.scheduler.cancel(app_id)
        return self.end_as(app_id, AppState.CANCELLED)

    def kill_supervisor(self, app_id):
        """Kill the process that supervises an app, and wait for its death."""
        state = self.state(app_id)
        os.kill(state["pid"], signal.SIGKILL)
        wait_until(lambda: not is_running(state["pid"], state["pid_started"]), "the supervisor's death")

    def lines(self, app_id, **arguments):
        return list(self.scheduler.log_iter(app_id, arguments.pop("role", "r"), **arguments))

    def replica(self, app_id, number=0):
        """Return the folder of a replica's logs."""
        return self.run(app_id).replica_folder("r", number)

    def success(self, run, *replicas):
        """Return what the file SUCCESS of an ended app has: of each replica the role, the number and the exit code."""
        roles = {}
        for (name, number, code), process in zip(replicas, run.replicas, strict=True):
            here = run.replica_folder(name, number)
            files = {stream: str(here / f"{stream}.log") for stream in ("stdout", "stderr")}
            found = {"replica_id": number, "pid": process["pid"], "exitcode": code, **files}
            roles.setdefault(name, []).append({**found, "error_file": str(here / "error.json")})
        known = {"app_id": run.app_id, "log_dir": str(run.folder), "final_state": run.state.name}
        return {**known, "last_updated": ANY, "roles": roles}

    def end_all(self):
        """Leave nothing running, whatever the test did to state files."""
        pids = []
        runs = self.runs
        for app_id in runs.app_ids():
            folder = runs.folder(app_id)
            run = None if folder is None else read_run(app_id, folder)
            if run is None or not run.document:
                continue
            pids.append((run.document["pid"], run.document["pid_started"]))
            if not run.over and run.here:
                self.scheduler.cancel(app_id)
            for process in job_processes(run.job_id, set()) if run.job_id else ():
                send_signal(process, signal.SIGKILL)
        for pid, start in pids:
            wait_until(lambda p=pid, s=start: not is_running(p, s), f"the end of supervisor {pid}")


def alive(marker):
    """Return the processes whose command line has ``marker``, zombies excepted."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit() and int(folder.name) != os.getpid():
            try:
                if marker.encode() in (folder / "cmdline").read_bytes():
                    found.append(int(folder.name))
            except OSError:
                continue
    return found
