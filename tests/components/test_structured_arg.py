"""Arguments of several values, beside TorchX's own where that is installed."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from typing import Any

import pytest

from torchx_tui.components import structured_arg as ours


@pytest.fixture
def theirs(require):
    try:
        from torchx.components import structured_arg
    except ImportError:
        structured_arg = None
    require("interop", structured_arg is not None, "torchx-nightly is not installed: pip install 'torchx-tui[interop]'")
    return structured_arg


@pytest.mark.parametrize("name", ["foo/bar", "foo/", "/bar", "foo", "/", "a/b/c", ""])
@pytest.mark.parametrize("program", [{"m": "foo.bar.baz"}, {"script": "bar/baz.py"}, {}, {"m": "a", "script": "b"}])
def test_names(theirs, name, program):
    assert told(lambda: ours.StructuredNameArgument.parse_from(name, **program)) == told(
        lambda: theirs.StructuredNameArgument.parse_from(name, **program)
    )


@pytest.mark.parametrize("j", ["2", "2x8", "2x4", "1x2x3", "x", "", "2x"])
@pytest.mark.parametrize("h", ["aws_p4d.24xlarge", "aws_trn1.32xlarge"])
def test_nodes_and_workers(theirs, h, j):
    assert told(lambda: ours.StructuredJArgument.parse_from(h, j)) == told(
        lambda: theirs.StructuredJArgument.parse_from(h, j)
    )


def told(parse: Callable[[], Any]) -> tuple[str, str, int]:
    """Return what was made, the kind of error, and how often was warned."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            made = parse()
        except ValueError:
            return "", "ValueError", 0
    return f"{made!r} {made}", "", sum(warning.category is UserWarning for warning in caught)


@pytest.mark.parametrize(
    ("parse", "sentence"),
    [
        (lambda: ours.StructuredNameArgument.parse_from("a"), "No main module or script specified"),
        (lambda: ours.StructuredNameArgument.parse_from("a", m="m", script="s"), "Both main module and script set"),
        (
            lambda: ours.StructuredJArgument.parse_from("aws_trn1.32xlarge", "2"),
            "nproc_per_node cannot be inferred from GPU count. `aws_trn1.32xlarge` is not a GPU instance.",
        ),
    ],
)
def test_refusals_have_the_sentences_of_torchx(parse, sentence):
    with pytest.raises(ValueError, match=re.escape(sentence)):
        parse()
