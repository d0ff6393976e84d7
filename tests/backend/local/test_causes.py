"""Why an app failed, from what its replicas left."""

from pathlib import Path

import pytest
from backend.local.support import entry, python_app, role
from support.tables import toml_table

from torchx_tui.backends.local.describe import describe_run, list_run
from torchx_tui.specs.roles import AppDef
from torchx_tui.specs.status import NONE

CASES = toml_table(Path(__file__).with_name("causes.toml"))


@pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
def test_cause_of_a_failure(make, case):
    run = make(entry(exit_code=case.get("exit", 1), finished_at=30.0), state="FAILED")
    folder = run.replica_folder("r", 0)
    folder.mkdir(parents=True)
    for key, name in (("error", "error.json"), ("stderr", "stderr.log"), ("stdout", "stdout.log")):
        if key in case:
            (folder / name).write_text(case[key])
    described = describe_run(run)
    (replica,) = described.roles_statuses[0].replicas
    text = case.get("text", NONE)
    assert described.msg == list_run(run).msg == case["why"]
    assert (described.structured_error_msg, replica.structured_error_msg) == (text, text)


def test_error_at_the_end_of_a_long_file(make):
    run = make(entry(exit_code=1, error_file=str(Path("/none"))), state="FAILED")
    folder = run.replica_folder("r", 0)
    folder.mkdir(parents=True)
    (folder / "stderr.log").write_text("noise\n" * 200_000 + "KeyError: 3\n")
    assert list_run(run).msg == "KeyError: 3: r/0, exit 1"


def test_error_file_elsewhere(make, tmp_path):
    (tmp_path / "other.json").write_bytes(b'{"message": "from \xff elsewhere"}')
    run = make(entry(exit_code=1, error_file=str(tmp_path / "other.json")), state="FAILED")
    assert list_run(run).msg == "from � elsewhere: r/0, exit 1"


def test_traceback_is_the_cause(local):
    program = "import sys\nprint('x', file=sys.stderr)\nif ${replica_id} == 2: raise ValueError('lr must be positive')"
    run = local.finish(python_app(program, name="trainer", replicas=3))
    described = local.describe(run.app_id)
    assert described.msg == local.scheduler.list()[0].msg == "ValueError: lr must be positive: trainer/2, exit 1"
    assert described.structured_error_msg.startswith("Traceback (most recent call last):\n")
    assert described.structured_error_msg.endswith("\nValueError: lr must be positive")


def test_lost_peer_is_not_the_cause(local):
    lost = role("echo 'RuntimeError: Connection closed by peer. GLHF!' >&2; exit 1", name="first")
    second = role("sleep 0.4; echo 'ValueError: loss is nan' >&2; exit 3", name="second")
    described = local.describe(local.finish(AppDef("job", [lost, second])).app_id)
    assert described.msg == "ValueError: loss is nan: second/0, exit 3"
    errors = {status.role: status.replicas[0].structured_error_msg for status in described.roles_statuses}
    assert errors == {"first": NONE, "second": "ValueError: loss is nan"}
