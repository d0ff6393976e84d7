"""Named resources held against TorchX's: each of them, and how they are looked up."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from interop.oracle import cases, hold, names_of, outcome, plain, theirs

import torchx_tui.specs as our_specs

pytestmark = pytest.mark.filterwarnings("ignore:.*deprecated:FutureWarning")

NAMES = sorted(our_specs.named_resources)
# Names as they are mistyped: another case, a letter too many or too few.
MISTYPED = st.builds(
    lambda name, change: change(name),
    st.sampled_from(NAMES),
    st.sampled_from(
        [
            str.upper,
            str.title,
            str.swapcase,
            str.lower,
            lambda name: name[1:],
            lambda name: f"{name}x",
            lambda name: f" {name}",
        ]
    ),
)
LOOKED_UP = st.one_of(st.sampled_from(NAMES), MISTYPED, st.text(max_size=6))
FIGURES = st.one_of(st.none(), st.integers(-1, 9))


def test_the_names_are_the_same(torchx: str) -> None:
    assert sorted(theirs("torchx.specs").named_resources) == NAMES
    assert len(NAMES) >= 73


@pytest.mark.parametrize("name", NAMES)
def test_each_resource(torchx: str, name: str) -> None:
    their_resource, our_resource = theirs("torchx.specs").resource(h=name), our_specs.resource(h=name)
    assert plain(our_resource) == plain(their_resource)
    assert our_resource.get_resource_name() == their_resource.get_resource_name()
    assert our_resource.is_fractional() == their_resource.is_fractional()


@given(LOOKED_UP)
@cases(1000)
def test_looking_up(torchx: str, name: str) -> None:
    def explain(_their: Any, _our: Any) -> str | None:
        return "no name" if not name else None

    their_specs = theirs("torchx.specs")
    assert (name in our_specs.named_resources) == (name in their_specs.named_resources)
    for look_up in (lambda specs: specs.named_resources[name], lambda specs: specs.get_named_resources(name)):
        their_found = plain(outcome(lambda look=look_up: look(their_specs)))
        hold("named resources", their_found, plain(outcome(lambda look=look_up: look(our_specs))), explain, name)


@given(MISTYPED)
@cases(300)
def test_a_mistyped_name_is_told_the_same_one(torchx: str, name: str) -> None:
    their_found = outcome(lambda: theirs("torchx.specs").resource(h=name))
    suggested = difflib.get_close_matches(name, theirs("torchx.specs").named_resources.keys(), n=1)
    if hasattr(their_found, "error") and suggested and name == name.lower():
        with pytest.raises(our_specs.UnknownResourceError, match=f"`{suggested[0]}`"):
            our_specs.resource(h=name)


@given(FIGURES, FIGURES, FIGURES, st.one_of(st.none(), LOOKED_UP))
@cases(1000)
def test_from_figures(torchx: str, cpu: int | None, gpu: int | None, memMB: int | None, h: str | None) -> None:
    def explain(_their: Any, _our: Any) -> str | None:
        return "a zero" if not h and 0 in (cpu, memMB) else None

    def make(specs: Any) -> Any:
        return plain(specs.resource(cpu=cpu, gpu=gpu, memMB=memMB, h=h))

    their_made, our_made = outcome(lambda: make(theirs("torchx.specs"))), outcome(lambda: make(our_specs))
    hold("named resources", their_made, our_made, explain, (cpu, gpu, memMB, h))


EXAMPLES: dict[str, tuple[Callable[[Any], Any], str, str]] = {
    "a zero": (
        lambda specs: (specs.resource(cpu=0, memMB=0).cpu, specs.resource(memMB=0).memMB),
        "(2, 1024)",
        "(0, 0)",
    ),
    "no name": (lambda specs: specs.get_named_resources("").cpu, "2", "UnknownResourceError"),
}


@pytest.mark.parametrize("name", names_of("named resources"))
def test_each_difference_is_there(torchx: str, name: str) -> None:
    act, their_text, our_text = EXAMPLES[name]
    assert repr(outcome(lambda: act(theirs("torchx.specs")))) == their_text
    assert repr(outcome(lambda: act(our_specs))) == our_text


def test_no_example_is_left_over() -> None:
    assert set(EXAMPLES) == set(names_of("named resources"))
