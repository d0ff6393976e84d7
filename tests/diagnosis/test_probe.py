"""Stacks of processes that run: who is a rank, which way reads it, and that a job goes on as without our hook."""

import os
import shutil
import subprocess
import sys
import textwrap
from importlib.util import find_spec
from pathlib import Path

import pytest
from support.waiting import TORCH_PATIENCE, wait_until

from torchx_tui.backends.local.scheduler import LocalScheduler
from torchx_tui.backends.runner import Runner
from torchx_tui.backends.shared.insight import FOLDER, HOOK, insight_environment
from torchx_tui.diagnosis.stacks import probe
from torchx_tui.diagnosis.stacks.collect import take_snapshot
from torchx_tui.diagnosis.stacks.conclusion import conclude
from torchx_tui.diagnosis.stacks.text import describe_unread
from torchx_tui.specs.roles import AppDef, Role

needs_torch = pytest.mark.skipif(find_spec("torch") is None, reason="needs torch: pip install torch")


@pytest.fixture
def launch(tmp_path):
    """Give what launches a script as a job of this machine, each replica a rank."""
    runner = Runner(scheduler_params={"local_cwd": {"root": tmp_path / "root"}})
    assert isinstance(runner.scheduler("local_cwd"), LocalScheduler)
    handles = []

    def start(script, *, ranks=1, env=None):
        (tmp_path / "job.py").write_text(textwrap.dedent(script))
        env = {"RANK": "${replica_id}", "WORLD_SIZE": str(ranks), **(env or {})}
        role = Role("trainer", str(tmp_path), entrypoint=sys.executable, args=[str(tmp_path / "job.py")],
                    num_replicas=ranks, env=env)  # fmt: skip
        handles.append(runner.run(AppDef("probe", [role]), "local_cwd", {}))
        return handles[-1]

    yield runner, start
    for handle in handles:
        runner.job(handle).delete()
    runner.close()


def waits_in(runner, handle, function, *, stop=True):
    """StackSnapshot stacks until some rank stands in a function; return the snapshot."""

    def taken():
        if runner.job(handle).describe().state.name != "RUNNING":
            return None
        snapshot = take_snapshot(runner, handle, stop=stop)
        stacks = [frame.function for stack in snapshot.processes for thread in stack.threads for frame in thread.frames]
        return snapshot if function in stacks else None

    return wait_until(taken, f"a rank in {function}", TORCH_PATIENCE)


PROGRAMS = f"{Path(sys.executable).parent}:{os.environ['PATH']}"


needs_pyspy = pytest.mark.skipif(
    shutil.which("py-spy", path=PROGRAMS) is None, reason="needs py-spy: pip install py-spy"
)


@needs_pyspy
def test_py_spy_reads_ranks_and_their_children(launch):
    runner, start = launch
    handle = start(
        """
        import os, subprocess, sys, time
        def rests(): time.sleep(600)
        if os.fork() == 0:
            rests()
        def waits_for_child(): os.wait()
        waits_for_child()
        """,
        ranks=2,
    )

    def all_there():
        snapshot = waits_in(runner, handle, "waits_for_child")
        is_read = {stack.way for stack in snapshot.processes} == {"py-spy"}
        return snapshot if is_read and len(snapshot.ranks) == 2 and len(snapshot.processes) == 4 else None

    snapshot = wait_until(all_there, "all processes")
    assert [(stack.rank, stack.is_main) for stack in snapshot.processes] == [
        (0, True),
        (0, False),
        (1, True),
        (1, False),
    ]
    assert dict(snapshot.processes[0].tried)["worker server"].startswith("no socket")
    (lines,) = snapshot.sources.values()
    assert any("time.sleep(600)" in line for line in lines.values())
    # Unasked, no process is stopped.
    assert {stack.way for stack in take_snapshot(runner, handle, stop=False).processes} == {""}


def test_without_py_spy_it_says_what_would_help(launch, monkeypatch, tmp_path):
    runner, start = launch
    bare = tmp_path / "bin"
    bare.mkdir()
    (bare / "python3").symlink_to(sys.executable)
    monkeypatch.setenv("PATH", f"{bare}:/usr/bin:/bin")
    monkeypatch.setattr(sys, "executable", str(bare / "python3"))
    handle = start("import time\ntime.sleep(600)")
    wait_until(lambda: runner.job(handle).describe().state.name == "RUNNING", "the job")
    snapshot = wait_until(lambda: (snapshot := take_snapshot(runner, handle)).ranks and snapshot, "the rank")
    ((who, why),) = describe_unread(snapshot)
    assert (who, "pip install py-spy" in why) == ("rank 0", True)


@needs_pyspy
def test_a_rank_that_the_kernel_holds(launch):
    """It cannot be stopped, so it is read while it is held, and the kernel's function is named."""
    runner, start = launch
    script = """
        import ctypes, os, time
        def held():
            # From vfork to the end of its child the kernel holds the parent in state D.
            if ctypes.PyDLL(None).vfork() == 0:
                time.sleep(600)
                os._exit(0)
        def rests(): time.sleep(600)
        held() if os.environ["RANK"] == "1" else rests()
        """
    handle = start(script, ranks=2)

    def is_held():
        snapshot = waits_in(runner, handle, "rests")
        return (
            snapshot if 1 in snapshot.ranks and snapshot.ranks[1].state == "D" and snapshot.ranks[1].threads else None
        )

    snapshot = wait_until(is_held, "the rank that is held")
    assert snapshot.ranks[1].waits_for
    assert f"rank 1 is held by the kernel ({snapshot.ranks[1].waits_for}), job.py:" in conclude(snapshot).sentence
    # Also where nothing may be stopped, the kernel tells it.
    found = conclude(take_snapshot(runner, handle, stop=False))
    assert f"rank 1 is held by the kernel ({snapshot.ranks[1].waits_for})" in found.sentence


@needs_pyspy
def test_frames_of_c(launch):
    runner, start = launch
    handle = start("import time\ndef rests(): time.sleep(600)\nrests()")
    waits_in(runner, handle, "rests")

    def names_of_frames():
        threads = take_snapshot(runner, handle, native=True).ranks[0].threads
        return [[frame.function for frame in thread.frames] for thread in threads]

    # py-spy may be too late on a busy machine.
    (names,) = wait_until(names_of_frames, "the frames")
    assert "rests" in names
    assert any("sleep" in name for name in names[: names.index("rests")]), names


def test_a_dump_is_asked_for_by_the_pipe_of_nccl(launch):
    """A program stands for NCCL's watchdog: it writes a dump whenever something comes in its pipe."""
    runner, start = launch
    dumps = Path(__file__).parent / "data" / "fr" / "sleep"
    script = f"""
        import os, shutil, time
        rank, prefix = os.environ["RANK"], os.environ["TORCH_FR_DUMP_TEMP_FILE"]
        pipe = os.environ["TORCH_NCCL_DEBUG_INFO_PIPE_FILE"] + rank + ".pipe"
        open(prefix + rank, "w").close()  # of an earlier time-out
        os.mkfifo(pipe)
        asked = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
        while True:
            if os.read(asked, 100):
                shutil.copyfile({str(dumps / "fr_")!r} + rank, prefix + "new" + rank)
                os.replace(prefix + "new" + rank, prefix + rank)
            time.sleep(0.02)
        """
    handle = start(script, ranks=4)

    def answered():
        if runner.job(handle).describe().state.name != "RUNNING":
            return None
        snapshot = take_snapshot(runner, handle, stop=False)
        return snapshot if len(snapshot.dumps) == 4 else None

    snapshot = wait_until(answered, "the recorders of all ranks")
    ways = {line["way"] for reply in snapshot.replies for line in reply.lines if line["kind"] == "recorder"}
    found = conclude(snapshot)
    assert (ways, found.blocking) == ({"pipe"}, (2,))
    assert found.sentence.startswith("rank 2 has not reached all_reduce #46, where ranks 0-1, 3 wait")


@needs_torch
def test_the_worker_server_answers_for_a_rank_that_hangs(launch):
    runner, start = launch
    handle = start(
        """
        import threading, torch.distributed as dist
        def hangs():
            lock = threading.Lock(); lock.acquire(); lock.acquire()
        hangs()
        """
    )
    # Where the server answers too late, py-spy reads the rank.
    snapshot = wait_until(
        lambda: (t := waits_in(runner, handle, "hangs")).ways == {"worker server": 1} and t.dumps and t,
        "it",
        TORCH_PATIENCE,
    )
    assert snapshot.dumps[0].collectives == ()
    described = runner.job(handle).describe()
    folder = Path(described.log_dir) / "insight" / "trainer"
    assert folder.stat().st_mode & 0o777 == 0o700
    # Nothing of it is in the job's own log; torch itself may warn.
    assert not [line for line in runner.job(handle).log_lines("trainer", 0) if "WorkerServer" in line]
    runner.job(handle).cancel()


# ---- The hook


def run(arguments, env, python=sys.executable, **more):
    """Run Python and return how it ended and what it printed."""
    full = {"PATH": os.environ["PATH"], **env}
    ended = subprocess.run(
        [python, *arguments], env=full, capture_output=True, text=True, timeout=TORCH_PATIENCE, **more
    )
    return ended.returncode, ended.stdout, ended.stderr


def test_the_users_own_sitecustomize_runs(tmp_path):
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.mine = __file__\n")
    code = "import sys, sitecustomize as s; print(sys.mine, s.__file__ == sys.mine, 'rank_hook' in str(sys.path))"
    env = insight_environment(tmp_path, {"PYTHONPATH": str(tmp_path), "RANK": "0"})
    assert env["PYTHONPATH"] == f"{HOOK}:{tmp_path}"
    mine = str(tmp_path / "sitecustomize.py")
    assert run(["-c", code], {**env, "RANK": "0"}) == (0, f"{mine} True False\n", "")
    # One that fails is told of as without ours, and the program runs.
    (tmp_path / "sitecustomize.py").write_text("raise ValueError('mine')\n")
    with_hook, without = run(["-c", "print(1)"], env), run(["-c", "print(1)"], {"PYTHONPATH": str(tmp_path)})
    assert with_hook == without
    assert "ValueError: mine" in with_hook[2]


_VERSIONS = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
# Of each version one.
_FOUND = {path.parts[-3].rpartition(".")[0]: str(path) for path in _VERSIONS.glob("3.*/bin/python3")}
INTERPRETERS = sorted({*_FOUND.values(), "/usr/bin/python3", sys.executable})
BEHAVES = """
import multiprocessing, os, signal, subprocess, sys, threading
if __name__ == "__main__":
    print(sys.flags, threading.active_count(), [path for path in sys.path if "rank_hook" in path])
    pid = os.fork()
    if pid == 0:
        os._exit(4)
    print(os.waitpid(pid, 0)[1])
    for way in ("fork", "spawn"):
        child = multiprocessing.get_context(way).Process(target=print, args=(way,))
        child.start()
        child.join()
        print(child.exitcode, flush=True)
    print(subprocess.call([sys.executable, "-c", "import sys; sys.exit(7)"]), flush=True)
    sys.stderr.write("x\\n")
    {end}
"""


@pytest.mark.parametrize("python", INTERPRETERS)
def test_other_interpreters_behave_as_without_the_hook(tmp_path, python):
    """Exit codes, signals, forks and spawned children, in whatever version is there, with flags that leave it out."""
    script, insight = tmp_path / "job.py", tmp_path / "insight"
    insight.mkdir()
    hooked = {"RANK": "0", **insight_environment(insight, {})}
    if not Path(python).exists():
        pytest.skip(f"there is no {python}")
    script.write_text(BEHAVES.format(end="os.kill(os.getpid(), signal.SIGTERM)"))
    with_hook = run([str(script)], hooked, python=python)
    assert with_hook == run([str(script)], {"RANK": "0"}, python=python)
    assert (with_hook[0], with_hook[1].split()[-6:]) == (-15, ["1024", "fork", "0", "spawn", "0", "7"])
    for flags in (["-S"], ["-E"], ["-I"], ["-O"], ["-X", "dev"], []):
        code = ["-c", "import sys; print(sys.flags); raise ValueError('x')"]
        assert run([*flags, *code], hooked, python=python) == run([*flags, *code], {"RANK": "0"}, python=python)
    assert list(insight.iterdir()) == []


@pytest.mark.parametrize("broken", ["/no/such/folder", "/dev/null", ""])
def test_a_folder_that_cannot_be_used_harms_nothing(broken, tmp_path):
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text("")
    (tmp_path / "torch" / "distributed.py").write_text("x = 1\n")
    env = {"RANK": "0", FOLDER: broken, "PYTHONPATH": f"{HOOK}:{tmp_path}"}
    assert run(["-c", "import torch.distributed as d; print(d.x)"], env) == (0, "1\n", "")


@needs_torch
@pytest.mark.parametrize(
    ("code", "sockets"),
    [
        # Python ends: what asks for the GIL then would abort it.
        ("threading.Thread(target=time.sleep, args=(0.1,)).start(); pid = os.fork()\n"
         "    print(os.waitpid(pid, 0)[1], flush=True) if pid else sys.exit(4); raise ValueError('x')", 0),
        ("for way in ('fork', 'spawn'):\n"
         "        p = mp.get_context(way).Process(target=print, args=(way,)); p.start(); p.join(); print(p.exitcode)\n"
         "    print(subprocess.call([sys.executable, '-c', 'import torch.distributed; print(1)']), flush=True)\n"
         "    os.kill(os.getpid(), signal.SIGTERM)", 1),
    ],
    ids=["thread, fork, exception", "children, signal"],
)  # fmt: skip
def test_a_rank_with_torch_behaves_as_without_the_hook(tmp_path, code, sockets):
    script = tmp_path / "job.py"
    imports = "import os, signal, subprocess, sys, threading, time, multiprocessing as mp, torch.distributed as dist"
    script.write_text(f"if __name__ == '__main__':\n    {imports}\n    {code}\n")
    folder = tmp_path / "insight"
    folder.mkdir()
    with_hook = run([str(script)], {"RANK": "0", **insight_environment(folder, {})})
    assert with_hook == run([str(script)], {"RANK": "0"})
    assert len(list(folder.glob("0.*.sock"))) == sockets


@needs_torch
def test_a_dump_is_left_by_an_exception_and_by_nothing_else(tmp_path):
    env = {"RANK": "3", **insight_environment(tmp_path, {})}
    imports = "import torch.distributed as dist\n"
    assert run(["-c", imports], env)[0] == 0
    assert not (tmp_path / "fr_3").exists()
    code, _, errors = run(["-c", f"{imports}raise ValueError('x')"], env)
    assert (code, errors.splitlines()[-1]) == (1, "ValueError: x")
    assert (tmp_path / "fr_3").stat().st_mode & 0o777 == 0o600


def test_a_dump_of_an_attempt_before_is_removed(tmp_path):
    """Else the ranks of two attempts would be held against each other."""
    dump = tmp_path / "fr_3"
    env = {"RANK": "3", **insight_environment(tmp_path, {})}
    for count, more, is_kept in (("0", {}, True), ("1", {"TORCH_FR_DUMP_TEMP_FILE": f"{tmp_path}/../fr_"}, True),
                                 ("1", {}, False)):  # fmt: skip
        dump.write_bytes(b"x")
        assert run(["-c", ""], {**env, **more, "TORCHELASTIC_RESTART_COUNT": count}) == (0, "", "")
        assert dump.exists() is is_kept
    # A program that a rank has started leaves it.
    code = f"import subprocess, sys; open({str(dump)!r}, 'w').close(); subprocess.call([sys.executable, '-c', ''])"
    assert run(["-c", code], {**env, "TORCHELASTIC_RESTART_COUNT": "1"}) == (0, "", "")
    assert dump.exists()


def test_what_is_added_is_never_over_the_users_own(tmp_path):
    given = {"TORCH_FR_BUFFER_SIZE": "5", "TORCH_FR_DUMP_TEMP_FILE": "/mine/fr_"}
    added = insight_environment(tmp_path, given)
    assert not added.keys() & given.keys()
    assert insight_environment(tmp_path, {FOLDER: "0"}) == {}


def test_the_dry_run_shows_it_and_a_variable_turns_it_off(tmp_path):
    scheduler = LocalScheduler("torchx", root=tmp_path)
    role = Role("trainer", str(tmp_path), entrypoint="true", env={"TORCH_FR_BUFFER_SIZE": "7"})
    shown = str(scheduler.submit_dryrun(AppDef("a", [role]), {}))
    assert "TORCH_FR_BUFFER_SIZE: '7'" in shown or 'TORCH_FR_BUFFER_SIZE: "7"' in shown
    assert "insight/trainer/fr_pipe_" in shown
    role.env[FOLDER] = "0"
    assert "fr_pipe_" not in str(scheduler.submit_dryrun(AppDef("a", [role]), {}))
    role.env.clear()
    assert "fr_pipe_" not in str(
        LocalScheduler("torchx", root=tmp_path, insight=False).submit_dryrun(AppDef("a", [role]), {})
    )


def test_failure_to_report_a_process_ends_the_probe(monkeypatch, capsys):
    """Its threads end silently in no case: the snapshot says why the replica was not read."""

    def fail(*_):
        raise RuntimeError("an odd process")

    rank = probe.Process(os.getpid())
    rank.read_details()
    monkeypatch.setattr(sys, "argv", ["probe.py", "{}"])
    monkeypatch.setattr(probe, "find_ranks", lambda _: [rank])
    monkeypatch.setattr(probe, "read_stack", fail)
    with pytest.raises(RuntimeError, match="an odd process"):
        probe.main()
    assert '"kind": "end"' not in capsys.readouterr().out
