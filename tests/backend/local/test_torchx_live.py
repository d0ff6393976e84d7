"""Jobs of TorchX by their processes: replicas, folders, and whether their launcher lives."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
from backend.local.support import NOBODY, started
from support.tables import toml_table
from support.waiting import wait_until

from torchx_tui.backends.local.torchx.jobs import Seen, first_look, live_run
from torchx_tui.backends.local.torchx.live import LiveJob, app_name, live_jobs
from torchx_tui.backends.local.torchx.processes import JobProcess, JobProcesses
from torchx_tui.backends.local.torchx.record import launched_roles
from torchx_tui.backends.types import BY_TORCHX
from torchx_tui.specs.handles import make_unique
from torchx_tui.specs.roles import Role
from torchx_tui.specs.status import MISSING, AppState

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="processes are looked for in /proc")

JOB = "local_cwd://s/job-1"
TABLES = toml_table(Path(__file__).with_name("torchx.toml"))
Start = Callable[..., int]


def process(pid: int = NOBODY, *, group: int | None = None, start: str = "5", **fields: Any) -> JobProcess:
    """Return a process that leads its group."""
    known: dict[str, Any] = {
        "parent": NOBODY + 9,
        "started_at": 100.0,
        "job_id": JOB,
        "error_file": "/logs/s/job-1/r/0/error.json",
    }
    return JobProcess(pid, start, pid if group is None else group, **{**known, **fields})


def job(*processes: JobProcess) -> LiveJob:
    (found,) = live_jobs(processes or [process()])
    return found


@pytest.fixture
def start(tmp_path):
    """Return a function that starts a process in the test's folder and returns its pid."""
    children: list[subprocess.Popen[bytes]] = []

    def begin(*arguments: str, **options: Any) -> int:
        children.append(subprocess.Popen(arguments or ("sleep", "300"), cwd=tmp_path, **options))
        wait_until(Path(f"/proc/{children[-1].pid}/cmdline").read_bytes, "its command line")
        return children[-1].pid

    yield begin
    for child in children:
        child.kill()
        child.wait()


@pytest.mark.parametrize("case", TABLES["error_files"].values(), ids=list(TABLES["error_files"]))
def test_replica_by_its_error_file(case):
    job_id, error_file, folder, role, number = (
        re.sub(r"R(\d+)", lambda found: "r" * int(found[1]), value) if isinstance(value, str) else value
        for value in case
    )
    found = job(process(job_id=job_id, error_file=error_file))
    assert (found.app_id, found.job_id) == ("job-1", job_id)
    assert (str(found.folder or ""), list(found.leaders)) == (folder, [(role, number)])


def test_relative_error_file_is_in_the_working_folder(start, tmp_path):
    (tmp_path / "s" / "job-1" / "r" / "0").mkdir(parents=True)
    child = start()
    found = job(process(child, error_file="s/job-1/r/0/error.json"))
    assert (found.folder, list(found.leaders)) == (tmp_path / "s" / "job-1", [("r", 0)])
    assert job(process(child, error_file="s/job-1/r/1/error.json")).folder is None


@pytest.mark.parametrize("job_id", ["local_cwd://s/.", "local_cwd://s/..", f"local_cwd://s/{'x' * 256}", "other://s/1"])
def test_invalid_id_is_no_job(job_id):
    assert live_jobs([process(job_id=job_id)]) == []


def test_leader_of_the_group_is_the_replica():
    worker, leader, later = process(7, group=9, start="1"), process(9, start="10"), process(11, start="11")
    other = process(5, start="9", error_file="/logs/s/job-1/r/1/error.json")
    found = job(other, later, worker, leader)
    assert list(found.leaders.items()) == [(("r", 1), other), (("r", 0), leader)]
    assert [one.pid for one in found.processes] == [7, 5, 9, 11]


def test_without_folders_each_group_is_a_replica():
    leader, later = process(9, start="10", error_file=""), process(11, start="11", error_file="")
    worker = process(7, group=9, start="1", parent=9, error_file="")
    assert [one.pid for one in job(leader, worker, later).leaders.values()] == [9, 11]


def test_older_of_two_jobs_with_one_id_counts():
    older = process(7, started_at=50.0, job_id="local_cwd://t/job-1", error_file="")
    for processes in ([older, process()], [process(), older]):
        assert job(*processes).job_id == "local_cwd://t/job-1"


@pytest.mark.parametrize(("app_id", "name"), TABLES["names"].items())
def test_name_is_the_id_without_its_random_part(app_id, name):
    assert app_name(app_id) == name


@pytest.mark.parametrize(
    ("folder", "cfg"),
    [("/logs/s/job-1", {"log_dir": "/logs"}), ("/tmp/torchx_ab12/s/job-1", {}), (None, {})],
)
def test_log_dir_is_known_unless_torchx_made_it(folder, cfg):
    seen = first_look(job(process(error_file=f"{folder}/r/0/error.json" if folder else "")), Path("/state"))
    assert (seen.document["cfg"], seen.document["submitted_at"]) == (cfg, 100.0)
    assert (seen.folder, seen.state, seen.launcher) == (folder and Path(folder), Path("/state/job-1"), None)


def test_launcher_is_the_parent_python(start):
    child, pid = start(), os.getpid()
    seen = first_look(job(process(child, parent=pid)), Path("/state"))
    assert seen.launcher == (pid, started(pid))
    # A shell is none, nor is a process of the job itself.
    assert first_look(job(process(NOBODY, parent=child)), Path("/state")).launcher is None
    ours = process(pid, error_file="")
    assert first_look(job(ours, process(child, parent=pid)), Path("/state")).launcher is None


def test_processes_with_the_id_of_a_local_job_are_found(start):
    job_id, looking = f"local_cwd://s/{make_unique('job')}", JobProcesses()
    wanted = start(env={"TORCHX_JOB_ID": job_id, "TORCHELASTIC_ERROR_FILE": "/a/error.json"})
    odd = start(env={"TORCHX_JOB_ID": job_id, "TORCHELASTIC_ERROR_FILE": b"/\xff/error.json"})
    others = [b"local_cwd://s/\xff", "local_cwd://s/a\nb", "local_cwd://s/a\x1b[31mb", f"x{job_id}"]
    ignored = {start(env={"TORCHX_JOB_ID": other}) for other in others} | {start(env={"OTHER": job_id}), start()}

    def found() -> dict[int, JobProcess]:
        return {one.pid: one for one in looking.look()}

    for _ in range(2):
        both = wait_until(lambda: {wanted, odd} <= set(seen := found()) and seen, "both")
        files = {pid: (both[pid].job_id, both[pid].error_file, both[pid].parent) for pid in (wanted, odd)}
        assert files == {wanted: (job_id, "/a/error.json", os.getpid()), odd: (job_id, "", os.getpid())}
        assert abs(both[wanted].started_at - psutil.Process(wanted).create_time()) < 5
        assert not ignored & set(both)
        assert all(one.job_id.startswith("local_cwd://") for one in both.values())
    psutil.Process(wanted).kill()
    wait_until(lambda: wanted not in found(), "its end")


@pytest.mark.parametrize("launcher", ["lives", "has ended", "is not known"])
def test_job_without_its_launcher_is_an_orphan(launcher):
    pid = os.getpid()
    pids = {"lives": (pid, started(pid)), "has ended": (pid, "1"), "is not known": None}
    found = job()
    seen = first_look(found, Path("/state"))
    run = live_run(Seen(seen.document, seen.folder, seen.state, pids[launcher], gone_since=time.time()), found)
    assert (run.state, run.over, run.supervised) == (AppState.RUNNING, False, launcher == "lives")
    assert run.notes == ([BY_TORCHX] if run.supervised else ["orphaned", BY_TORCHX])
    lost = "the torchx process that ran it has ended: how its replicas end will not be known"
    assert run.reason == ("" if run.supervised else lost)


class Watched:
    """A job of which processes come and go.

    Args:
        folder: the folder of its logs.
        age: seconds since its start.
    """

    def __init__(self, folder: Path, age: float) -> None:
        self.folder = folder
        self.started_at = time.time() - age
        self.seen: Seen | None = None

    def replica(self, role: str, number: int, pid: int, start: str) -> JobProcess:
        error_file = f"{self.folder}/{role}/{number}/error.json"
        return process(pid, start=start, started_at=self.started_at, error_file=error_file)

    def make(self, *places: str) -> None:
        for place in places:
            (self.folder / place).mkdir(parents=True)
            (self.folder / place / "stdout.log").touch()

    def replicas(self, *processes: JobProcess) -> list[tuple[str, int, int | None, bool]]:
        """Return the replicas when the job has these processes: role, number, pid, and whether it is gone."""
        self.seen = self.seen or first_look(job(*processes), Path("/state"))
        run = live_run(self.seen, job(*processes))
        assert (self.seen.gone_since, run.document is self.seen.document) == (None, True)
        return [(one["role"], one["id"], one["pid"], one["gone"]) for one in run.replicas]


@pytest.mark.parametrize("young", [True, False])
def test_replicas_by_processes_and_folders(tmp_path, young):
    watched = Watched(tmp_path / "s" / "job-1", 0 if young else 1000)
    watched.make("r/0", "r/1")
    first, second = watched.replica("r", 0, NOBODY, "5"), watched.replica("r", 1, NOBODY + 1, "7")
    assert watched.replicas(first) == [("r", 0, NOBODY, False), ("r", 1, None, True)]
    # The folders of a young job are looked for again.
    watched.make("a/0")
    late = [("a", 0, None, True)] if young else []
    assert watched.replicas(first) == [("r", 0, NOBODY, False), *late, ("r", 1, None, True)]
    assert watched.replicas(first, second) == [("r", 0, NOBODY, False), *late, ("r", 1, NOBODY + 1, False)]
    # A new one comes in the order of the launches.
    third = watched.replica("r", 2, NOBODY + 3, "4")
    assert [one[1] for one in watched.replicas(first, second, third) if one[0] == "r"] == [2, 0, 1]
    # One that has ended keeps its number, until it is started again.
    assert ("r", 0, NOBODY, True) in watched.replicas(second)
    again = watched.replicas(watched.replica("r", 0, NOBODY + 2, "6"), second)
    assert ("r", 0, NOBODY + 2, False) in again
    assert {one[0] for one in again} == ({"a", "r"} if young else {"r"})


def test_role_is_that_of_its_latest_replicas(start):
    ended = process(started_at=1.0)
    seen = first_look(job(ended), Path("/state"))
    assert [role.entrypoint for role in live_run(seen, job(ended)).app.roles] == [MISSING]
    later = process(start(), started_at=1.0, error_file="/logs/s/job-1/r/1/error.json")
    assert [role.entrypoint for role in live_run(seen, job(later)).app.roles] == ["sleep"]


def test_variables_of_a_role_are_not_its_launchers(start):
    """A launcher starts a replica with variables of the role, of TorchX, and of shells."""
    shells = dict.fromkeys(("PWD", "OLDPWD", "_", "LOGLEVEL", "SHLVL", "PYTHONUNBUFFERED"), "9")
    added = {"LR": "0.1", "EMPTY": "", "TORCHX_X": "1", "PATH": "/usr/bin:/bin:/x", **shells}
    program = f"import os, subprocess; subprocess.run(['sleep', '300'], env={{**os.environ, **{added!r}}})"
    launcher = psutil.Process(start(sys.executable, "-c", program, env={"LC_ALL": "C.UTF-8"}))
    wait_until(lambda: [child.cmdline() for child in launcher.children()] == [["sleep", "300"]], "the replica")
    (child,) = launcher.children()
    found = job(process(child.pid, parent=launcher.pid))
    role = Role("r", "", entrypoint="sleep", args=["300"], num_replicas=1)
    try:
        role.env = {"LR": "0.1", "EMPTY": ""}
        assert launched_roles(found, []) == {"r": role}
        launcher.kill()
        launcher.wait()
        role.env = {}
        assert launched_roles(found, []) == {"r": role}
    finally:
        child.kill()
