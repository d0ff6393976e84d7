"""Handles, ids and the errors' words."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchx_tui.base.errors import TorchXTuiError, describe_error
from torchx_tui.specs.errors import (
    ComponentLoadError,
    InvalidRunConfigException,
    JobNotFoundError,
    MalformedAppHandleException,
)
from torchx_tui.specs.handles import (
    make_app_handle,
    make_unique,
    normalize_str,
    parse_app_handle,
    random_id,
    torchx_handle,
)


@pytest.mark.parametrize(
    ("handle", "parts"),
    [
        ("local_cwd://torchx/sh-x1", ("local_cwd", "torchx", "sh-x1")),
        ("kubernetes://torchx/default:job-1", ("kubernetes", "torchx", "default:job-1")),
        ("k8s:///app", ("k8s", "", "app")),
    ],
)
def test_handles(handle, parts):
    assert parse_app_handle(handle) == parts
    assert make_app_handle(*parts) == handle
    assert torchx_handle(make_app_handle(f"{parts[0]}@prod", *parts[1:])) == handle


@pytest.mark.parametrize("text", ["", "app", "local_cwd://app", "://s/a", "local_cwd://s/", "a/b/c"])
def test_what_is_no_handle(text):
    with pytest.raises(MalformedAppHandleException) as caught:
        parse_app_handle(text)
    assert isinstance(caught.value, ValueError)
    assert "<scheduler_backend>://<session_name>/<app_id>" in str(caught.value)


def test_ids_are_unique_and_fit_kubernetes():
    ids = {make_unique("app") for _ in range(1000)}
    assert len(ids) == 1000
    assert all(re.fullmatch(r"app-[bcdfghjklmnpqrstvwxz][bcdfghjklmnpqrstvwxz012345679]*", one) for one in ids)
    assert max(map(len, ids)) <= len("app-") + 15


def test_ids_can_be_short():
    assert len(random_id(4)) <= 4
    assert random_id(0) == ""
    assert len(make_unique("app", 5)) <= len("app-") + 5


@given(st.text())
def test_normalised_names(text):
    assert re.fullmatch(r"([a-z0-9][a-z0-9-]*)?", normalize_str(text))


def test_normalising_is_torchxs():
    assert normalize_str("-Trainer_x.y-1") == "trainerxy-1"


def test_errors_are_sentences():
    for cfg, shown in (({}, "<EMPTY>"), ({"a": 1}, "{'a': 1}")):
        error = InvalidRunConfigException("Bad", "key", cfg)
        assert (str(error), error.invalid_reason) == (f"Bad. Given: {shown}", "Bad")
    assert str(ComponentLoadError("a.py", None, "no")) == "a.py: no"
    assert str(JobNotFoundError("j", "b")).startswith("There is no job j on b: ")


def test_any_exception_in_one_line():
    assert describe_error(ValueError("first\nsecond")) == "ValueError: first"
    assert describe_error(KeyboardInterrupt()) == "KeyboardInterrupt"
    assert describe_error(TorchXTuiError("ours\nmore")) == "ours"
    assert "the current folder was deleted" in describe_error(FileNotFoundError(2, "No such file"))
    assert describe_error(FileNotFoundError(2, "No such file", "x")) == "x: No such file"
    assert "set HOME" in describe_error(RuntimeError("Could not determine home directory."))
    assert describe_error(ValueError("Could not determine home directory.")).startswith("ValueError: ")
    assert describe_error(RuntimeError("x")) == "RuntimeError: x"
