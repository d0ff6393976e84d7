"""Named resources compared with TorchX's: each of them, and how they are looked up."""

import difflib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from interop.oracle import Refused, cases, check_example, compare, each_difference, outcome, theirs
from interop.plain_data import plain

import torchx_tui.specs as our_specs

pytestmark = [
    pytest.mark.usefixtures("torchx"),
    pytest.mark.filterwarnings("ignore:.*deprecated:FutureWarning"),
]

AREA = "named resources"
NAMES = sorted(our_specs.named_resources)
# Names as they are mistyped: another case, a letter too many or too few.
MISTYPED = st.builds(
    lambda name, change: change(name),
    st.sampled_from(NAMES),
    st.sampled_from([str.upper, str.title, str.swapcase, str.lower, lambda name: name[1:], "{}x".format, " {}".format]),
)
LOOKED_UP = st.one_of(st.sampled_from(NAMES), MISTYPED, st.text(max_size=6))
FIGURES = st.one_of(st.none(), st.integers(-1, 9))


def test_the_names_are_the_same():
    assert sorted(theirs().named_resources) == NAMES
    assert len(NAMES) >= 73


@pytest.mark.parametrize("name", NAMES)
def test_each_resource(name):
    their, our = theirs().resource(h=name), our_specs.resource(h=name)
    assert plain(our) == plain(their)
    assert our.get_resource_name() == their.get_resource_name()
    assert our.is_fractional() == their.is_fractional()


@given(LOOKED_UP)
@cases(1000)
def test_looking_up(name):
    def explain(their, our):
        return "no name" if not name else None

    assert (name in our_specs.named_resources) == (name in theirs().named_resources)
    compare(AREA, lambda specs: plain(specs.named_resources[name]), explain, name)
    compare(AREA, lambda specs: plain(specs.get_named_resources(name)), explain, name)


@given(MISTYPED)
@cases(300)
def test_a_mistyped_name_gets_the_same_suggestion(name):
    suggested = difflib.get_close_matches(name, theirs().named_resources.keys(), n=1)
    if isinstance(outcome(lambda: theirs().resource(h=name)), Refused) and suggested and name == name.lower():
        with pytest.raises(our_specs.UnknownResourceError, match=f"`{suggested[0]}`"):
            our_specs.resource(h=name)


@given(FIGURES, FIGURES, FIGURES, st.one_of(st.none(), LOOKED_UP))
@cases(1000)
def test_from_figures(cpu, gpu, memMB, h):
    def explain(their, our):
        return "a zero" if not h and 0 in (cpu, memMB) else None

    compare(
        AREA, lambda specs: plain(specs.resource(cpu=cpu, gpu=gpu, memMB=memMB, h=h)), explain, (cpu, gpu, memMB, h)
    )


@each_difference(AREA)
def test_each_difference_is_there(difference):
    check_example(difference)
