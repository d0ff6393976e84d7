"""Which error a job failed of, and which ones only follow from it."""

import re

import pytest
from log_writing import LogWriter

from torchx_tui.logs.pattern.engine import PatternError
from torchx_tui.logs.pattern.error_kinds import ERROR_KINDS, KindFinder, cause_pattern, error_pattern
from torchx_tui.logs.pattern.pattern import parse_pattern
from torchx_tui.logs.view.failure import explain_failure, find_cause
from torchx_tui.logs.view.merge import MergedLog

AT = 1_700_000_000.0

TRACEBACK = b"""\
[rank3]: Traceback (most recent call last):
[rank3]:   File "/workspace/train.py", line 212, in train_step
[rank3]:     loss = model(batch).loss

[rank3]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 15.66 GiB
"""
TORCHRUN = b"""\
E1121 10:45:13.040000 4127 torch/distributed/elastic/multiprocessing/api.py:882] failed (exitcode: 1) local_rank: 3
Traceback (most recent call last):
  File "/bin/torchrun", line 8, in <module>
    sys.exit(main())
torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
"""
LOST_PEER = b"RuntimeError: [/gloo/transport/tcp/pair.cc:534] Connection closed by peer [127.0.0.1]:31337\n"


def writers(folder, count):
    return [LogWriter(folder, replica) for replica in range(count)]


def test_the_first_replicas_traceback_is_the_cause_and_the_others_follow(tmp_path):
    zero, one, two = writers(tmp_path, 3)
    for writer in (zero, one, two):
        writer.write(b"step 1\nstep 2\n", at=AT)
    one.write(TRACEBACK, "e", at=AT + 10)
    zero.write(LOST_PEER, "e", at=AT + 11)
    two.write(LOST_PEER, "e", at=AT + 11.5)
    one.write(TORCHRUN, "e", at=AT + 12)
    failure = explain_failure([writer.log for writer in (zero, one, two)], 1)
    assert failure.cause is not None
    assert failure.cause.text == "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 15.66 GiB"
    assert (failure.cause.replica, failure.cause.time, failure.cause.kind.name) == (1, AT + 10, "Python traceback")
    assert [(error.replica, error.is_consequence) for error in failure.consequences] == [
        (0, True),
        (2, True),
        (1, True),
        (1, True),
    ]
    assert failure.consequences[-1].text.endswith("ChildFailedError")


def test_a_replica_that_only_lost_its_peer_is_not_the_cause(tmp_path):
    zero, one = writers(tmp_path, 2)
    one.write(b"ERROR shard 7 is damaged\n", "e", at=AT)
    zero.write(LOST_PEER, "e", at=AT + 1)
    failure = explain_failure([zero.log, one.log], 0)
    assert failure.cause is not None
    assert (failure.cause.replica, failure.cause.text) == (1, "ERROR shard 7 is damaged")
    assert [error.replica for error in failure.consequences] == [0]


def test_where_all_follow_the_first_is_told(tmp_path):
    zero, one = writers(tmp_path, 2)
    zero.write(LOST_PEER, "e", at=AT + 1)
    one.write(LOST_PEER, "e", at=AT)
    failure = explain_failure([zero.log, one.log], 0)
    assert failure.cause is not None
    assert failure.cause.replica == 1


def test_what_was_got_over_long_before_is_left_out(tmp_path):
    (zero,) = writers(tmp_path, 1)
    zero.write(TRACEBACK, "e", at=AT)
    zero.write(b"ERROR disk full\nERROR disk full\n", "e", at=AT + 3600)
    failure = explain_failure([zero.log], 0)
    assert failure.cause is not None
    assert failure.cause.text == "ERROR disk full"
    assert failure.consequences == ()


def test_interleaved_tracebacks_of_workers_and_replicas_are_read_apart(tmp_path):
    zero, one = writers(tmp_path, 2)
    zero.write(
        b"[rank0]: Traceback (most recent call last):\n[rank1]: Traceback (most recent call last):\n", "e", at=AT
    )
    one.write(b"Traceback (most recent call last):\n", "e", at=AT + 0.1)
    zero.write(b'[rank0]:   File "a.py"\n[rank1]: ValueError: one\n[rank0]: ValueError: nought\n', "e", at=AT + 0.2)
    one.write(b'  File "b.py"\nKeyError: 2\n', "e", at=AT + 0.3)
    failure = explain_failure([zero.log, one.log], 1)
    assert failure.cause is not None
    assert failure.cause.text == "KeyError: 2"
    assert failure.consequences == ()
    failure = explain_failure([zero.log, one.log], 0)
    assert failure.cause is not None
    assert failure.cause.text == "ValueError: nought"
    assert [error.text for error in failure.consequences] == ["ValueError: one", "KeyError: 2"]


@pytest.mark.parametrize("prefix", [b"[3]:", b"[default3]:", b"[trainer3]:"])
def test_tracebacks_behind_the_prefixes_of_torchrun_and_of_torch(tmp_path, prefix):
    """torchrun's `--tee` writes one, and torch another one after it."""
    (zero,) = writers(tmp_path, 1)
    lost = TRACEBACK.replace(b"torch.OutOfMemoryError: CUDA", LOST_PEER.strip()).replace(b"rank3", b"rank1")
    for text, number in ((TRACEBACK, b"3"), (lost, b"1")):
        lines = text.replace(b"\n\n", b"\n").splitlines(keepends=True)
        zero.write(b"".join(prefix.replace(b"3", number) + line for line in lines), "e", at=AT)
    zero.write(TORCHRUN, "e", at=AT + 1)
    failure = explain_failure([zero.log], 0)
    assert failure.cause is not None
    assert failure.cause.text == "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 15.66 GiB"
    assert [error.is_consequence for error in failure.consequences] == [True, True, True]


@pytest.mark.parametrize("text", [b"", b"step 1\nstep 2\n"])
def test_no_error(tmp_path, text):
    (zero,) = writers(tmp_path, 1)
    zero.write(text)
    failure = explain_failure([zero.log], 0)
    assert failure.cause is None
    assert failure.consequences == ()


def test_the_settings_add_to_the_table(tmp_path):
    (zero,) = writers(tmp_path, 1)
    zero.write(b"step 1\nPANIC: no coffee\nstep 2\n", at=AT)
    assert explain_failure([zero.log], 0).cause is None
    failure = explain_failure([zero.log], 0, extra_patterns=["^PANIC"])
    assert failure.cause is not None
    assert failure.cause.text == "PANIC: no coffee"
    for faulty in ("(", "a)|(?:b"):
        with pytest.raises(PatternError, match=f"^{re.escape(faulty)} is not a regular expression"):
            error_pattern([faulty])


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("Traceback (most recent call last):", "Python traceback"),
        ("terminate called after throwing an instance of 'c10::Error'", "crash"),
        ("Fatal Python error: Segmentation fault", "crash"),
        ("2026-01-01 10:00:00,000 ERROR trainer.loop failed", "error"),
        ("FATAL: no room", "error"),
        ("E1121 10:45:13.040000 4127 torch/x.cpp:10] cannot bind", "error"),
        ("[E1121 10:45:13.040000 4127 x.cpp:10] cannot bind", "error"),
        ("node3:411:502 [2] NCCL WARN Call to connect failed", "NCCL error"),
        ("torch.distributed.DistBackendError: NCCL error in: x.cpp, ncclUnhandledCudaError", "NCCL error"),
        ("RuntimeError: CUDA error: device-side assert triggered", "CUDA error"),
        ("RuntimeError: CUDA error: CUBLAS_STATUS_NOT_INITIALIZED", "CUDA error"),
        ("torch.OutOfMemoryError: CUDA out of memory.", "out of memory"),
        ("[ 1234.5] Out of memory: Killed process 4127 (python3)", "out of memory"),
        ("Broken pipe", "lost peer"),
        ("[rank0]: Watchdog caught collective operation timeout: WorkNCCL(OpType=ALLREDUCE)", "collective timeout"),
        ("x.ChildFailedError:", "ended by torchrun"),
        ("step 14870 loss 1.6120", None),
        ("0 errors, no warning", None),
        ("INFO: the room of errors", None),
        ("an error, but a fatal error is written otherwise", None),
    ],
)  # fmt: skip
def test_the_kinds_of_errors(line, kind):
    found = KindFinder().kind_of(line)
    assert (found.name if found else None) == kind
    assert error_pattern().matches(line.encode()) == (kind is not None)
    assert cause_pattern().matches(line.encode()) == (found is not None and not found.is_consequence)


def test_no_pattern_of_the_table_is_slow():
    for kind in ERROR_KINDS:
        assert parse_pattern(kind.pattern, regex=True, ignore_case=False).engine.linear, kind.name


def test_the_line_of_the_cause_in_a_log_that_is_read(tmp_path):
    zero, one = writers(tmp_path, 2)
    zero.write(b"step 1\nERROR first\nstep 2\nERROR second\n" + LOST_PEER, "e", at=AT)
    one.write(b"step 1\nERROR other\n", "e", at=AT - 10)

    def line_of(*logs, **options):
        log = MergedLog(logs)
        log.open()
        log.read_older(10, 10_000)
        number = find_cause(log, **options)
        found = None if number is None else log.lines(number, 1)[0].data
        log.close()
        return found

    # Of one replica the last error that does not follow from another; of several the earliest of the last.
    assert line_of(zero.log) == b"ERROR second"
    assert line_of(zero.log, one.log) == b"ERROR other"
    assert line_of(zero.log, stopped=lambda: True) is None
    one.write(b"PANIC\n", at=AT)
    assert line_of(one.log, extra_patterns=["PANIC"]) == b"PANIC"
    empty = LogWriter(tmp_path, 7)
    empty.write(b"step\n")
    assert line_of(empty.log) is None


def test_a_traceback_that_does_not_end_is_told_by_its_first_line(tmp_path):
    head = b"Traceback (most recent call last):\n"
    for number, text in enumerate([head, head + b'  File "a.py"\n' * 401 + b"ValueError: far\n"]):
        writer = LogWriter(tmp_path, number)
        writer.write(text, "e", at=AT)
        cause = explain_failure([writer.log], 0).cause
        assert cause is not None
        assert cause.text == "Traceback (most recent call last)"
    near = LogWriter(tmp_path, 5)
    near.write(head + b'  File "a.py"\n' * 399 + b"ValueError: near\n", "e", at=AT)
    cause = explain_failure([near.log], 0).cause
    assert cause is not None
    assert cause.text == "ValueError: near"


def test_the_last_error_of_a_log_counts_also_where_it_is_its_first_line(tmp_path):
    (zero,) = writers(tmp_path, 1)
    zero.write(b"ERROR alone\n", "e", at=AT)
    cause = explain_failure([zero.log], 0).cause
    assert cause is not None
    assert cause.text == "ERROR alone"


@pytest.mark.parametrize(("age", "told"), [(119.0, 1), (121.0, 0)])
def test_errors_two_minutes_before_the_last_are_told(tmp_path, age, told):
    zero, one, two = writers(tmp_path, 3)
    zero.write(b"ERROR before\n", "e", at=AT)
    one.write(b"ERROR last\n", "e", at=AT + age)
    two.write(LOST_PEER, "e", at=AT + age)
    failure = explain_failure([zero.log, one.log, two.log], 2)
    assert failure.cause is not None
    assert failure.cause.text == ("ERROR before" if told else "ERROR last")


@pytest.mark.parametrize(
    ("text", "is_only"),
    [
        (b"step 1\nValueError: bad\n", True),
        (b"ERROR: retries\nstep 1\nValueError: bad\n", False),
        (b"ValueError: bad\nException ignored in: <f>\nTraceback (most recent call last):\nOSError: closed\n", False),
    ],
)
def test_an_error_is_the_only_one_if_the_log_has_no_other(tmp_path, text, is_only):
    (zero,) = writers(tmp_path, 1)
    zero.write(text, "e", at=AT)
    failure = explain_failure([zero.log], 0)
    assert failure.sentence == "ValueError: bad"
    assert (failure.is_only, failure.consequences) == (is_only, ())


def test_an_error_older_than_those_read_may_be_in_the_log(tmp_path):
    (zero,) = writers(tmp_path, 1)
    zero.write(b"ERROR before\n", "e", at=AT)
    zero.write(b"ERROR last\n", "e", at=AT + 3600)
    assert not explain_failure([zero.log], 0).is_only


def test_last_lines_of_stderr_are_the_reason_without_an_error(tmp_path):
    zero, one = writers(tmp_path, 2)
    zero.write(b"epoch 3\n", "o", at=AT)
    zero.write(b"The weights are damaged.\n 40%|####    | 4/10 [00:01<00:02,  3it/s]\n", "e", at=AT)
    one.write(b"other\n", "e", at=AT + 1)
    failure = explain_failure([zero.log, one.log], 0)
    assert (failure.cause, failure.sentence) == (None, "The weights are damaged.")
    assert failure.last_lines == ("The weights are damaged.",)


def test_text_of_exit_goes_before_a_lost_connection(tmp_path):
    (zero,) = writers(tmp_path, 1)
    zero.write(b"no data in /data\n" + LOST_PEER, "e", at=AT)
    failure = explain_failure([zero.log], 0)
    assert failure.sentence == "no data in /data"
    assert [error.is_consequence for error in failure.consequences] == [True]
