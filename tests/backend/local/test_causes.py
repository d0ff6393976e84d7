"""Why an app failed, from what its replicas left."""

from __future__ import annotations

import json
import sys

import pytest
from backend.local.support import Local, role

from torchx_tui.backends.local.describe import why
from torchx_tui.backends.types import DescribeAppResponse
from torchx_tui.specs import NONE, AppDef, Role


def failed(local: Local, *roles: Role) -> DescribeAppResponse:
    app_id = local.scheduler.submit(AppDef("job", list(roles)), {})
    local.ended(app_id)
    described = local.scheduler.describe(app_id)
    assert described is not None
    assert local.scheduler.list()[0].msg == described.msg
    return described


def test_a_traceback_is_the_cause(local: Local) -> None:
    program = "import sys\nprint('x', file=sys.stderr)\nif ${replica_id} == 2: raise ValueError('lr must be positive')"
    described = failed(local, Role("trainer", "", entrypoint=sys.executable, args=["-c", program], num_replicas=3))
    assert described.msg == "ValueError: lr must be positive: trainer/2, exit 1"
    assert described.structured_error_msg.startswith("Traceback (most recent call last):\n")
    assert described.structured_error_msg.endswith("\nValueError: lr must be positive")


def test_the_first_one_that_failed_is_the_cause(local: Local) -> None:
    described = failed(local, role("sleep 0.4; exit 1", name="late"), role("exit 2", name="early"))
    assert described.msg == "exit 2: early/0"
    assert described.structured_error_msg == NONE


@pytest.mark.parametrize(
    ("written", "words"),
    [
        ({"message": {"message": "ValueError: flat tyre", "errorCode": 1, "extraInfo": {"timestamp": 1}}}, True),
        ({"message": "ValueError: flat tyre", "errorCode": 1, "timestamp": 1}, True),
        ({"something": "else"}, False),
    ],
    ids=["nested", "flat", "other"],
)
def test_an_error_file_is_the_cause(local: Local, written: dict, words: bool) -> None:
    text = json.dumps(written)
    described = failed(
        local, role("printf '%s' \"$WRITTEN\" > $TORCHELASTIC_ERROR_FILE; exit 1", env={"WRITTEN": text})
    )
    assert described.structured_error_msg == text
    assert described.msg == ("ValueError: flat tyre: r/0, exit 1" if words else "exit 1: r/0")
    assert described.roles_statuses[0].replicas[0].structured_error_msg == text


def test_what_a_job_says_cannot_drive_the_terminal(local: Local) -> None:
    script = (
        r"printf 'Traceback (most recent call last):\n  File x\nValueError: \033]0;title\007red\033[31m\n' >&2; exit 1"
    )
    assert failed(local, role(script)).msg == "ValueError: red: r/0, exit 1"


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("kill -9 $$$$", "killed by SIGKILL: r/0"),
        ("exit 3", "exit 3: r/0"),
        ("exit 137", "exit 137 (SIGKILL): r/0"),
    ],
)
def test_how_it_ended(local: Local, script: str, words: str) -> None:
    assert failed(local, role(script)).msg == words


def test_success_needs_no_words(local: Local) -> None:
    app_id = local.start("echo 'Traceback (most recent call last):' >&2")
    run = local.ended(app_id)
    assert why(run) == ""
    described = local.scheduler.describe(app_id)
    assert described is not None
    assert (described.msg, described.structured_error_msg) == (NONE, NONE)


_TORCHRUN = """\
W0101 torch/distributed/run.py:774] warning
[rank1]: Traceback (most recent call last):
[rank1]:   File "train.py", line 3, in <module>
[rank1]:     raise RuntimeError("bad shard")
[rank1]: RuntimeError: bad shard
[rank0]: Traceback (most recent call last):
[rank0]:   File "train.py", line 5, in <module>
[rank0]: RuntimeError: Connection closed by peer [127.0.0.1]:45954. GLHF!
E0101 elastic/multiprocessing/api.py:833] failed (exitcode: 1) local_rank: 1
Traceback (most recent call last):
  File "/bin/torchrun", line 8, in <module>
    sys.exit(main())
torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
====
train.py FAILED
"""


def test_neither_torchrun_nor_a_lost_connection_is_the_cause(local: Local) -> None:
    described = failed(local, role("printf '%s' \"$WRITTEN\" >&2; exit 1", env={"WRITTEN": _TORCHRUN}))
    assert described.msg == "RuntimeError: bad shard: r/0, exit 1"
    lines = described.structured_error_msg.splitlines()
    assert (lines[0], lines[-1]) == ("Traceback (most recent call last):", "RuntimeError: bad shard")


def test_a_replica_that_lost_its_peer_is_not_the_cause(local: Local) -> None:
    lost = role("echo 'RuntimeError: Connection closed by peer. GLHF!' >&2; exit 1", name="first")
    described = failed(local, lost, role("sleep 0.4; echo 'ValueError: loss is nan' >&2; exit 3", name="second"))
    assert described.msg == "ValueError: loss is nan: second/0, exit 3"
    errors = {status.role: status.replicas[0].structured_error_msg for status in described.roles_statuses}
    assert errors == {"first": NONE, "second": "ValueError: loss is nan"}


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("echo 'KeyError: 3'; exit 1", "KeyError: 3: r/0, exit 1"),  # on stdout
        ("echo 'no data in /data' >&2; exit 1", "no data in /data: r/0, exit 1"),
        ("echo 'no data in /data'; exit 1", "exit 1: r/0"),
        ("echo 'no data in /data' >&2; kill -9 $$$$", "killed by SIGKILL: r/0"),
        ("pythn train.py", "not found: r/0, exit 127"),
        ("echo '--lr is missing' >&2; exit 2", "--lr is missing: r/0, exit 2"),
    ],
)
def test_an_error_without_a_traceback(local: Local, script: str, said: str) -> None:
    assert failed(local, role(script)).msg.endswith(said)


def test_an_error_at_the_end_of_a_long_file(local: Local) -> None:
    written = "yes noise | head -n 200000 >&2; "
    assert failed(local, role(written + "echo 'KeyError: 3' >&2; exit 1")).msg == "KeyError: 3: r/0, exit 1"
