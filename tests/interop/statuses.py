"""Statuses of apps made at random, as plain data."""

import json

from hypothesis import strategies as st

from torchx_tui.specs.status import NONE, AppState

_RPC = "RuntimeError('On WorkerInfo(id=1, name=trainer:0:0):\n"
_PIECES = st.sampled_from(
    [_RPC, "E('On WorkerInfo(a):\n", "\n')", "')", "\n", "\nException raised from x", "word " * 9, "x", "é", "$"]
)
_MESSAGES = st.one_of(
    st.lists(_PIECES, max_size=6).map("".join), st.text(max_size=10), st.integers(0, 200).map("a ".__mul__)
)
_TIMES = st.sampled_from([None, "1700000000", 1700000000, 17.9, "soon", [], 10**30, -1, True, ""])
_CODES = st.sampled_from([None, 0, 1, "9", "", [], -9])
_NESTED_ERRORS = st.builds(
    lambda message, code, time: {"message": {"message": message, "errorCode": code, "extraInfo": {"timestamp": time}}},
    _MESSAGES, _CODES, _TIMES,
)  # fmt: skip
_FLAT_ERRORS = st.builds(
    lambda message, code, time: {"message": message, "errorCode": code, "timestamp": time}, _MESSAGES, _CODES, _TIMES
)
_OTHER_ERRORS = st.sampled_from(
    [{}, [], 1, None, "text", {"message": 1}, {"message": {"message": 2}}, {"message": {"extraInfo": 1}}]
)
_ODD_ERRORS = st.sampled_from(
    [{"message": {"message": "m", "extraInfo": 1}}, {"message": "m"}, {"message": None, "timestamp": 1}]
)
_ERRORS = st.one_of(
    st.just(NONE),
    st.one_of(_NESTED_ERRORS, _FLAT_ERRORS, _OTHER_ERRORS, _ODD_ERRORS).map(json.dumps),
    st.sampled_from(["", "{", "plain words", "<none>"]),
)
_STATES = st.sampled_from([state.name for state in AppState])
_REPLICAS = st.tuples(st.integers(0, 3), _STATES, _ERRORS, st.sampled_from([None, "10.0.0.1"]))
_ROLES = st.lists(st.tuples(st.sampled_from(["trainer", "ps", "r$x"]), st.lists(_REPLICAS, max_size=3)), max_size=2)
STATUSES = st.tuples(_STATES, st.integers(0, 9), st.sampled_from(["", "why $x", "two\nlines", "é"]), _ERRORS, _ROLES)
# The end of an error before its start, and at once after it.
ODD_ENDS = [json.dumps({"message": text}) for text in ("\n')" + _RPC + "x", _RPC + "')x")]
ONE_RUNS = ("RUNNING", 0, "", NONE, [("trainer", [(0, "RUNNING", NONE, None)])])


def built_status(specs, status):
    """Return the AppStatus of a package."""
    state, restarts, message, error, roles = status
    return specs.AppStatus(
        specs.AppState[state],
        restarts,
        message,
        error,
        "https://host/x" if restarts else None,
        [
            specs.RoleStatus(
                role,
                [
                    specs.ReplicaStatus(number, specs.AppState[name], role, "host", written, address)
                    for number, name, written, address in replicas
                ],
            )
            for role, replicas in roles
        ],
    )
