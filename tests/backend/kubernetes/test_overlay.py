"""Overlays: their keys, files of them, and what is refused."""

import copy
from contextlib import nullcontext

import pytest
from backend.kubernetes.tables import table

from torchx_tui.backends.kube.overlay import (
    DEL,
    JOIN,
    PUT,
    apply_overlay,
    get_overlay,
    read_overlay,
)
from torchx_tui.specs.errors import AppDefError
from torchx_tui.specs.roles import Role


def overlay_of(role):
    return get_overlay(role, "kubernetes", "V1Pod")


def refused(words):
    return pytest.raises(AppDefError, match=words) if words else nullcontext()


def test_keys():
    assert (PUT("a"), DEL("a"), JOIN("a", on="n")) == ("__put__:a", "__del__:a", "__join__:a:n")


@table("overlays.yaml", "apply", "base overlay result error")
def test_apply(base, overlay, result, error):
    made, before = copy.deepcopy(base), copy.deepcopy(overlay)
    with refused(error):
        apply_overlay(made, overlay)
        assert made == result
    assert overlay == before


def test_later_overlay_leaves_the_first_alone():
    made, overlay = {}, {"a": {"b": [1]}}
    apply_overlay(made, overlay)
    apply_overlay(made, {"a": {"b": [2], "c": 3}})
    assert overlay == {"a": {"b": [1]}}


@table("overlays.yaml", "metadata", "metadata result")
def test_metadata(metadata, result):
    assert overlay_of(Role("r", "i", metadata=metadata)) == result


@table("overlays.yaml", "files", "text result error")
def test_file(tmp_path, text, result, error):
    path = tmp_path / "overlay.yaml"
    path.write_text(text)
    with refused(error):
        assert overlay_of(Role("r", "i", metadata={"kubernetes": f"file://{path}"})) == result


def test_unreadable_file(tmp_path):
    for place in (f"file://{tmp_path}/none.yaml", str(tmp_path), "nosuch://x"):
        with refused(f"The overlay {place} cannot be read"):
            read_overlay(place)
    with refused("is an empty text"):
        read_overlay("")
    (tmp_path / "large").write_text("a: " + "x" * (1 << 20))
    with refused("more than 1 MB"):
        read_overlay(f"{tmp_path}/large")


def test_aliases_that_fill_the_memory_are_refused(tmp_path):
    lines = ["a0: &a0 [x]", *(f"a{k}: &a{k} [{', '.join([f'*a{k - 1}'] * 10)}]" for k in range(1, 11))]
    (tmp_path / "overlay.yaml").write_text("\n".join(lines))
    with refused("is not YAML: it has more than 100,000 values"):
        read_overlay(f"{tmp_path}/overlay.yaml")
