"""YAML whose aliases are many."""

from __future__ import annotations

import pytest
import yaml

from torchx_tui.base.bounded_yaml import MAX_VALUES, load_yaml


def nested(first, more):
    """Return a document of ten lines, each of which names the line before ten times."""
    return "\n".join([f"a0: &a0 {first}", *(f"a{k}: &a{k} {more(k - 1)}" for k in range(1, 11))])


LISTS = nested("[x]", lambda k: f"[{', '.join([f'*a{k}'] * 10)}]")
MERGES = nested("{k: x}", lambda k: f"{{<<: [{', '.join([f'*a{k}'] * 10)}]}}")


@pytest.mark.parametrize("loader", [None, getattr(yaml, "CSafeLoader", yaml.SafeLoader)])
@pytest.mark.parametrize("text", [LISTS, MERGES, f"[{'1, ' * (MAX_VALUES + 1)}]"], ids=["lists", "merges", "long"])
def test_too_many_values_are_refused(text, loader):
    with pytest.raises(yaml.YAMLError, match="it has more than 100,000 values"):
        load_yaml(text, loader)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", None),
        ("a: 1", {"a": 1}),
        ("a: &a [1]\nb: *a", {"a": [1], "b": [1]}),
        ("a: &a {x: 1}\nb: {<<: *a, y: 2}", {"a": {"x": 1}, "b": {"x": 1, "y": 2}}),
        (b"text", "text"),
    ],
)
def test_documents(text, expected):
    assert load_yaml(text) == expected


@pytest.mark.parametrize("text", ["&a [*a]", "a: &a {b: [*a]}"])
def test_document_that_contains_itself(text):
    with pytest.raises(yaml.YAMLError, match="it contains itself"):
        load_yaml(text)


@pytest.mark.parametrize("text", ["a: [", "a: 1\n---\nb: 2", "*a", "!!python/name:os.system x"])
def test_malformed_documents(text):
    with pytest.raises(yaml.YAMLError):
        load_yaml(text)
