"""What a launch makes, what its replicas are given, and what it refuses."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import yaml
from backend.local.support import Local, app, role
from support.waiting import wait_until

from torchx_tui.backends.local import record
from torchx_tui.backends.local.image_provider import LocalDirectoryImageProvider
from torchx_tui.specs import AppDef, AppDefError, AppState, Resource, Role, SchedulerError, appdef_to_dict


def environment(local: Local, app_id: str, role_name: str = "r", k: int = 0) -> dict[str, str]:
    local.ended(app_id)
    lines = local.lines(app_id, role=role_name, k=k, streams="stdout")
    return dict(line.rstrip("\n").split("=", 1) for line in lines if "=" in line)


def test_environment_of_a_replica(local: Local) -> None:
    app_id = local.start("env", env={"MINE": "${app_id}/${replica_id}", "RANK0": "${rank0_env}"})
    env = environment(local, app_id)
    folder = local.run(app_id).folder
    assert env["TORCHX_JOB_ID"] == f"local_cwd://session/{app_id}"
    assert env["MINE"] == f"{app_id}/0"
    assert env["RANK0"] == "TORCHX_RANK0_HOST"
    assert env["TORCHX_RANK0_HOST"] == "localhost"
    assert env["TORCHELASTIC_ERROR_FILE"] == str(folder / "r" / "0" / "error.json")
    assert env["PET_LOG_DIR"] == str(folder / "torchelastic" / "r")
    assert env["PYTHONUNBUFFERED"]
    assert env["HOME"] == os.environ["HOME"]


def test_what_the_role_sets_stays(local: Local, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INHERITED", "outer")
    mine = {
        "TORCHX_JOB_ID": "local_cwd://runner/${app_id}",
        "TORCHELASTIC_ERROR_FILE": "/mine",
        "PYTHONUNBUFFERED": "0",
        "INHERITED": "role",
    }
    app_id = local.start("env", env=mine)
    env = environment(local, app_id)
    assert {name: env[name] for name in mine} == {**mine, "TORCHX_JOB_ID": f"local_cwd://runner/{app_id}"}


@pytest.mark.parametrize("prepend", [False, True])
def test_order_of_path(make_local, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, prepend: bool) -> None:
    # Colons at the ends would be empty folders, which are the working one.
    monkeypatch.setenv("PATH", ":/usr/bin:/bin:")
    monkeypatch.chdir(tmp_path)
    local = make_local(extra_paths=["/extra/1", "/extra/2"])
    app_id = local.start("env", {"prepend_cwd": prepend}, env={"PATH": "/of/role:"})
    mine = ["/extra/1", "/extra/2", "/of/role"]
    expected = [str(tmp_path), *mine] if prepend else [*mine, str(tmp_path)]
    # The folder of the interpreter comes last, so that torchrun is found and nothing is hidden.
    expected += ["/usr/bin", "/bin", str(Path(sys.executable).parent)]
    assert environment(local, app_id)["PATH"].split(":") == expected


def test_a_replica_is_a_session_without_a_terminal(local: Local) -> None:
    app_id = local.start("cat; cut -d' ' -f6 /proc/$$$$/stat; echo $$$$; readlink /proc/$$$$/fd/1")
    local.ended(app_id)
    session, own, log = (line.strip() for line in local.lines(app_id))
    assert session == own
    assert log == str(local.run(app_id).folder / "r" / "0" / "stdout.log")


def test_nothing_of_the_request_is_in_an_argument_list(local: Local) -> None:
    app_id = local.start("sleep 3600", env={"API_TOKEN": "hunter2"})
    state = local.running(app_id)
    assert "hunter2" not in Path(f"/proc/{state['pid']}/cmdline").read_text()
    assert "sleep" not in Path(f"/proc/{state['pid']}/cmdline").read_text()


def test_files_are_for_this_user_alone(local: Local) -> None:
    app_id = local.start("echo x; umask")
    run = local.ended(app_id)
    # What replicas create is their own affair.
    assert local.lines(app_id)[1].strip().lstrip("0") == f"{_umask():o}"
    for path in (local.root, *local.root.rglob("*")):
        assert path.stat().st_mode & 0o077 == 0, path
    assert run.document["host"] == os.uname().nodename


def test_files_below_log_dir_are_for_this_user_alone(local: Local, tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        folder = local.ended(local.start("echo x", {"log_dir": str(tmp_path / "logs")})).folder
    finally:
        os.umask(before)
    for path in (tmp_path / "logs", *(tmp_path / "logs").rglob("*")):
        assert path.stat().st_mode & 0o077 == 0, path
    assert (folder / "r" / "0" / "combined.index").exists()


def _umask() -> int:
    value = os.umask(0)
    os.umask(value)
    return value


def test_layout_and_success_file(local: Local, tmp_path: Path) -> None:
    two = AppDef("two", [role("exit 0", name="a", replicas=2), role("exit 4", name="b")])
    before = time.time()
    app_id = local.scheduler.submit(two, {"log_dir": str(tmp_path / "logs")})
    local.ended(app_id)
    folder = tmp_path / "logs" / "session" / app_id
    assert {path.name for path in (folder / "a" / "1").iterdir()} == {
        "stdout.log",
        "stderr.log",
        "combined.log",
        "combined.index",
    }
    success = json.loads((folder / "SUCCESS").read_text())
    assert list(success) == ["app_id", "log_dir", "final_state", "last_updated", "roles"]
    assert (success["app_id"], success["log_dir"], success["final_state"]) == (app_id, str(folder), "FAILED")
    assert before <= success["last_updated"] <= time.time()
    assert [entry["exitcode"] for entry in success["roles"]["a"] + success["roles"]["b"]] == [0, 0, 4]
    pid = local.state(app_id)["replicas"][1]["pid"]
    here = folder / "a" / "1"
    assert success["roles"]["a"][1] == {
        "replica_id": 1,
        "pid": pid,
        "exitcode": 0,
        "stdout": str(here / "stdout.log"),
        "stderr": str(here / "stderr.log"),
        "error_file": str(here / "error.json"),
    }


def test_success_file_of_a_cancelled_app_tells_the_true_state(local: Local) -> None:
    app_id = local.start("sleep 3600")
    local.running(app_id)
    local.scheduler.cancel(app_id)
    run = local.ended(app_id)
    assert json.loads((run.folder / "SUCCESS").read_text())["final_state"] == "CANCELLED"


def test_the_whole_app_comes_back(local: Local) -> None:
    made = app("exit 0", replicas=3, env={"TOKEN": "secret"}, metadata={"a": {"b": [1]}}, port_map={"x": 1})
    made.metadata["team"] = "us"
    app_id = local.scheduler.submit(made, {})
    local.ended(app_id)
    described = local.scheduler.describe(app_id)
    assert described is not None
    again = AppDef(described.name, described.roles, described.metadata)
    assert appdef_to_dict(again) == appdef_to_dict(made)
    assert described.ui_url == Path(described.log_dir).as_uri()
    assert "secret" not in local.scheduler.describe_native(app_id)


def test_dry_run_text(local: Local) -> None:
    text = str(
        local.scheduler.submit_dryrun(app("echo 'a b'", replicas=2, env={"HF_TOKEN": "hunter2", "LR": "0.1"}), {})
    )
    assert "hunter2" not in text
    assert "HF_TOKEN: " in text
    (first, second) = yaml.safe_load(text)["roles"]["r"]
    assert first["env"]["LR"] == "0.1"
    assert (first["command"][-1], second["replica"]) == ("echo 'a b'", 1)
    assert text.count("- replica: ") == 2
    assert "HOME" not in text
    assert f"cwd: {os.getcwd()}" in text


@pytest.mark.parametrize(
    "name",
    ["", "a/b", "..", ".", "/etc", "nul\0", "line\nbreak", "\x1b[31mred", "x" * 300, "é" * 150],
)
def test_names_that_are_no_folders_are_refused(local: Local, name: str) -> None:
    for made in (app("exit 0", name=name), AppDef("job", [role("exit 0", name=name)])):
        with pytest.raises(AppDefError, match="name"):
            local.scheduler.submit(made, {})
    assert not local.root.exists()


def test_apps_that_cannot_run_are_refused(local: Local) -> None:
    wrong: list[tuple[str, Any]] = [
        ("no roles", AppDef("job")),
        ("two roles", AppDef("job", [role("x"), role("x")])),
        ("entrypoint", AppDef("job", [Role("r", "")])),
        ("replicas", app("x", replicas=0)),
        ("NUL", app("a\0b")),
        ("NUL", app("x", env={"A": "b\0"})),
        ("variable", app("x", env={"A=B": "c"})),
    ]
    for words, made in wrong:
        with pytest.raises(AppDefError, match=words):
            local.scheduler.submit(made, {})
    assert not local.root.exists()


@pytest.mark.parametrize(
    ("entrypoint", "words"),
    [
        ("no-such-program-anywhere", "no such command: no-such-program-anywhere"),
        ("./missing.sh", "no such command: ./missing.sh"),
        ("./plain.txt", "cannot start ./plain.txt: it is not an executable file"),
        ("./bad-line", "cannot start ./bad-line: the program that its first line names is missing"),
        ("./no-line", "cannot start ./no-line: it is not a program"),
    ],
)
def test_a_program_that_cannot_start(
    local: Local, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, entrypoint: str, words: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "plain.txt").write_text("text")
    for name, text in (("bad-line", "#!/no/such/interpreter\n"), ("no-line", "\x00\x01\x02")):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    second = Role("second", "", entrypoint=entrypoint)
    app_id = local.scheduler.submit(AppDef("job", [role("exec sleep 300"), second]), {})
    run = local.ended(app_id)
    described = local.scheduler.describe(app_id)
    assert described is not None
    assert described.state == AppState.FAILED
    assert described.msg.startswith(words)
    # What had started before it was ended.
    assert run.replicas[0]["exit_code"] == -15
    assert described.roles_statuses[1].replicas[0].state == AppState.FAILED
    assert local.lines(app_id, role="second") == []


def test_a_working_folder_that_is_gone(local: Local, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    info = local.scheduler.submit_dryrun(app("exit 0"), {})
    monkeypatch.chdir(tmp_path)
    (tmp_path / "gone").rmdir()
    app_id = local.scheduler.schedule(info)
    local.ended(app_id)
    described = local.scheduler.describe(app_id)
    assert described is not None
    assert described.msg.startswith(f"its working folder cannot be used: {tmp_path / 'gone'}")


def test_a_job_has_the_environment_of_its_launch(local: Local, monkeypatch: pytest.MonkeyPatch) -> None:
    """A component may change it, which runs while the scheduler is there already."""
    info = local.scheduler.submit_dryrun(app("echo $SET_BY_THE_COMPONENT"), {})
    monkeypatch.setenv("SET_BY_THE_COMPONENT", "yes")
    app_id = local.scheduler.schedule(info)
    local.ended(app_id)
    assert local.lines(app_id) == ["yes\n"]


def test_a_request_can_be_launched_once(local: Local) -> None:
    info = local.scheduler.submit_dryrun(app("exit 0"), {})
    app_id = local.scheduler.schedule(info)
    local.ended(app_id)
    with pytest.raises(SchedulerError, match="exists"):
        local.scheduler.schedule(info)
    assert local.run(app_id).state == AppState.SUCCEEDED


def test_folder_as_image(make_local, tmp_path: Path) -> None:
    local = make_local(image_provider_class=LocalDirectoryImageProvider)
    (tmp_path / "image").mkdir()
    app_id = local.scheduler.submit(
        AppDef("job", [Role("r", str(tmp_path / "image"), entrypoint="sh", args=["-c", "pwd; echo ${img_root}"])]), {}
    )
    local.ended(app_id)
    assert local.lines(app_id) == [f"{tmp_path}/image\n"] * 2
    with pytest.raises(ValueError, match="does not exist or is not a directory"):
        local.scheduler.submit(AppDef("job", [Role("r", "/no/such", entrypoint="sh")]), {})


@pytest.fixture
def mounted(tmp_path: Path) -> Iterator[Any]:
    """Mount tiny or read-only folders, where that is allowed."""
    places: list[Path] = []

    def mount(*options: str) -> Path:
        place = tmp_path / f"mount{len(places)}"
        place.mkdir()
        made = subprocess.run(["mount", *options, str(place)], capture_output=True, text=True)
        if made.returncode:
            pytest.skip(f"mounting is not allowed here: {made.stderr.strip()}")
        places.append(place)
        return place

    yield mount
    for place in places:
        subprocess.run(["umount", "-l", str(place)], check=True)


def test_read_only_log_folder(local: Local, mounted: Any) -> None:
    place = mounted("-t", "tmpfs", "-o", "ro,size=64k", "tmpfs")
    with pytest.raises(SchedulerError, match=r"was not launched: Read-only file system: .*log_dir"):
        local.start("exit 0", {"log_dir": str(place)})
    assert local.scheduler.list() == []
    assert local.scheduler._runs.app_ids() == []


def test_full_log_folder(local: Local, mounted: Any) -> None:
    place = mounted("-t", "tmpfs", "-o", "size=64k", "tmpfs")
    try:
        (place / "filler").write_bytes(b"x" * 100_000)
    except OSError:
        pass
    with pytest.raises(SchedulerError, match="was not launched: No space left on device"):
        local.start("exit 0", {"log_dir": str(place)})
    assert local.scheduler._runs.app_ids() == []
    assert {path.name for path in place.iterdir()} <= {"filler", "session"}
    assert not list((local.root / "turns").iterdir())


def test_a_disk_that_fills_up_delays_the_end_but_loses_nothing(local: Local, mounted: Any) -> None:
    place = mounted("-t", "tmpfs", "-o", "size=256k", "tmpfs")
    script = "echo first; while [ ! -e $0/go ]; do sleep 0.05; done; echo last"
    app_id = local.start(script.replace("$0", str(local.root)), {"log_dir": str(place)})
    wait_until(lambda: local.lines(app_id) == ["first\n"], "the first line")
    with (place / "filler").open("wb", buffering=0) as filler:
        try:
            while True:
                filler.write(b"x" * 4096)
        except OSError:
            pass
    (local.root / "go").touch()
    pid = local.state(app_id)["replicas"][0]["pid"]
    wait_until(lambda: not Path(f"/proc/{pid}").exists(), "the replica's end")
    assert not local.run(app_id).over
    (place / "filler").unlink()
    run = local.ended(app_id)
    assert run.replicas[0]["exit_code"] is not None
    assert json.loads((run.folder / "SUCCESS").read_text())["final_state"] == run.state.name


def test_a_full_disk_does_not_keep_a_cancelled_app_running(
    make_local: Callable[..., Local], mounted: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(record, "_STUCK_SECONDS", 1.0)
    local = make_local(mounted("-t", "tmpfs", "-o", "size=256k", "tmpfs") / "state")
    app_id = local.start("sleep 300")
    local.running(app_id)
    filler = local.root / "filler"
    with filler.open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(b"x" * 4096)
    local.scheduler.cancel(app_id)
    run = local.ended(app_id)
    assert (run.state, "is the disk full?" in run.reason) == (AppState.CANCELLED, True)
    assert [row.state for row in local.scheduler.list()] == [AppState.CANCELLED]
    # The supervisor has the last word.
    filler.unlink()
    wait_until(lambda: not local.run(app_id).reason, "what the supervisor writes")
    assert local.run(app_id).state == AppState.CANCELLED
    assert local.state(app_id)["replicas"][0]["exit_code"] is not None


def test_64_replicas(local: Local) -> None:
    app_id = local.start("echo ${replica_id}", replicas=64)
    run = local.ended(app_id)
    assert run.state == AppState.SUCCEEDED
    assert [local.lines(app_id, k=k) for k in range(64)] == [[f"{k}\n"] for k in range(64)]
    assert local.scheduler.list()[0].replicas_succeeded == 64


@pytest.fixture
def fake_gpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "bin" / "nvidia-smi"
    program.parent.mkdir()
    lines = "\\n".join(f"GPU {n}: NVIDIA H100 (UUID: GPU-{n})\\n  MIG 1g Device 0: (UUID: MIG-{n})" for n in range(4))
    program.write_text(f"#!/bin/sh\n[ \"$1\" = -L ] || exit 9\nprintf '{lines}\\n'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")


@pytest.mark.usefixtures("fake_gpus")
def test_gpus_are_dealt_out(local: Local) -> None:
    def with_gpus(name: str, gpu: int, replicas: int) -> Role:
        env = {"CUDA_VISIBLE_DEVICES": "mine"} if gpu else {}
        return role("echo =$CUDA_VISIBLE_DEVICES", name=name, replicas=replicas, resource=Resource(1, gpu, 1), env=env)

    roles = [with_gpus("one", 1, 1), with_gpus("cpu", 0, 1), with_gpus("pair", 2, 1), with_gpus("last", 1, 1)]
    app_id = local.scheduler.submit(AppDef("job", roles), {"auto_set_cuda_visible_devices": True})
    local.ended(app_id)
    seen = {name: local.lines(app_id, role=name)[0].strip() for name in ("one", "cpu", "pair", "last")}
    assert seen == {"one": "=0", "cpu": "=", "pair": "=1,2", "last": "=3"}
    # More than there are: nobody is given any.
    app_id = local.scheduler.submit(AppDef("job", [with_gpus("many", 2, 3)]), {"auto_set_cuda_visible_devices": True})
    local.ended(app_id)
    assert local.lines(app_id, role="many") == ["=mine\n"]
    app_id = local.scheduler.submit(AppDef("job", [with_gpus("one", 1, 1)]), {})
    local.ended(app_id)
    assert local.lines(app_id, role="one") == ["=mine\n"]


@pytest.mark.usefixtures("fake_gpus")
def test_advice_before_a_launch(local: Local, tmp_path: Path) -> None:
    import socket

    with socket.socket() as taken:
        taken.bind(("", 0))
        taken.listen()
        port = taken.getsockname()[1]
        made = app("exit 0", resource=Resource(1, 8, 1), port_map={"ui": port})
        made.roles.append(Role("other", "", entrypoint="no-such-program"))
        found = [(finding.level, finding.what) for finding in local.scheduler.preflight(made, {})]
    assert ("error", "other: no such command: no-such-program") in found
    assert ("warning", f"r: port {port} (ui) is taken by another process") in found
    assert ("warning", "8 gpu asked for, this machine has 4") in found
    assert len(found) == 3
    assert local.scheduler.preflight(app("exit 0"), {}) == []
    assert ", 4 gpu, " in local.scheduler.check()[0].what


def test_run_options_read_as_torchx_prints_them(local: Local) -> None:
    text = str(local.scheduler.run_opts())
    assert "log_dir=LOG_DIR (str, None)\n            Directory to write stdout/stderr log files of replicas." in text
    assert "prepend_cwd=PREPEND_CWD (bool, False)" in text
    assert "auto_set_cuda_visible_devices=AUTO_SET_CUDA_VISIBLE_DEVICES (bool, False)" in text


def test_the_port_of_a_rendezvous_here_is_looked_at_and_one_elsewhere_is_not(local: Local) -> None:
    import socket

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        for endpoint, warned in (
            (f"localhost:{port}", True),
            (f"$${{TORCHX_RANK0_HOST:=localhost}}:{port}", True),
            (f"10.0.0.5:{port}", False),
        ):
            found = local.scheduler.preflight(app(f"torchrun --rdzv_endpoint {endpoint} x.py"), {})
            assert any(f"port {port}" in finding.what for finding in found) is warned, endpoint


def test_a_script_or_a_python_that_is_not_there(local: Local, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").touch()

    def found(entrypoint: str, *args: str) -> list[str]:
        made = AppDef("job", [Role("r", "", entrypoint=entrypoint, args=list(args))])
        return [f"{one.level} {one.what}" for one in local.scheduler.preflight(made, {})]

    assert found(sys.executable, "train.py") == []
    assert found("bash", "-c", f"{sys.executable} train.py") == []
    gone = [f"error r: there is no file gone.py in {tmp_path}"]
    assert found(sys.executable, "-u", "gone.py", "--lr", "1") == gone
    assert found("bash", "-c", f"exec {sys.executable} -m torch.distributed.run --nnodes 1 gone.py") == gone
    assert found("bash", "-c", "/no/such/python3 train.py") == ["error r: /no/such/python3 is not an executable file"]
    assert found("bash", "-c", "python3.99 train.py") == ["error r: no such command: python3.99"]
    # What this Python has beside it is found by its launcher's path.
    there = shutil.which("torchrun", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
    wanted = [] if there else ["error r: no such command: torchrun"]
    assert found("bash", "-c", "torchrun --nnodes 1 train.py") == wanted
    # A folder can be entered by those who may execute it.
    assert found(str(tmp_path)) == [f"error r: {tmp_path} is not an executable file"]
