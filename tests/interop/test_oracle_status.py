"""The text and the JSON of an app's status compared with TorchX's."""

import json

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st
from interop.oracle import cases, check_example, compare, each_difference, theirs
from interop.statuses import ODD_ENDS, ONE_RUNS, STATUSES, built_status

import torchx_tui.specs as our_specs

pytestmark = pytest.mark.usefixtures("torchx")

AREA = "app status"
FILTERS = st.one_of(st.none(), st.lists(st.sampled_from(["trainer", "ps", "none"]), max_size=2))


@given(STATUSES, FILTERS)
@example(("FAILED", 0, "", our_specs.NONE, [("r", [(0, "FAILED", text, None) for text in ODD_ENDS])]), None)
@cases(1500)
def test_the_text_and_the_json(status, roles):
    for act in (
        lambda made: made.format(roles),
        lambda made: json.dumps(made.to_json(roles)),
        lambda made: made.is_terminal(),
        lambda made: made.raise_for_status(),
    ):
        compare(AREA, lambda specs: act(built_status(specs, status)), case=(status, roles))  # noqa: B023


@given(STATUSES)
@cases(500)
def test_repr(status):
    def explain(their, our):
        return "replicas in repr" if any(replicas for _, replicas in status[-1]) else None

    compare(AREA, lambda specs: repr(built_status(specs, status)), explain, status)


@pytest.mark.parametrize("name", [state.name for state in our_specs.AppState])
def test_a_state(name):
    our, their, api = our_specs.AppState[name], theirs().AppState[name], theirs("torchx.specs.api")
    assert (our.value, str(our), repr(our)) == (their.value, str(their), repr(their))
    assert our_specs.is_terminal(our) == api.is_terminal(their)
    assert our_specs.is_started(our) == api.is_started(their)


def test_the_states_are_the_same():
    assert [state.name for state in our_specs.AppState] == [state.name for state in theirs().AppState]


@each_difference(AREA)
def test_each_difference_is_there(difference):
    check_example(difference, lambda specs: {"yaml": yaml, "status": built_status(specs, ONE_RUNS)})
