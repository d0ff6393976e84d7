"""What torchrun leaves in a log: the cause, what follows from it, and the attempts before."""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
import textwrap
import time
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path

import pytest
from support.hung import hung_take
from support.waiting import TORCH_PATIENCE, wait_until

from torchx_tui.backends.runner import Runner
from torchx_tui.backends.types import DescribeAppResponse
from torchx_tui.diagnosis.stacks.ended import End, explain_end
from torchx_tui.diagnosis.stacks.error_files import fill_ends, read_error
from torchx_tui.diagnosis.stacks.kept import keep_take
from torchx_tui.diagnosis.stacks.torchrun import explain_torchrun, read_torchrun
from torchx_tui.specs.roles import AppDef, Role
from torchx_tui.specs.status import AppState

DATA = Path(__file__).parent / "data" / "torchrun"
RULE, THIN = "=" * 60, "-" * 60


def told(*texts: str) -> tuple[str, ...]:
    """Return what is said of the torchruns with these logs."""
    ends = [read_torchrun(text.splitlines()) for text in texts]
    return explain_torchrun([end for end in ends if end is not None])


def report(*entries: tuple[int, int, int, int, str]) -> str:
    """Return a report of failures: rank, local rank, exit code, process, traceback; the last is the root cause."""
    parts = [
        f"[{number}]:\n  time      : 2026-11-24_22:24:03\n  host      : a\n  rank      : {rank} (local_rank: {local})\n"
        f"  exitcode  : {code} (pid: {pid})\n  error_file: <N/A>\n  traceback : {text}\n"
        for number, (rank, local, code, pid, text) in enumerate(entries)
    ]
    head = (
        f"torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n{RULE}\nt.py FAILED\n{THIN}\nFailures:\n"
    )
    return f"{head}{''.join(parts[:-1])}{THIN}\nRoot Cause (first observed failure):\n{parts[-1]}{RULE}\n"


@pytest.mark.parametrize(
    ("kind", "sentences"),
    [
        ("raise", ("rank 1 failed: exit 1, ValueError: bad batch", "torchrun ended ranks 0, 2-3")),
        # By `@record`: the traceback stands in the report.
        ("recorded", ("rank 1 failed: exit 1, RuntimeError: mine", "torchrun ended ranks 0, 2-3")),
        ("sigkill", ("rank 1 failed: killed by SIGKILL", "torchrun ended ranks 0, 2-3")),
        ("exit7", ("rank 1 failed: exit 7", "torchrun ended ranks 0, 2-3")),
        # Torchrun calls rank 2 the root cause, and does not list rank 1.
        (
            "exit0",
            (
                "rank 1 left before the others, with exit code 0",
                "rank 2 then lost the connection to it; torchrun ended ranks 0, 3",
            ),
        ),
        (
            "restarted",
            (
                "rank 3 lost the connection to another rank; none says why",
                "torchrun ended ranks 0-2",
                "torchrun started its ranks again; attempt 1 of 2: rank 1, exit 1, ValueError: bad batch",
            ),
        ),
        ("term", ("torchrun itself was sent SIGTERM, and ended its ranks",)),
    ],
)
def test_recorded_runs(kind, sentences):
    assert told((DATA / f"{kind}.log").read_text()) == sentences


def test_a_rank_that_aborts():
    """What C++ says at its end is its error."""
    cause, follows = told((DATA / "mismatch.log").read_text())
    assert cause.startswith("rank 0 failed: killed by SIGABRT, what():")
    assert "op.preamble.length <= op.nbytes" in cause
    assert follows == "torchrun ended ranks 1-3"


def test_several_nodes():
    """Each node's torchrun tells of its own ranks; a rank's output is found by its number on its machine."""
    first = report((1, 1, 1, 11, "RuntimeError: Connection reset by peer"), (0, 0, -15, 10, "Signal 15 (SIGTERM)"))
    first = f"W api.py:1028] Sending process 10 closing signal SIGTERM\n{first}"
    second = report((2, 0, 1, 20, "To enable traceback see: https://pytorch.org"))
    second = f"[default0]:[rank2]: ValueError: nan in the loss\n{second}"
    assert told(first, second) == (
        "rank 2 failed: exit 1, ValueError: nan in the loss",
        "rank 1 then lost the connection to it; torchrun ended rank 0",
    )
    # Without torchrun's prefix a line has the number of the rank.
    assert told(second.replace("[default0]:", ""))[0] == "rank 2 failed: exit 1, ValueError: nan in the loss"
    assert told(second.replace("[default0]:[rank2]", "[rank0]"))[0] == "rank 2 failed: exit 1"


def test_causes_of_their_own():
    """A rank that somebody else ended is a cause; so is one that fails while torchrun ends it."""
    closing = "W api.py:1028] Sending process 10 closing signal SIGTERM\n"
    two = report((0, 0, 1, 10, "KeyError: 'x'"), (1, 1, 1, 11, "ValueError: y"))
    assert told(closing + two) == (
        "ranks 0-1 failed, each by itself: rank 0: exit 1, KeyError: 'x'; rank 1: exit 1, ValueError: y",
    )
    assert told(report((0, 0, -15, 10, "Signal 15 (SIGTERM) received by PID 10"))) == (
        "rank 0 failed: killed by SIGTERM",
    )
    # That a rank left with 0 is not said where it may have done so because it was sent a signal.
    lost = report((0, 0, 1, 10, "RuntimeError: Connection closed by peer"), (2, 2, -15, 12, "Signal 15"))
    assert told(closing.replace("10", "12") + lost)[0] == "rank 1 left before the others, with exit code 0"
    assert told(closing.replace("10", "12") + closing.replace("10", "11") + lost)[0].startswith("rank 0 lost the")


def test_the_last_run_of_several():
    """Where the scheduler started torchrun again, the report before is not told."""
    before, after = report((0, 0, 3, 10, "<N/A>")), report((1, 1, 4, 21, "<N/A>"))
    first = f"[default0]:x\nfailed (exitcode: 3) local_rank: 0 (pid: 10)\n{before}[default0]:y\n"
    assert told(first + after) == ("rank 1 failed: exit 4",)
    assert told(first) == ()  # the second one goes on, or left no report


def test_an_exception_of_several_lines():
    """Its first line is told, and of exceptions that were raised from others the last one."""
    body = 'Traceback (most recent call last):\n    File "t.py", line 1, in main\n'
    several = f"{body}  ValueError: bad batch:\n  its shape is [1, 2]"
    chained = f"{several}\n  \n  During handling of it:\n  \n  {body}  RuntimeError: no batch"
    assert told(report((0, 0, 1, 1, several))) == ("rank 0 failed: exit 1, ValueError: bad batch:",)
    assert told(report((0, 0, 1, 1, chained))) == ("rank 0 failed: exit 1, RuntimeError: no batch",)


TIMEOUT = "RuntimeError: [gloo/unbound_buffer.cc:78] Timed out waiting 40000ms for recv operation to complete"


def test_a_collective_that_timed_out():
    """Ranks that say so waited for another: it is the cause, or unknown."""
    closing = "W api.py:1028] Sending process 11 closing signal SIGTERM\n"
    nccl = "what(): [Rank 2] Watchdog caught collective operation timeout: WorkNCCL("
    waited = [(0, 0, 1, 10, TIMEOUT), (2, 2, -6, 12, nccl)]
    ended = (1, 1, -15, 11, "Signal 15 (SIGTERM) received by PID 11")
    assert told(closing + report(*waited, ended)) == (
        f"ranks 0, 2 ended as a collective timed out: exit 1, {TIMEOUT}",
        "torchrun ended rank 1",
    )
    assert told(report(*waited, (1, 1, 3, 11, "ValueError: x"))) == (
        "rank 1 failed: exit 3, ValueError: x",
        "for ranks 0, 2 a collective timed out",
    )
    assert told(report(*waited)) == (
        "rank 1 left before the others, with exit code 0",
        "for ranks 0, 2 a collective timed out",
    )


def test_a_rank_that_left_is_not_told_beside_a_cause():
    lost = (0, 0, 1, 10, "RuntimeError: Connection closed by peer")
    assert told(report(lost, (2, 2, 7, 12, "<N/A>"))) == (
        "rank 2 failed: exit 7",
        "rank 0 then lost the connection to it",
    )


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[default0]:" + report((0, 0, 1, 1, "x")).replace("\n", "\n[default0]:"),  # what a rank prints is no report
        f"ChildFailedError: \n{RULE}\n",
        report((0, 0, 0, 1, "x")),
        report((9**12, 0, 1, 1, "x")),
        "[0]:\n" * 20_000 + "failed (exitcode: 99999) local_rank: -1 (pid: x)",
        f"ChildFailedError:\n{RULE}\n" + "[0]:\n" * 20_000,
        "[" * 20_000 + "]" * 20_000,
    ],
)
def test_odd_logs(text):
    """They tell nothing, and take no time."""
    began = time.process_time()
    assert told(text) == ()
    assert time.process_time() - began < 5


def test_what_is_said_is_short():
    (sentence,) = told(report((0, 0, 1, 1, "ValueError: " + "x" * 100_000)))
    assert len(sentence) < 400


def ended(tmp_path: Path, body: str, *options: str) -> tuple[str, ...]:
    """Return what is said of a real torchrun of two ranks, each of which runs these lines below `@record`."""
    script = tmp_path / "train.py"
    script.write_text(
        "import os, signal, sys, time\nfrom pathlib import Path\n"
        "from torch.distributed.elastic.multiprocessing.errors import record\n"
        'RANK, AGAIN = os.environ["RANK"], os.environ["TORCHELASTIC_RESTART_COUNT"]\n'
        f"@record\ndef main():\n{textwrap.indent(textwrap.dedent(body), '    ')}\n    time.sleep(600)\nmain()\n"
    )
    arguments = ["-m", "torch.distributed.run", "--nproc-per-node", "2", *options, str(script)]
    role = Role("trainer", str(tmp_path), entrypoint=sys.executable, args=arguments)
    runner = Runner(scheduler_params={"local_cwd": {"root": tmp_path / "root"}})
    handle = runner.run(AppDef("ends", [role]), "local_cwd", {})
    try:
        described = wait_until(
            lambda: (d := runner.job(handle).describe()) and d.has_ended and d, "its end", TORCH_PATIENCE
        )
        return explain_end(runner, handle, runner.job(handle).replica_logs(described)).sentences
    finally:
        runner.job(handle).delete()
        runner.close()


needs_torch = pytest.mark.skipif(find_spec("torch") is None, reason="needs torch: pip install torch")


@needs_torch
@pytest.mark.parametrize(
    ("ends", "sentence"),
    [
        ("raise ValueError('bad batch')", "rank 1 failed: exit 1, ValueError: bad batch"),
        ("os.kill(os.getpid(), signal.SIGKILL)", "rank 1 failed: killed by SIGKILL"),
    ],
)
def test_a_real_run(tmp_path, ends, sentence):
    """From a launched job to the sentences, with `@record` and torchrun's own error file."""
    found = ended(tmp_path, f"if RANK == '1':\n    {ends}", "--tee", "3")
    assert sentence in found
    assert "torchrun ended rank 0" in found


@needs_torch
@pytest.mark.parametrize("options", [[], ["--log-dir", "own/logs"]], ids=["", "log-dir"])
def test_real_run_with_errors_in_error_files_only(tmp_path, monkeypatch, options):
    """torchrun reports the last attempt, and with redirected output nothing of the others is in its log."""
    monkeypatch.chdir(tmp_path)
    body = "if RANK == AGAIN:\n    raise KeyError('batch ' + AGAIN)"
    found = ended(tmp_path, body, "--redirects", "3", "--max-restarts", "1", *options)
    assert found[0] == "rank 1 failed: exit 1, KeyError: 'batch 1'"
    assert found[-1] == "torchrun started its ranks again; attempt 1 of 2: rank 0, exit 1, KeyError: 'batch 0'"


@needs_torch
@pytest.mark.parametrize("has_folder", [True, False])
def test_a_real_run_whose_torchrun_was_killed(tmp_path, has_folder):
    """It leaves no report: a rank's own error file tells what happened."""
    body = """
    if RANK == "1":
        os.kill(os.getppid(), signal.SIGSTOP)
        raise ValueError("bad batch")
    mine = Path(os.environ["TORCHELASTIC_ERROR_FILE"])
    other = mine.parents[1] / "1" / "error.json"
    # It is made before it is written.
    while not (other.exists() and other.stat().st_size):
        time.sleep(0.05)
    os.kill(os.getppid(), signal.SIGKILL)
    """
    options = ["--log-dir", str(tmp_path / "logs")] if has_folder else []
    found = ended(tmp_path, body, "--redirects", "3", *options)
    assert found[0] == "rank 1 failed: ValueError: bad batch"
    folder = tmp_path / ("logs" if has_folder else "root")
    assert found[1].startswith(f"torchrun left no report; the errors are those in {folder}/")


# ---- Files of single ranks


def left(folder: Path, name: str = "42_x", **errors: object) -> Path:
    """Leave the error files of a run, each named ``attempt_rank``; return the folder of the run."""
    for key, value in errors.items():
        attempt, rank = key[1:].split("_")
        place = folder / name / f"attempt_{attempt}" / rank
        place.mkdir(parents=True)
        text = value if isinstance(value, str) else json.dumps({"message": value})
        (place / "error.json").write_text(text)
    return folder / name


def described(folder: Path, *args: str, env: dict[str, str] | None = None) -> DescribeAppResponse:
    role = Role("trainer", str(folder), entrypoint="bash", args=list(args), env=env or {})
    return DescribeAppResponse("42", AppState.FAILED, roles=[role], started_at=time.time())


def test_which_folder_is_that_of_a_job(tmp_path, monkeypatch):
    """By the id that torchrun was given, or the only one of the job's time; of two nobody knows."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    monkeypatch.chdir(tmp_path)
    said = {"message": "ValueError: x", "extraInfo": {"timestamp": "1795354907"}}

    def first(job: DescribeAppResponse, replicas: int = 1) -> str:
        return next(iter(explain_torchrun(fill_ends({}, job, replicas))), "")

    assert first(described(tmp_path)) == ""
    run = left(tmp_path / "tmp" / "torchelastic_a", a0_3=said)
    assert first(described(tmp_path)) == "rank 3 failed: ValueError: x"
    assert first(described(tmp_path), replicas=2) == ""
    left(tmp_path / "tmp" / "torchelastic_b", a0_1=said)
    assert first(described(tmp_path)) == ""
    own = left(tmp_path / "logs", "none_y", a0_2=said)
    for job in (
        described(tmp_path, "-c", f"torchrun --log_dir={tmp_path}/logs 'a b.py'"),
        described(tmp_path, "-m", "torch.distributed.run", "--log-dir", "logs"),
        described(tmp_path, env={"PET_LOG_DIR": str(tmp_path / "logs")}),
    ):
        assert first(job) == "rank 2 failed: ValueError: x"
    os.utime(own / "attempt_0", (5, 5))
    assert first(described(tmp_path, "--log-dir", "logs")) == ""
    (tmp_path / "logs" / "42_link").symlink_to(run)
    assert first(described(tmp_path, "--log-dir", "logs")) == ""


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("RuntimeError: flat", "RuntimeError: flat"),
        ({"message": "KeyError: 'a'\nmore"}, "KeyError: 'a'"),
        ({"message": "\x1b[31mred"}, "red"),
        ({"message": "E: " + "x" * 10_000}, "E: " + "x" * 297),
        ({"message": 3}, ""),
        (None, ""),
        ("{", ""),
        ('"' + "x" * (2 << 20) + '"', ""),
    ],
    ids=range(8),
)
def test_error_files(tmp_path, value, said):
    raw = value if isinstance(value, str) and value[0] in '{"' else json.dumps({"message": value})
    assert read_error(left(tmp_path, a0_0=raw) / "attempt_0" / "0") == said


def test_an_error_file_that_is_a_pipe(tmp_path):
    os.mkfifo(tmp_path / "error.json")
    assert read_error(tmp_path) == ""


# ---- Where its ranks stood


def end_after_a_take(tmp_path: Path, role: Role, pace: str = "", dumps: Iterable[Path] = ()) -> End:
    """Return what is known of the end of a real job, of which stacks are kept, and dumps where its ranks leave them."""
    runner = Runner(scheduler_params={"local_cwd": {"root": tmp_path / "root"}})
    handle = runner.run(AppDef("hung", [role]), "local_cwd", {})
    try:
        job = wait_until(lambda: (d := runner.job(handle).describe()) and d.has_ended and d, "its end")
        keep_take(hung_take("checkpoint", handle=handle, pace=pace))
        for path in dumps:
            shutil.copy(path, Path(job.insight_dir, role.name))
        return explain_end(runner, handle, runner.job(handle).replica_logs(job))
    finally:
        runner.job(handle).delete()
        runner.close()


@pytest.mark.parametrize(
    ("text", "order"),
    [(TIMEOUT, ("While it ran, ", "rank 0 ended as")), ("KeyError: 1", ("rank 0 failed", "Before that, "))],
)
def test_a_hang_is_told_before_the_timeout_that_it_ended_in(tmp_path, monkeypatch, text, order):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "report").write_text(report((0, 0, 1, 10, text)))
    role = Role("trainer", str(tmp_path), entrypoint="sh", args=["-c", f"cat {tmp_path}/report >&2; exit 1"])
    end = end_after_a_take(tmp_path, role)
    assert [said[: len(words)] for said, words in zip(end.sentences, order, strict=True)] == list(order)


@pytest.mark.parametrize("has_dumps", [True, False])
def test_where_the_ranks_of_a_failed_job_stood(tmp_path, monkeypatch, has_dumps):
    """By the recorders that they left, else by those of the last take; its stack tells what the rank did."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    role = Role("trainer", str(tmp_path), entrypoint="false", num_replicas=4, env={"RANK": "${replica_id}"})
    dumps = (DATA.parent / "fr" / "sleep").iterdir() if has_dumps else ()
    end = end_after_a_take(tmp_path, role, "hangs", dumps)
    stood = [(each.ranks, each.is_culprit) for each in end.standings]
    if has_dumps:
        assert end.sentences[0].startswith("rank 2 never reached all_reduce #46")
        assert end.sentences[-1].startswith("Before that, ")
        assert stood == [((2,), True), ((0, 1, 3), False)]
        assert end.evidence.startswith("flight recorder, 4 of 4 ranks   #46 has ")
    else:
        assert end.sentences[0].startswith("While it ran, ")
        assert stood == [((0,), True), ((1, 2, 3), False)]
        assert end.evidence.startswith("flight recorder, 4 of 4 ranks, ")
    assert end.sentences[-1].endswith("train.py:61 in save_checkpoint; it hung")
    rank, calls = (2, ["main", "train_step"]) if has_dumps else (0, ["main", "go_wrong", "save_checkpoint"])
    assert end.stack_words.startswith(f"What rank {rank} did, by its stack of ")
    assert [frame.function for frame in end.stack][-len(calls) :] == calls
