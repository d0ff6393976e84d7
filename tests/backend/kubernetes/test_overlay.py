"""Overlays: their keys, files of them, and what is refused."""

from __future__ import annotations

import copy
from contextlib import nullcontext
from dataclasses import dataclass
from enum import Enum

import pytest
from backend.kubernetes.tables import table

from torchx_tui.backends.kubernetes.request.overlay import (
    DEL,
    JOIN,
    PUT,
    apply_overlay,
    get_overlay,
    read_overlay,
    set_overlay,
)
from torchx_tui.specs.errors import AppDefError
from torchx_tui.specs.roles import Role


def set_all(*overlays, **role):
    made = Role("r", "i", **role)
    for overlay in overlays:
        set_overlay(made, "kubernetes", "V1Pod", overlay)
    return made


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


@table("overlays.yaml", "set", "overlays result")
def test_set(overlays, result):
    assert overlay_of(set_all(*overlays)) == result


def test_set_that_does_not_fit_changes_nothing():
    role = set_all({"a": {"x": 1}, "b": {"y": 1}})
    with refused("a list at b, which is a mapping"):
        set_overlay(role, "kubernetes", "V1Pod", {"a": {"x": 2}, "b": [1]})
    assert overlay_of(role) == {"a": {"x": 1}, "b": {"y": 1}}


@pytest.mark.parametrize("overlay", [3, [1], {"a": object()}, {1: 2}, {"a": {1: 2}}])
def test_set_of_no_overlay_changes_nothing(overlay):
    role = Role("r", "i")
    with refused("overlay"):
        set_overlay(role, "kubernetes", "V1Pod", overlay)
    assert role.metadata == {}


class Effect(Enum):
    NO_SCHEDULE = "NoSchedule"


@dataclass
class Toleration:
    key: str
    effect: Effect = Effect.NO_SCHEDULE
    value: str | None = None


def test_dataclasses_are_mappings():
    made = set_all({"spec": {"tolerations": [Toleration("gpu")]}})
    assert overlay_of(made) == {"spec": {"tolerations": [{"key": "gpu", "effect": "NoSchedule"}]}}


@table("overlays.yaml", "metadata", "metadata result")
def test_metadata(metadata, result):
    assert overlay_of(Role("r", "i", metadata=metadata)) == result


def test_set_adds_to_a_plain_overlay():
    made = set_all({"spec": {"y": 2}}, metadata={"kubernetes": {"spec": {"x": 1}}})
    assert overlay_of(made) == {"spec": {"x": 1, "y": 2}}


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
