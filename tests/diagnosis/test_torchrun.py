"""The report of torchrun: the cause, its consequences, and the attempts before."""

from __future__ import annotations

import json
import os
import shutil
import sys
import textwrap
import time
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from support.hung import hung_snapshot
from support.tables import toml_table
from support.waiting import TORCH_PATIENCE, wait_until

from torchx_tui.backends.runner import Runner
from torchx_tui.backends.types import DescribeAppResponse
from torchx_tui.diagnosis.failure.explain import Explanation, explain_ranks
from torchx_tui.diagnosis.failure.text import describe_torchruns
from torchx_tui.diagnosis.failure.torchrun import parse_torchrun
from torchx_tui.diagnosis.failure.torchrun_files import add_errors, read_error_file
from torchx_tui.diagnosis.stacks.kept import keep_snapshot
from torchx_tui.specs.roles import AppDef, Role
from torchx_tui.specs.status import AppState

DATA = Path(__file__).parent / "data" / "torchrun"
CASES = toml_table(Path(__file__).with_name("torchrun.toml"))
RULE, THIN = "=" * 60, "-" * 60
TIMEOUT = "RuntimeError: [gloo/unbound_buffer.cc:78] Timed out waiting 40000ms for recv operation to complete"
NCCL = "what(): [Rank 2] Watchdog caught collective operation timeout: WorkNCCL("


def described_ends(*texts: str) -> tuple[str, ...]:
    """Return the sentences about the torchruns with these logs."""
    ends = [parse_torchrun(text.splitlines()) for text in texts]
    return tuple(describe_torchruns([end for end in ends if end is not None]))


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


def log_of(parts: list[Any]) -> str:
    """Return a log of texts and of reports of failures."""
    text = "".join(part if isinstance(part, str) else report(*part) for part in parts)
    return text.replace("{timeout}", TIMEOUT).replace("{nccl}", NCCL)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_ends_of_torchruns(case):
    logs = [(DATA / f"{case['recorded']}.log").read_text()] if "recorded" in case else map(log_of, case["logs"])
    told = described_ends(*logs)
    if "first" in case:
        assert told[0].startswith(case["first"])
    else:
        assert [*told] == [sentence.replace("{timeout}", TIMEOUT) for sentence in case["told"]]


def test_a_rank_that_aborts():
    """What C++ says at its end is its error."""
    cause, follows = described_ends((DATA / "mismatch.log").read_text())
    assert cause.startswith("rank 0 failed: killed by SIGABRT, gloo::EnforceNotMet: ")
    assert "op.preamble.length <= op.nbytes" in cause
    assert follows == "torchrun stopped ranks 1-3"


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
    assert described_ends(text) == ()
    assert time.process_time() - began < 5


def test_long_error_is_shortened():
    (sentence,) = described_ends(report((0, 0, 1, 1, "ValueError: " + "x" * 100_000)))
    assert len(sentence) < 400


def explained(runner: Runner, handle: str, described: DescribeAppResponse) -> tuple[str, ...]:
    found = explain_ranks(runner, handle, described, runner.job(handle).replica_logs(described))
    return found.sentence, *found.details


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
        return explained(runner, handle, described)
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
    assert "torchrun stopped rank 0" in found


@needs_torch
@pytest.mark.parametrize("options", [[], ["--log-dir", "own/logs"]], ids=["", "log-dir"])
def test_real_run_with_errors_in_error_files_only(tmp_path, monkeypatch, options):
    """torchrun reports the last attempt, and with redirected output nothing of the others is in its log."""
    monkeypatch.chdir(tmp_path)
    body = "if RANK == AGAIN:\n    raise KeyError('batch ' + AGAIN)"
    found = ended(tmp_path, body, "--redirects", "3", "--max-restarts", "1", *options)
    assert found[0] == "rank 1 failed: exit 1, KeyError: 'batch 1'"
    assert found[-1] == "torchrun restarted its ranks; attempt 1 of 2 failed: rank 0, exit 1, KeyError: 'batch 0'"


@needs_torch
def test_a_real_run_whose_torchrun_was_killed(tmp_path):
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
    found = ended(tmp_path, body, "--redirects", "3")
    assert found[0] == "rank 1 failed: ValueError: bad batch"
    assert found[1].startswith(f"torchrun left no report; its ranks' errors are in {tmp_path}/root/")


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


def test_log_folder_of_a_job(tmp_path):
    """The only run beside the logs of a local job, or the one in the report."""
    said = {"message": "ValueError: x", "extraInfo": {"timestamp": "1795354907"}}
    role = Role("trainer", str(tmp_path), entrypoint="bash")
    job = DescribeAppResponse("42", AppState.FAILED, roles=[role], log_dir=str(tmp_path))
    assert add_errors({}, job) == []
    left(tmp_path / "torchelastic" / "trainer", "none_y", a0_2=said)
    assert describe_torchruns(add_errors({}, job))[0] == "rank 2 failed: ValueError: x"
    # Of two runs, either may be the last.
    run = left(tmp_path / "torchelastic" / "trainer", "none_z", a0_1=said)
    assert add_errors({}, job) == []
    path = run / "attempt_0" / "1" / "error.json"
    end = parse_torchrun(report((1, 1, 7, 10, "<N/A>")).replace("<N/A>", str(path), 1).splitlines())
    assert end
    assert describe_torchruns(add_errors({0: end}, job)) == ["rank 1 failed: exit 7, ValueError: x"]


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("RuntimeError: flat", "RuntimeError: flat"),
        ({"message": "KeyError: 'a'\nmore"}, "KeyError: 'a'"),
        ({"message": "\x1b[31mred"}, "red"),
        ({"message": "E: " + "x" * 10_000}, "E: " + "x" * 296 + "…"),
        ({"message": 3}, ""),
        (None, ""),
        ("{", ""),
        ('"' + "x" * (2 << 20) + '"', ""),
    ],
    ids=range(8),
)
def test_error_files(tmp_path, value, said):
    raw = value if isinstance(value, str) and value[0] in '{"' else json.dumps({"message": value})
    assert read_error_file(left(tmp_path, a0_0=raw) / "attempt_0" / "0") == said


def test_error_file_that_is_a_pipe(tmp_path):
    os.mkfifo(tmp_path / "error.json")
    assert read_error_file(tmp_path) == ""


# ---- Where its ranks stood


def end_after_a_take(tmp_path: Path, role: Role, pace: str = "", dumps: Iterable[Path] = ()) -> Explanation:
    """Return what is known of the end of a real job, of which stacks are kept, and dumps where its ranks leave them."""
    runner = Runner(scheduler_params={"local_cwd": {"root": tmp_path / "root"}})
    handle = runner.run(AppDef("hung", [role]), "local_cwd", {})
    try:
        job = wait_until(lambda: (d := runner.job(handle).describe()) and d.has_ended and d, "its end")
        keep_snapshot(hung_snapshot("checkpoint", handle=handle, pace=pace))
        for path in dumps:
            shutil.copy(path, Path(job.insight_dir, role.name))
        return explain_ranks(runner, handle, job, runner.job(handle).replica_logs(job))
    finally:
        runner.job(handle).delete()
        runner.close()


@pytest.mark.parametrize(
    ("text", "order"),
    [
        (TIMEOUT, ("While it ran, ", "a collective timed out on rank 0")),
        ("KeyError: 1", ("rank 0 failed", "Before that, ")),
    ],
)
def test_hang_comes_before_its_timeout(tmp_path, text, order):
    (tmp_path / "report").write_text(report((0, 0, 1, 10, text)))
    role = Role("trainer", str(tmp_path), entrypoint="sh", args=["-c", f"cat {tmp_path}/report >&2; exit 1"])
    end = end_after_a_take(tmp_path, role)
    assert [said[: len(words)] for said, words in zip((end.sentence, *end.details), order, strict=True)] == list(order)


@pytest.mark.parametrize("has_dumps", [True, False])
def test_rank_positions_of_a_failed_job(tmp_path, has_dumps):
    """By the recorders that they left, else by those of the last take; its stack tells what the rank did."""
    role = Role("trainer", str(tmp_path), entrypoint="false", num_replicas=4, env={"RANK": "${replica_id}"})
    dumps = (DATA.parent / "fr" / "sleep").iterdir() if has_dumps else ()
    end = end_after_a_take(tmp_path, role, "hangs", dumps)
    stood = [(each.ranks, each.is_blocking) for each in end.positions]
    if has_dumps:
        assert end.sentence.startswith("rank 2 never reached all_reduce #46")
        assert [end.sentence, *end.details][-1].startswith("Before that, ")
        assert stood == [((2,), True), ((0, 1, 3), False)]
        assert end.evidence.startswith("flight recorder, 4 of 4 ranks   #46 has ")
    else:
        assert end.sentence.startswith("While it ran, ")
        assert stood == [((0,), True), ((1, 2, 3), False)]
        assert end.evidence.startswith("flight recorder, 4 of 4 ranks, ")
    assert [end.sentence, *end.details][-1].endswith("train.py:61 in save_checkpoint; the job hung")
    rank, calls = (2, ["main", "train_step"]) if has_dumps else (0, ["main", "go_wrong", "save_checkpoint"])
    assert end.stack_title.startswith(f"Stack of rank {rank} at ")
    assert [frame.function for frame in end.stack][-len(calls) :] == calls
