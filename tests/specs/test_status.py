"""How statuses are told in text and JSON."""

from __future__ import annotations

import inspect
import json

import pytest
import yaml

from torchx_tui.specs.status import AppState, AppStatus, AppStatusError, ReplicaState, ReplicaStatus, RoleStatus

NESTED = {"message": {"message": "ValueError: bad", "errorCode": 3, "extraInfo": {"timestamp": "1700000000"}}}


def status(*replicas: ReplicaStatus) -> AppStatus:
    return AppStatus(AppState.FAILED, 1, "why", "<NONE>", "http://x", [RoleStatus("trainer", list(replicas))])


def replica(number: int, state: ReplicaState, error: str = "<NONE>") -> ReplicaStatus:
    return ReplicaStatus(number, state, "trainer", "host", error)


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
