"""What a launch makes, what its replicas get, and what happens if a disk or a program fails."""

import json
import os
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest
from backend.local.support import app, role
from support.waiting import wait_until

from torchx_tui.backends.local import record
from torchx_tui.backends.local.image_provider import LocalDirectoryImageProvider
from torchx_tui.specs.errors import SchedulerError
from torchx_tui.specs.resources import Resource
from torchx_tui.specs.roles import AppDef, Role
from torchx_tui.specs.serialize import appdef_to_dict
from torchx_tui.specs.status import AppState


def environment(local, app_id, names):
    """Return variables that an app has printed."""
    local.ended(app_id)
    lines = local.lines(app_id, streams="stdout")
    found = dict(line.rstrip("\n").split("=", 1) for line in lines if "=" in line)
    return {name: found[name] for name in names}


def test_environment_of_a_replica(local, monkeypatch):
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)
    app_id = local.start("env", env={"MINE": "${app_id}/${replica_id}", "RANK0": "${rank0_env}"})
    expected = {
        "TORCHX_JOB_ID": f"local_cwd://session/{app_id}",
        "MINE": f"{app_id}/0",
        "RANK0": "TORCHX_RANK0_HOST",
        "TORCHX_RANK0_HOST": "localhost",
        "TORCHELASTIC_ERROR_FILE": str(local.replica(app_id) / "error.json"),
        "PET_LOG_DIR": str(local.run(app_id).folder / "torchelastic/r"),
        "PYTHONUNBUFFERED": "x",
        "HOME": os.environ["HOME"],
    }
    assert environment(local, app_id, expected) == expected


def test_role_overrides_variables(local, monkeypatch):
    monkeypatch.setenv("INHERITED", "outer")
    mine = {"TORCHELASTIC_ERROR_FILE": "/mine", "PYTHONUNBUFFERED": "0", "INHERITED": "role"}
    app_id = local.start("env", env={**mine, "TORCHX_JOB_ID": "local_cwd://runner/${app_id}"})
    expected = {**mine, "TORCHX_JOB_ID": f"local_cwd://runner/{app_id}"}
    assert environment(local, app_id, expected) == expected


@pytest.mark.parametrize("prepend", [False, True])
def test_order_of_path(make_local, monkeypatch, tmp_path, prepend):
    # Colons at the ends would be empty folders, which are the working one.
    monkeypatch.setenv("PATH", ":/usr/bin:/bin:")
    monkeypatch.chdir(tmp_path)
    local = make_local(extra_paths=["/extra/1", "/extra/2"])
    app_id = local.start("env", {"prepend_cwd": prepend}, env={"PATH": "/of/role:"})
    mine = ["/extra/1", "/extra/2", "/of/role"]
    expected = [str(tmp_path), *mine] if prepend else [*mine, str(tmp_path)]
    # The folder of the interpreter comes last, so that torchrun is found and nothing is hidden.
    expected += ["/usr/bin", "/bin", str(Path(sys.executable).parent)]
    assert environment(local, app_id, ["PATH"])["PATH"].split(":") == expected


def test_replica_is_a_session_without_a_terminal(local):
    app_id = local.finish("cat; cut -d' ' -f6 /proc/$$$$/stat; echo $$$$; readlink /proc/$$$$/fd/1").app_id
    session, own, log = (line.strip() for line in local.lines(app_id))
    assert (session, log) == (own, str(local.replica(app_id) / "stdout.log"))


def test_request_is_in_no_argument_list(local):
    state = local.state(local.start_running("sleep 3600", env={"API_TOKEN": "hunter2"}))
    arguments = Path(f"/proc/{state['pid']}/cmdline").read_text()
    assert ("hunter2" in arguments, "sleep" in arguments) == (False, False)


@pytest.mark.parametrize("chosen", [False, True], ids=["state_folder", "log_dir"])
def test_files_are_private(local, tmp_path, chosen):
    before = os.umask(0)
    try:
        run = local.finish("umask", {"log_dir": str(tmp_path / "logs")} if chosen else {})
    finally:
        os.umask(before)
    # Files of replicas have the usual modes.
    assert int(local.lines(run.app_id)[0], 8) == 0
    root = tmp_path / "logs" if chosen else local.root
    paths = {root, *root.rglob("*")}
    assert run.folder / "r/0/combined.index" in paths
    assert {path: oct(path.stat().st_mode) for path in paths if path.stat().st_mode & 0o077} == {}


def test_layout_and_success_file(local, tmp_path):
    two = AppDef("two", [role("exit 0", name="a", replicas=2), role("exit 4", name="b")])
    before = time.time()
    run = local.finish(two, {"log_dir": str(tmp_path / "logs")})
    assert run.folder == tmp_path / "logs/session" / run.app_id
    here = run.folder / "a/1"
    assert {path.name for path in here.iterdir()} == {"stdout.log", "stderr.log", "combined.log", "combined.index"}
    success = json.loads((run.folder / "SUCCESS").read_text())
    assert success == local.success(run, ("a", 0, 0), ("a", 1, 0), ("b", 0, 4))
    assert list(success) == ["app_id", "log_dir", "final_state", "last_updated", "roles"]
    assert before <= success["last_updated"] <= time.time()


def test_app_def_is_kept(local):
    made = app("exit 0", replicas=3, env={"TOKEN": "secret"}, metadata={"a": {"b": [1]}}, port_map={"x": 1})
    made.metadata["team"] = "us"
    app_id = local.finish(made).app_id
    described = local.describe(app_id)
    assert appdef_to_dict(AppDef(described.name, described.roles, described.metadata)) == appdef_to_dict(made)
    assert described.ui_url == Path(described.log_dir).as_uri()
    assert "secret" not in local.scheduler.describe_native(app_id)


@pytest.mark.parametrize(
    ("entrypoint", "text"),
    [
        ("no-such-program-anywhere", "no such command: no-such-program-anywhere"),
        ("./plain.txt", "cannot start ./plain.txt: it is not an executable file"),
        ("./bad-line", "cannot start ./bad-line: the program that its first line names is missing"),
        ("./no-line", "cannot start ./no-line: it is not a program"),
    ],
)
def test_program_that_cannot_start(local, tmp_path, monkeypatch, entrypoint, text):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "plain.txt").write_text("text")
    for name, content in (("bad-line", "#!/no/such/interpreter\n"), ("no-line", "\x00\x01\x02")):
        (tmp_path / name).write_text(content)
        (tmp_path / name).chmod(0o755)
    run = local.finish(AppDef("job", [role("exec sleep 300"), Role("second", "", entrypoint=entrypoint)]))
    described = local.describe(run.app_id)
    assert described.msg.startswith(text)
    # The one that had started before was ended.
    assert (described.state, run.replicas[0]["exit_code"]) == (AppState.FAILED, -15)
    assert described.roles_statuses[1].replicas[0].state is AppState.FAILED
    assert local.lines(run.app_id, role="second") == []


def test_working_folder_that_is_gone(local, tmp_path, monkeypatch):
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    info = local.scheduler.submit_dryrun(app("exit 0"), {})
    monkeypatch.chdir(tmp_path)
    (tmp_path / "gone").rmdir()
    app_id = local.scheduler.schedule(info)
    local.ended(app_id)
    assert local.describe(app_id).msg.startswith(f"its working folder cannot be used: {tmp_path / 'gone'}")


def test_request_gets_the_present_environment_and_runs_once(local, monkeypatch):
    info = local.scheduler.submit_dryrun(app("echo $SET_BY_THE_COMPONENT"), {})
    # A component that runs while the scheduler is there may change it.
    monkeypatch.setenv("SET_BY_THE_COMPONENT", "yes")
    app_id = local.scheduler.schedule(info)
    local.ended(app_id)
    assert local.lines(app_id) == ["yes\n"]
    with pytest.raises(SchedulerError, match="exists"):
        local.scheduler.schedule(info)
    assert local.run(app_id).state is AppState.SUCCEEDED


def test_folder_as_image(make_local, tmp_path):
    local = make_local(image_provider_class=LocalDirectoryImageProvider)
    (tmp_path / "image").mkdir()
    made = app("pwd; echo ${img_root}")
    made.roles[0].image = str(tmp_path / "image")
    assert local.lines(local.finish(made).app_id) == [f"{tmp_path}/image\n"] * 2
    made.roles[0].image = "/no/such"
    with pytest.raises(ValueError, match="does not exist or is not a directory"):
        local.start(made)


@pytest.fixture
def mount(tmp_path):
    """Return a function that mounts a tiny disk, where that is allowed."""
    places = []

    def mounted(options):
        place = tmp_path / f"mount{len(places)}"
        place.mkdir()
        made = subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", place], capture_output=True, text=True)
        if made.returncode:
            pytest.skip(f"mounting is not allowed here: {made.stderr.strip()}")
        places.append(place)
        return place

    yield mounted
    for place in places:
        subprocess.run(["umount", "-l", str(place)], check=True)


def fill(folder):
    """Fill the disk of a folder with a file."""
    with (folder / "filler").open("wb", buffering=0) as filler, suppress(OSError):
        while True:
            filler.write(b"x" * 4096)
    return folder / "filler"


@pytest.mark.parametrize("fault", ["Read-only file system: .*log_dir", "No space left on device"])
def test_log_folder_that_cannot_be_written(local, mount, fault):
    place = mount("ro,size=64k" if fault.startswith("Read") else "size=64k")
    if fault.startswith("No"):
        fill(place)
    with pytest.raises(SchedulerError, match=f"was not launched: {fault}"):
        local.start("exit 0", {"log_dir": str(place)})
    assert (local.scheduler.list(), local.runs.app_ids()) == ([], [])
    assert {path.name for path in place.iterdir()} <= {"filler", "session"}
    assert not list(local.root.glob("turns/*"))


def test_full_disk_delays_the_end_but_loses_nothing(local, mount):
    place = mount("size=256k")
    script = f"echo first; while [ ! -e {local.root}/go ]; do sleep 0.05; done; echo last"
    app_id = local.start(script, {"log_dir": str(place)})
    wait_until(lambda: local.lines(app_id) == ["first\n"], "the first line")
    filler = fill(place)
    (local.root / "go").touch()
    pid = local.state(app_id)["replicas"][0]["pid"]
    wait_until(lambda: not Path(f"/proc/{pid}").exists(), "the replica's end")
    assert not local.run(app_id).over
    filler.unlink()
    run = local.ended(app_id)
    assert run.replicas[0]["exit_code"] is not None
    assert json.loads((run.folder / "SUCCESS").read_text())["final_state"] == run.state.name


def test_full_disk_does_not_keep_a_cancelled_app_running(make_local, mount, monkeypatch):
    monkeypatch.setattr(record, "STUCK_SECONDS", 1.0)
    local = make_local(mount("size=256k") / "state")
    app_id = local.start_running()
    filler = fill(local.root)
    assert "is the disk full?" in local.cancel(app_id).reason
    assert [row.state for row in local.scheduler.list()] == [AppState.CANCELLED]
    # The supervisor writes later what it knows.
    filler.unlink()
    wait_until(lambda: not local.run(app_id).reason, "the state that the supervisor writes")
    assert local.run(app_id).state is AppState.CANCELLED
    assert local.state(app_id)["replicas"][0]["exit_code"] is not None


def test_gpus_are_assigned(local, tmp_path, monkeypatch):
    (tmp_path / "nvidia-smi").write_text("#!/bin/sh\nprintf 'GPU 0: A\\nGPU 1: A\\n'\n")
    (tmp_path / "nvidia-smi").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")

    def devices(gpu, **cfg):
        env = {"CUDA_VISIBLE_DEVICES": "mine"}
        made = app("echo =$CUDA_VISIBLE_DEVICES", resource=Resource(1, gpu, 1), env=env)
        return local.lines(local.finish(made, cfg).app_id)[0].strip()

    assert devices(2, auto_set_cuda_visible_devices=True) == "=0,1"
    # Nobody gets any of too few.
    assert devices(3, auto_set_cuda_visible_devices=True) == devices(2) == "=mine"
