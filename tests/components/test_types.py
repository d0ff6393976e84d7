"""Which types parameters may have, how these are written, and what the fields of a role are."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest
from support.tables import toml_table

from torchx_tui.components.checked import checked_resource
from torchx_tui.components.model import (
    AnnotationError,
    Parameter,
    ValueType,
    read_annotation,
)
from torchx_tui.components.values import check_argument
from torchx_tui.specs.resource_names import named_resource_names

ROWS = toml_table(Path(__file__).with_name("types.toml"))


def read(text: str, **enums: tuple[str, ...]) -> ValueType:
    return read_annotation(ast.parse(text, mode="eval").body, enums)


@pytest.mark.parametrize("text", ROWS["types"])
def test_supported_types(text):
    row: dict[str, Any] = ROWS["types"][text]
    fields: dict[str, Any] = {key: tuple(one) if isinstance(one, list) else one for key, one in row.items()}
    assert read(text) == ValueType(**fields)


def test_names_of_an_enum_are_choices():
    assert read("Mode", Mode=("FAST", "SLOW")) == ValueType("other", "Mode", choices=("FAST", "SLOW"))


@pytest.mark.parametrize(
    ("text", "words"),
    ROWS["unsupported_types"],
)
def test_unsupported_types(text, words):
    with pytest.raises(AnnotationError, match=words):
        read(text)


# Values


@pytest.mark.parametrize(
    ("form", "good", "bad"),
    [("topology", "1x2", "2by2"), ("resource", "gpu.small", "gpu.none"), ("mounts", "type=bind,src=/a,dst=/b", "x")],
)
def test_form_of_a_parameter(form, good, bad):
    # A named resource is checked once all are loaded.
    assert named_resource_names()
    kind = ValueType("list", "list[str]", ("str",)) if form == "mounts" else ValueType("str", "str")
    parameter = Parameter("p", "keyword_only", kind, form=form)
    assert check_argument(parameter, good) is None
    assert check_argument(parameter, bad)
    assert check_argument(parameter, "") is None
    assert check_argument(Parameter("p", "keyword_only", kind), bad) is None


def test_named_resource_has_figures():
    named = checked_resource(0, 0, 0, "gpu.small")
    assert (named.cpu, named.gpu > 0, named.memMB > 0) == (8, True, True)


# Fields of a role
