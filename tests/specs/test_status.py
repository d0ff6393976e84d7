"""How statuses are told in text and JSON."""

from __future__ import annotations

import inspect
import json
from datetime import datetime

import pytest
import yaml

from torchx_tui.specs.status import AppState, AppStatus, AppStatusError, ReplicaState, ReplicaStatus, RoleStatus

NESTED = {"message": {"message": "ValueError: bad", "errorCode": 3, "extraInfo": {"timestamp": "1700000000"}}}


def status(*replicas: ReplicaStatus) -> AppStatus:
    return AppStatus(AppState.FAILED, 1, "why", "<NONE>", "http://x", [RoleStatus("trainer", list(replicas))])


def replica(number: int, state: ReplicaState, error: str = "<NONE>") -> ReplicaStatus:
    return ReplicaStatus(number, state, "trainer", "host", error)


def test_text_is_torchxs():
    app = status(replica(1, ReplicaState.FAILED), replica(0, ReplicaState.SUCCEEDED))
    assert app.format() == (
        "AppStatus:\n"
        "    State: FAILED\n"
        "    Num Restarts: 1\n"
        "    Roles: \n"
        " *trainer[0]:SUCCEEDED\n"
        "  trainer[1]:FAILED (no reply file)\n"
        "    Msg: why\n"
        "    Structured Error Msg: <NONE>\n"
        "    UI URL: http://x\n"
        "    "
    )


@pytest.mark.parametrize(
    "error",
    [NESTED, {"message": "ValueError: bad", "errorCode": 3, "timestamp": 1700000000}],
    ids=["torchelastic", "flat"],
)
def test_an_error_file_is_told(error):
    text = status(replica(0, ReplicaState.FAILED, json.dumps(error))).format()
    assert (
        " *trainer[0]:FAILED (exitcode: 3)\n"
        f"        timestamp: {datetime.fromtimestamp(1700000000)}\n"
        "        hostname: host\n"
        "        error_msg: ValueError: bad\n"
    ) in text


def error_text(message: str) -> str:
    return status(replica(0, ReplicaState.FAILED, json.dumps({"message": message}))).format()


def test_long_messages_are_broken_at_spaces():
    text = error_text("word " * 40)
    lines = [line for line in text.splitlines() if "word" in line]
    assert len(lines) == 3
    assert lines[0].startswith("        error_msg: word")
    assert all(line.startswith("                word") for line in lines[1:])


def test_wrappings_of_messages_are_taken_off():
    assert "error_msg: CUDA error: lost\n" in error_text("CUDA error: lost\nException raised from here\nmore")
    # It is cut before the first space that is behind 80 characters, so that this one has less.
    wrapped = "RuntimeError('On WorkerInfo(id=1, name=trainer:0:0):\nValueError: bad\n')"
    assert f"error_msg: {wrapped}\n" in error_text(f"xx {wrapped}yy")
    assert "error_msg: a\n')RuntimeError('On WorkerInfo(b):\n" in error_text("a\n')RuntimeError('On WorkerInfo(b):\n")


@pytest.mark.parametrize("error", ["not json", "[1]", '{"message": 3}', '{"other": "x"}'])
def test_what_is_neither_form_is_shown_as_it_is(error):
    assert f"Roles: {error}\n" in status(replica(0, ReplicaState.FAILED, error)).format()


@pytest.mark.parametrize("timestamp", [None, "soon", 1e300, []])
def test_an_odd_timestamp_is_no_reason_to_fail(timestamp):
    error = json.dumps({"message": "bad", "timestamp": timestamp})
    text = status(replica(0, ReplicaState.FAILED, error)).format()
    assert "timestamp: <N/A>" in text
    assert "(exitcode: <N/A>)" in text


def test_json_has_torchxs_keys_and_ours_where_they_say_something():
    plain = replica(0, ReplicaState.RUNNING)
    ended = ReplicaStatus(1, ReplicaState.FAILED, "trainer", "host", exit_code=1, signal="SIGKILL", restarts=2)
    tree = json.loads(json.dumps(status(plain, ended).to_json()))
    assert tree["state"] == "FAILED"
    assert tree["url"] == "http://x"
    first, second = tree["roles"][0]["replicas"]
    assert first == {
        "id": 0,
        "state": 3,
        "role": "trainer",
        "hostname": "host",
        "structured_error_msg": "<NONE>",
        "hostaddr": "host",
    }
    assert {"exit_code": 1, "signal": "SIGKILL", "restarts": 2}.items() <= second.items()
    assert "pid" not in second


def test_roles_can_be_chosen():
    app = status(replica(0, ReplicaState.RUNNING))
    app.roles.append(RoleStatus("reader", []))
    assert [role["role"] for role in app.to_json(["reader"])["roles"]] == ["reader"]
    assert "trainer" not in app.format(["reader"])


def test_repr_is_plain_yaml():
    app = status(replica(0, ReplicaState.FAILED))
    app.structured_error_msg = json.dumps(NESTED)
    tree = yaml.safe_load(repr(app))["AppStatus"]
    assert tree["state"] == "FAILED (5)"
    assert tree["structured_error_msg"] == NESTED
    assert tree["roles"][0]["replicas"][0]["state"] == "FAILED (5)"


def test_only_success_raises_nothing():
    AppStatus(AppState.SUCCEEDED).raise_for_status()
    for state in (AppState.FAILED, AppState.RUNNING, AppState.CANCELLED):
        with pytest.raises(AppStatusError) as caught:
            AppStatus(state, msg="why").raise_for_status()
        assert caught.value.status.state is state
        assert str(caught.value) == f"The job did not succeed: {state.name}: why"


def test_what_torchx_has_not_is_given_by_name():
    names = ("exit_code", "signal", "reason", "pid", "node", "started_at", "finished_at", "restarts")
    made = ReplicaStatus(0, ReplicaState.RUNNING, "r", "h", **{name: name for name in names})  # type: ignore[arg-type]
    for name in names:
        assert getattr(made, name) == name
        assert inspect.signature(ReplicaStatus).parameters[name].kind is inspect.Parameter.KEYWORD_ONLY
