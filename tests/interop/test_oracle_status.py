"""The text and the JSON of an app's status held against TorchX's."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st
from interop.oracle import cases, hold, names_of, outcome, theirs

import torchx_tui.specs as our_specs

RPC = "RuntimeError('On WorkerInfo(id=1, name=trainer:0:0):\n"
# The end of an error before its start, and at once after it.
ODD_ENDS = [json.dumps({"message": text}) for text in ("\n')" + RPC + "x", RPC + "')x")]
PIECES = st.sampled_from(
    [RPC, "E('On WorkerInfo(a):\n", "\n')", "')", "\n", "\nException raised from x", "word " * 9, "x", "é", "$"]
)
MESSAGES = st.one_of(
    st.lists(PIECES, max_size=6).map("".join), st.text(max_size=10), st.integers(0, 200).map("a ".__mul__)
)
TIMES = st.sampled_from([None, "1700000000", 1700000000, 17.9, "soon", [], 10**30, -1, True, ""])
CODES = st.sampled_from([None, 0, 1, "9", "", [], -9])
NESTED_ERRORS = st.builds(
    lambda message, code, time: {"message": {"message": message, "errorCode": code, "extraInfo": {"timestamp": time}}},
    MESSAGES, CODES, TIMES,
)  # fmt: skip
FLAT_ERRORS = st.builds(
    lambda message, code, time: {"message": message, "errorCode": code, "timestamp": time}, MESSAGES, CODES, TIMES
)
OTHER_ERRORS = st.sampled_from(
    [{}, [], 1, None, "text", {"message": 1}, {"message": {"message": 2}}, {"message": {"extraInfo": 1}}]
)
ODD_ERRORS = st.sampled_from(
    [{"message": {"message": "m", "extraInfo": 1}}, {"message": "m"}, {"message": None, "timestamp": 1}]
)
ERRORS = st.one_of(
    st.just(our_specs.NONE),
    st.one_of(NESTED_ERRORS, FLAT_ERRORS, OTHER_ERRORS, ODD_ERRORS).map(json.dumps),
    st.sampled_from(["", "{", "plain words", "<none>"]),
)
STATES = st.sampled_from([state.name for state in our_specs.AppState])
REPLICAS = st.tuples(st.integers(0, 3), STATES, ERRORS, st.sampled_from([None, "10.0.0.1"]))
ROLES = st.lists(st.tuples(st.sampled_from(["trainer", "ps", "r$x"]), st.lists(REPLICAS, max_size=3)), max_size=2)
STATUSES = st.tuples(STATES, st.integers(0, 9), st.sampled_from(["", "why $x", "two\nlines", "é"]), ERRORS, ROLES)
FILTERS = st.one_of(st.none(), st.lists(st.sampled_from(["trainer", "ps", "none"]), max_size=2))


def made(specs: Any, status: tuple[Any, ...]) -> Any:
    state, restarts, message, error, roles = status
    return specs.AppStatus(
        specs.AppState[state],
        num_restarts=restarts,
        msg=message,
        structured_error_msg=error,
        ui_url="https://host/x" if restarts else None,
        roles=[
            specs.RoleStatus(
                role,
                [
                    specs.ReplicaStatus(number, specs.ReplicaState[name], role, "host", written, address)
                    for number, name, written, address in replicas
                ],
            )
            for role, replicas in roles
        ],
    )


def unexplained(_their: Any, _our: Any) -> None:
    return None


@given(STATUSES, FILTERS)
@example(("FAILED", 0, "", our_specs.NONE, [("r", [(0, "FAILED", text, None) for text in ODD_ENDS])]), None)
@cases(1500)
def test_the_text_and_the_json(torchx: str, status: tuple[Any, ...], roles: list[str] | None) -> None:
    their_status, our_status = made(theirs("torchx.specs"), status), made(our_specs, status)
    their_text, our_text = outcome(lambda: their_status.format(roles)), outcome(lambda: our_status.format(roles))
    hold("app status", their_text, our_text, unexplained, (status, roles))
    their_json, our_json = json.dumps(their_status.to_json(roles)), json.dumps(our_status.to_json(roles))
    hold("app status", their_json, our_json, unexplained, (status, roles))
    assert our_status.is_terminal() == their_status.is_terminal()
    their_end, our_end = outcome(their_status.raise_for_status), outcome(our_status.raise_for_status)
    hold("app status", their_end, our_end, unexplained, status)


@given(STATUSES)
@cases(500)
def test_repr(torchx: str, status: tuple[Any, ...]) -> None:
    def explain(_their: Any, _our: Any) -> str | None:
        return "replicas in repr" if any(replicas for _, replicas in status[-1]) else None

    their_text, our_text = repr(made(theirs("torchx.specs"), status)), repr(made(our_specs, status))
    hold("app status", their_text, our_text, explain, status)


def test_states(torchx: str) -> None:
    their_specs = theirs("torchx.specs")
    api = theirs("torchx.specs.api")
    assert [(state.name, state.value, str(state), repr(state)) for state in our_specs.AppState] == [
        (state.name, state.value, str(state), repr(state)) for state in their_specs.AppState
    ]
    for state in their_specs.AppState:
        assert our_specs.is_terminal(our_specs.AppState[state.name]) == api.is_terminal(state)
        assert our_specs.is_started(our_specs.AppState[state.name]) == api.is_started(state)


@pytest.mark.parametrize("name", names_of("app status"))
def test_each_difference_is_there(torchx: str, name: str) -> None:
    assert name == "replicas in repr"
    status = ("RUNNING", 0, "", our_specs.NONE, [("trainer", [(0, "RUNNING", our_specs.NONE, None)])])
    with pytest.raises(yaml.YAMLError):
        yaml.safe_load(repr(made(theirs("torchx.specs"), status)))
    read = yaml.safe_load(repr(made(our_specs, status)))
    assert read["AppStatus"]["roles"][0]["replicas"][0]["state"] == "RUNNING (3)"


def test_words_and_keys_are_the_same(torchx: str) -> None:
    """What stands for nothing, and the keys of an app's metadata."""
    names = ("ALL", "MISSING", "NA", "NONE", "UNKNOWN", "TORCHX_CONTEXT_NAME")
    keys = ("CONTEXT", "VERSION", "SCHEDULER", "ROLES_PREFIX")
    their_specs = theirs("torchx.specs")
    assert {name: getattr(our_specs, name) for name in names} == {name: getattr(their_specs, name) for name in names}
    for key in keys:
        assert getattr(our_specs.app_metadata, key) == getattr(their_specs.app_metadata, key)
