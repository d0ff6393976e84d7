"""Which error a job failed of, and which ones only follow from it."""

from pathlib import Path

import pytest
from log_reading import opened
from log_writing import LogWriter
from support.tables import toml_table

from torchx_tui.logs.lines.failure import explain_failure, find_cause
from torchx_tui.logs.lines.matches import Matches
from torchx_tui.logs.pattern.error_kinds import KindFinder, error_pattern

DATA = Path(__file__).with_name("data")
FAILURES = toml_table(DATA / "failures.toml")
AT = 1_700_000_000.0
TRACEBACK = """\
[rank3]: Traceback (most recent call last):
[rank3]:   File "/workspace/train.py", line 212, in train_step
[rank3]:     loss = model(batch).loss

[rank3]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 15.66 GiB
"""
TORCHRUN = """\
E1121 10:45:13.040000 4127 torch/distributed/elastic/multiprocessing/api.py:882] failed (exitcode: 1) local_rank: 3
Traceback (most recent call last):
  File "/bin/torchrun", line 8, in <module>
    sys.exit(main())
torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
"""
LOST = "RuntimeError: [/gloo/transport/tcp/pair.cc:534] Connection closed by peer [127.0.0.1]:31337\n"


def write(folder, *chunks):
    """Write chunks of (replica, seconds, text), as stderr unless a letter follows; return the replicas' logs."""
    writers = [LogWriter(folder, replica) for replica in range(1 + max((chunk[0] for chunk in chunks), default=0))]
    for replica, seconds, text, *stream in chunks:
        text = text.replace("{lost}", LOST).replace("{traceback}", TRACEBACK).replace("{torchrun}", TORCHRUN)
        writers[replica].write(text.encode(), *(stream or "e"), AT + seconds)
    return [writer.log for writer in writers]


def cause_of(logs, **options):
    cause = explain_failure(logs, 0, **options).cause
    assert cause
    return cause.text


def as_text(error):
    return error and f"{error.replica}{'<' * error.is_consequence} {error.text}"


@pytest.mark.parametrize("case", FAILURES.values(), ids=FAILURES)
def test_cause_of_a_failure(tmp_path, case):
    failure = explain_failure(write(tmp_path, *case["chunks"]), case.get("first_failed", 0))
    cause = case.get("cause", "").replace("{lost}", LOST.strip())
    assert (as_text(failure.cause) or "") == cause
    assert [as_text(error) for error in failure.consequences] == [
        text.replace("{lost}", LOST.strip()) for text in case.get("consequences", [])
    ]
    last_lines = case.get("last_lines", [])
    assert (failure.is_only, list(failure.last_lines)) == (case.get("is_only", False), last_lines)
    if "kind" in case:
        assert failure.cause
        assert (failure.cause.kind.name, failure.cause.time) == (case["kind"], AT + case["at"])
    assert failure.sentence == (cause.partition(" ")[2] or "".join(last_lines[-1:]))


@pytest.mark.parametrize("row", toml_table(DATA / "kinds.toml")["kinds"], ids=lambda row: row[0][:40])
def test_kind_of_an_error(row):
    line, *kind = row
    found = KindFinder().kind_of(line)
    assert ([found.name] if found else []) == kind
    assert error_pattern().matches(line.encode()) == bool(kind)


def test_error_dropped_while_it_is_read_is_left_out(tmp_path, monkeypatch):
    log = opened(*write(tmp_path, (0, 0, "ERROR first\n" + "step\n" * 200_000 + "ERROR second\n")))
    found = Matches.find

    def find_and_drop(matches, line, forward, stopped):
        number = found(matches, line, forward, stopped)
        if number != -1:
            log.drop_before(-1)
        return number

    monkeypatch.setattr(Matches, "find", find_and_drop)
    assert find_cause(log) == -1
    log.close()


def test_line_of_the_cause_in_an_open_log(tmp_path):
    zero, one, two = write(
        tmp_path,
        (0, 0, "step 1\nERROR first\nstep 2\nERROR second\n{lost}"),
        (1, -10, "step 1\nERROR other\n"),
        (2, 0, "PANIC\n"),
    )

    def line_of(*logs, **options):
        log = opened(*logs)
        number = find_cause(log, **options)
        found = None if number is None else log.lines(number, 1)[0].data
        log.close()
        return found

    # Of one replica the last error that does not follow from another; of several the earliest of the last.
    assert line_of(zero) == b"ERROR second"
    assert line_of(zero, one) == b"ERROR other"
    assert line_of(zero, stopped=lambda: True) is None
    assert [line_of(two), line_of(two, extra_patterns=["PANIC"])] == [None, b"PANIC"]


@pytest.mark.parametrize(("frames", "text"), [(399, "ValueError: bad"), (401, "Traceback (most recent call last)")])
def test_traceback_is_read_for_400_lines(tmp_path, frames, text):
    traceback = "Traceback (most recent call last):\n" + '  File "a.py"\n' * frames + "ValueError: bad\n"
    assert cause_of(write(tmp_path, (0, 0, traceback))) == text
