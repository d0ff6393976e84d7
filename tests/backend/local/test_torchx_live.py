"""What the processes of TorchX's local jobs tell: their replicas, their folder, and whether their launcher lives."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from support.waiting import wait_until

from torchx_tui.backends.local.torchx.jobs import Seen, _is_ours, first_look, live_run
from torchx_tui.backends.local.torchx.live import LiveJob, app_name, live_jobs
from torchx_tui.backends.local.torchx.processes import JobProcess, JobProcesses
from torchx_tui.backends.types import BY_TORCHX
from torchx_tui.specs import MISSING, AppState, make_unique
from torchx_tui.specs.processes import read_process

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="processes are looked for in /proc")

NOBODY = 1 << 22  # no process has this number
JOB = "local_cwd://s/job-1"


def process(pid: int = NOBODY, *, group: int | None = None, start: str = "5", **fields: Any) -> JobProcess:
    """Return a process that leads its group."""
    known: dict[str, Any] = {
        "parent": NOBODY + 9,
        "started_at": 100.0,
        "job_id": JOB,
        "error_file": "/logs/s/job-1/r/0/error.json",
        **fields,
    }
    return JobProcess(pid, start, pid if group is None else group, **known)


def job(*processes: JobProcess) -> LiveJob:
    (found,) = live_jobs(processes or [process()])
    return found


@pytest.fixture
def child(tmp_path: Path) -> Iterator[int]:
    """Return the pid of a process in the test's folder."""
    started = subprocess.Popen(["sleep", "300"], cwd=tmp_path)
    try:
        # It is told some time after the program was started.
        wait_until(Path(f"/proc/{started.pid}/cmdline").read_bytes, "its command line")
        yield started.pid
    finally:
        started.kill()
        started.wait()


@pytest.mark.parametrize(
    ("job_id", "error_file", "folder", "place"),
    [
        (JOB, "/logs/s/job-1/r/0/error.json", "/logs/s/job-1", ("r", 0)),
        (JOB, "/s/job-1/r/0/error.json", "/s/job-1", ("r", 0)),
        (JOB, "/logs/s/job-1/r/999999/error.json", "/logs/s/job-1", ("r", 999_999)),
        (JOB, "/logs/s/job-1/r/007/error.json", "/logs/s/job-1", ("r", 7)),
        ("local_cwd://a/b/job-1", "/logs/a/b/job-1/r/0/error.json", "/logs/a/b/job-1", ("r", 0)),
        ("local_cwd:///job-1", "/logs/job-1/r/0/error.json", "/logs/job-1", ("r", 0)),
        (JOB, "/logs/s/job-1/" + "r" * 255 + "/0/error.json", "/logs/s/job-1", ("r" * 255, 0)),
        # Not TorchX's: the replica is known by its processes.
        (JOB, "/logs/s/job-1/r/1000000/error.json", None, ("job-1", 0)),
        (JOB, "/logs/s/job-1/r/x/error.json", None, ("job-1", 0)),
        (JOB, "/logs/s/job-1/../0/error.json", None, ("job-1", 0)),
        (JOB, "/logs/s/job-1/" + "r" * 256 + "/0/error.json", None, ("job-1", 0)),
        (JOB, "/logs/s/job-1/r/0/other.json", None, ("job-1", 0)),
        (JOB, "/logs/t/job-1/r/0/error.json", None, ("job-1", 0)),
        (JOB, "job-1/r/0/error.json", None, ("job-1", 0)),
        (JOB, "s/job-1/r/0/error.json", None, ("job-1", 0)),
        (JOB, "", None, ("job-1", 0)),
    ],
)
def test_a_replica_by_its_error_file(job_id: str, error_file: str, folder: str | None, place: tuple[str, int]) -> None:
    found = job(process(job_id=job_id, error_file=error_file))
    assert (found.app_id, found.job_id) == ("job-1", job_id)
    assert (found.folder, list(found.leaders)) == (folder and Path(folder), [place])


def test_a_relative_error_file_is_in_the_folder_of_its_process(child: int, tmp_path: Path) -> None:
    (tmp_path / "s" / "job-1" / "r" / "0").mkdir(parents=True)
    found = job(process(child, error_file="s/job-1/r/0/error.json"))
    assert (found.folder, list(found.leaders)) == (tmp_path / "s" / "job-1", [("r", 0)])
    assert job(process(child, error_file="s/job-1/r/1/error.json")).folder is None


@pytest.mark.parametrize("app_id", [".", "..", "x" * 256])
def test_what_is_no_id_is_no_job(app_id: str) -> None:
    assert live_jobs([process(job_id=f"local_cwd://s/{app_id}")]) == []
    assert live_jobs([process(job_id=f"other://s/{app_id}1")]) == []


def test_who_leads_the_group_is_the_replica() -> None:
    worker, leader, later = process(7, group=9, start="1"), process(9, start="10"), process(11, start="11")
    other = process(5, start="9", error_file="/logs/s/job-1/r/1/error.json")
    found = job(other, later, worker, leader)
    assert list(found.leaders.items()) == [(("r", 1), other), (("r", 0), leader)]
    assert [one.pid for one in found.processes] == [7, 5, 9, 11]
    # Without folders each group without a parent in the job is one.
    parted = [one._replace(error_file="") for one in (leader, worker._replace(parent=9), later)]
    assert [one.pid for one in job(*parted).leaders.values()] == [9, 11]


def test_of_two_jobs_of_one_id_the_older_is_meant() -> None:
    older = process(7, started_at=50.0, job_id="local_cwd://t/job-1", error_file="")
    for processes in ([older, process()], [process(), older]):
        assert job(*processes).job_id == "local_cwd://t/job-1"


@pytest.mark.parametrize(
    ("app_id", "name"),
    [
        ("train-xk3v9q0w7zb2d", "train"),
        ("a-b-xk3v9q0w", "a-b"),
        ("train-xk3v9q0", "train-xk3v9q0"),
        ("train-2024", "train-2024"),
        ("-xk3v9q0w7zb2d", "-xk3v9q0w7zb2d"),
        ("train", "train"),
    ],
)
def test_the_name_of_an_app_is_its_id_without_the_random_part(app_id: str, name: str) -> None:
    assert app_name(app_id) == name


@pytest.mark.parametrize(
    ("folder", "cfg"),
    [("/logs/s/job-1", {"log_dir": "/logs"}), ("/tmp/torchx_ab12/s/job-1", {}), (None, {})],
)
def test_the_log_dir_of_a_job_is_known_unless_torchx_made_it(folder: str | None, cfg: dict[str, str]) -> None:
    error_file = f"{folder}/r/0/error.json" if folder else ""
    seen = first_look(job(process(error_file=error_file)), Path("/state"))
    assert seen.document["cfg"] == cfg
    assert (seen.folder, seen.state) == (folder and Path(folder), Path("/state/job-1"))
    assert (seen.document["submitted_at"], seen.launcher) == (100.0, None)


def test_the_python_that_launched_a_job_is_its_launcher(child: int) -> None:
    mine = read_process(os.getpid())
    assert mine is not None
    seen = first_look(job(process(child, parent=os.getpid())), Path("/state"))
    assert seen.launcher == (os.getpid(), mine.start)
    # A shell is none, nor is a process of the job itself.
    assert first_look(job(process(NOBODY, parent=child)), Path("/state")).launcher is None
    ours = process(os.getpid(), error_file="")
    assert first_look(job(ours, process(child, parent=os.getpid())), Path("/state")).launcher is None


def test_of_all_processes_those_with_the_id_of_a_local_job_are_found(tmp_path: Path) -> None:
    job_id, looking = f"local_cwd://s/{make_unique('job')}", JobProcesses()
    started: list[subprocess.Popen[bytes]] = []

    def start(**env: str | bytes) -> int:
        started.append(subprocess.Popen(["sleep", "300"], env=env))
        return started[-1].pid

    try:
        wanted = start(TORCHX_JOB_ID=job_id, TORCHELASTIC_ERROR_FILE="/a/error.json")
        odd = start(TORCHX_JOB_ID=job_id, TORCHELASTIC_ERROR_FILE=b"/\xff/error.json")
        others = [start(TORCHX_JOB_ID=f"x{job_id}"), start(OTHER=f"TORCHX_JOB_ID={job_id}"), start()]
        for _ in range(2):
            wait_until(lambda: {wanted, odd} <= {one.pid for one in looking.look()}, "both")
            found = {one.pid: one for one in looking.look()}
            assert (found[wanted].job_id, found[wanted].error_file) == (job_id, "/a/error.json")
            assert (found[odd].job_id, found[odd].error_file) == (job_id, "")
            assert found[wanted].parent == os.getpid()
            assert abs(found[wanted].started_at - psutil.Process(wanted).create_time()) < 5
            assert not set(others) & set(found)
            assert all(one.job_id.startswith("local_cwd://") for one in found.values())
        started[0].kill()
        started[0].wait()
        assert wanted not in {one.pid for one in looking.look()}
    finally:
        for process in started:
            process.kill()
            process.wait()


@pytest.mark.parametrize("launcher", ["lives", "has ended", "is not known"])
def test_a_job_whose_launcher_does_not_live_is_an_orphan(launcher: str) -> None:
    mine = read_process(os.getpid())
    assert mine is not None
    pids = {"lives": (mine.pid, mine.start), "has ended": (mine.pid, "1"), "is not known": None}
    found = job()
    seen = first_look(found, Path("/state"))
    run = live_run(Seen(seen.document, seen.folder, seen.state, pids[launcher], gone_since=time.time()), found)
    assert (run.state, run.over, run.supervised) == (AppState.RUNNING, False, launcher == "lives")
    assert run.notes == ([BY_TORCHX] if run.supervised else ["orphaned", BY_TORCHX])
    assert bool(run.reason) is not run.supervised
    assert [(one["role"], one["id"], one["pid"], one["gone"]) for one in run.replicas] == [("r", 0, NOBODY, False)]


def states(seen: Seen, *processes: JobProcess) -> list[tuple[str, int, int | None, bool]]:
    """Look at a job that has these processes now; return its replicas, whether they are gone, in order."""
    run = live_run(seen, job(*processes))
    assert seen.gone_since is None
    # What was told before does not change.
    assert run.document is seen.document
    return [(one["role"], one["id"], one["pid"], one["gone"]) for one in run.replicas]


@pytest.mark.parametrize("young", [True, False])
def test_replicas_are_found_by_their_processes_and_by_their_folders(tmp_path: Path, young: bool) -> None:
    folder = tmp_path / "s" / "job-1"
    started_at = time.time() - (0 if young else 1000)

    def replica(role: str, number: int, pid: int, start: str) -> JobProcess:
        return process(pid, start=start, started_at=started_at, error_file=f"{folder}/{role}/{number}/error.json")

    def make(*places: str) -> None:
        for place in places:
            (folder / place).mkdir(parents=True)
            (folder / place / "stdout.log").touch()

    make("r/0", "r/1")
    first = replica("r", 0, NOBODY, "5")
    seen = first_look(job(first), Path("/state"))
    assert states(seen, first) == [("r", 0, NOBODY, False), ("r", 1, None, True)]
    assert [(role.name, role.num_replicas) for role in live_run(seen, job(first)).app.roles] == [("r", 2)]
    # The folders of a young job are looked for again.
    make("a/0")
    late = [("a", 0, None, True)] if young else []
    assert states(seen, first) == [("r", 0, NOBODY, False), *late, ("r", 1, None, True)]
    second = replica("r", 1, NOBODY + 1, "7")
    assert states(seen, first, second) == [("r", 0, NOBODY, False), *late, ("r", 1, NOBODY + 1, False)]
    # One that nothing told of comes in the order of the launches.
    third = replica("r", 2, NOBODY + 3, "4")
    assert [one[1] for one in states(seen, first, second, third) if one[0] == "r"] == [2, 0, 1]
    # One that has ended keeps its number, until it is started again.
    assert ("r", 0, NOBODY, True) in states(seen, second)
    again = replica("r", 0, NOBODY + 2, "6")
    assert ("r", 0, NOBODY + 2, False) in states(seen, again, second)
    assert len(states(seen, again, second)) == 3 + young
    names = [role.name for role in live_run(seen, job(again, second)).app.roles]
    assert sorted(names) == (["a", "r"] if young else ["r"])


def test_a_role_is_what_the_latest_of_its_replicas_tell(child: int) -> None:
    ended = process(started_at=1.0)
    seen = first_look(job(ended), Path("/state"))
    assert [role.entrypoint for role in live_run(seen, job(ended)).app.roles] == [MISSING]
    later = process(child, started_at=1.0, error_file="/logs/s/job-1/r/1/error.json")
    assert [role.entrypoint for role in live_run(seen, job(later)).app.roles] == ["sleep"]


def test_a_job_whose_launcher_cannot_be_looked_at_is_not_ours() -> None:
    assert not _is_ours(job(process(error_file="r/0/error.json")))
