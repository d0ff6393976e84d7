"""Overlays: the verbs, files of them, and what is refused."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import pytest

from torchx_tui.backends.kubernetes.request.overlay import (
    DEL,
    JOIN,
    PUT,
    apply_overlay,
    get_overlay,
    read_overlay,
    set_overlay,
)
from torchx_tui.specs import AppDefError, Role


def applied(base, *overlays):
    for overlay in overlays:
        apply_overlay(base, overlay)
    return base


def gathered(*overlays):
    role = Role("r", "i")
    for overlay in overlays:
        set_overlay(role, "kubernetes", "V1Pod", overlay)
    return get_overlay(role, "kubernetes", "V1Pod")


@pytest.mark.parametrize(
    ("base", "overlay", "expected"),
    [
        ({"a": {"x": 1}}, {"a": {"y": 2}}, {"a": {"x": 1, "y": 2}}),
        ({"a": [1]}, {"a": [2]}, {"a": [1, 2]}),
        ({"a": [1]}, {"a": (2,)}, {"a": [2]}),
        ({}, {"a": (1, 2)}, {"a": [1, 2]}),
        ({"a": 1}, {"a": "x"}, {"a": "x"}),
        ({"a": None}, {"a": {"x": 1}}, {"a": {"x": 1}}),
        ({"a": {"x": 1}}, {"a": None}, {"a": None}),
        ({"a": [1]}, {PUT("a"): [2]}, {"a": [2]}),
        ({"a": {"x": 1}}, {PUT("a"): {"y": 2}}, {"a": {"y": 2}}),
        ({"a": 1, "b": 2}, {DEL("a"): None, DEL("c"): None}, {"b": 2}),
        ({"a": [{"n": 1, "k": [1]}]}, {JOIN("a", on="n"): [{"n": 1, "k": [2]}, {"n": 2}]},
         {"a": [{"n": 1, "k": [2]}, {"n": 2}]}),
        ({}, {JOIN("a", on="n"): [{"n": 1}]}, {"a": [{"n": 1}]}),
        # Keys have their effect where nothing was there, too.
        ({}, {"a": {PUT("b"): [1], DEL("c"): None}}, {"a": {"b": [1]}}),
        ({"a": []}, {"a": [{PUT("b"): (1,)}]}, {"a": [{"b": [1]}]}),
    ],
)  # fmt: skip
def test_merging(base, overlay, expected):
    assert applied(base, overlay) == expected


@pytest.mark.parametrize(
    ("base", "overlay", "words"),
    [
        ({"a": {}}, {"a": [1]}, "a list at a, which is a mapping"),
        ({"a": [1]}, {"a": {"x": 1}}, "a mapping at a, which is a list"),
        ({"a": {}}, {"a": 1}, "a value at a, which is a mapping"),
        ({"a": [1]}, {JOIN("a", on="n"): [{"n": 1}]}, "both must be lists of mappings"),
        ({"a": []}, {JOIN("a", on="n"): {"n": 1}}, "both must be lists of mappings"),
        ({}, {"__join__:a": []}, "use JOIN"),
        ({}, {3: 1}, "keys are texts"),
    ],
)
def test_what_does_not_fit_is_refused(base, overlay, words):
    with pytest.raises(AppDefError, match=words):
        apply_overlay(base, overlay)


def test_an_overlay_is_not_changed_by_what_is_laid_over_later():
    overlay = {"a": {"b": [1]}}
    applied({}, overlay, {"a": {"b": [2], "c": 3}})
    assert overlay == {"a": {"b": [1]}}


@pytest.mark.parametrize(
    ("overlays", "expected"),
    [
        ([{"a": [1]}, {"a": [2]}], {"a": [1, 2]}),
        ([{"a": {"x": 1}}, {"a": {"y": 2}}], {"a": {"x": 1, "y": 2}}),
        ([{"a": [1]}, {PUT("a"): [2]}], {PUT("a"): [2]}),
        ([{PUT("a"): [1]}, {PUT("a"): [2]}], {PUT("a"): [2]}),
        ([{PUT("a"): [1]}, {"a": [2]}], {"a": [2]}),
        ([{"a": [1]}, {DEL("a"): None}], {DEL("a"): None}),
        ([{DEL("a"): None}, {"a": [1]}], {"a": [1]}),
        ([{"a": [1]}, {"a": (2,)}], {"a": (2,)}),
        ([{"a": (1,)}, {"a": [2]}], {"a": (1, 2)}),
        ([{JOIN("a", on="n"): [{"n": 1}]}, {JOIN("a", on="n"): [{"n": 1, "x": 2}]}],
         {JOIN("a", on="n"): [{"n": 1, "x": 2}]}),
        ([{JOIN("a", on="n"): [{"n": 1}]}, {JOIN("a", on="m"): [{"m": 1}]}], {JOIN("a", on="m"): [{"m": 1}]}),
        ([{"a": {"x": 1}}, {"a": {DEL("x"): None}}], {"a": {DEL("x"): None}}),
    ],
)  # fmt: skip
def test_what_is_set_later_adds_to_what_was(overlays, expected):
    assert gathered(*overlays) == expected


def test_what_is_set_and_does_not_fit_changes_nothing():
    role = Role("r", "i")
    set_overlay(role, "kubernetes", "V1Pod", {"a": {"x": 1}, "b": {"y": 1}})
    with pytest.raises(AppDefError, match="a list at b, which is a mapping"):
        set_overlay(role, "kubernetes", "V1Pod", {"a": {"x": 2}, "b": [1]})
    assert get_overlay(role, "kubernetes", "V1Pod") == {"a": {"x": 1}, "b": {"y": 1}}


class Effect(Enum):
    NO_SCHEDULE = "NoSchedule"


@dataclass
class Toleration:
    key: str
    effect: Effect = Effect.NO_SCHEDULE
    value: str | None = None


def test_dataclasses_stand_for_mappings():
    made = gathered({"spec": {"tolerations": [Toleration("gpu")]}})
    assert made == {"spec": {"tolerations": [{"key": "gpu", "effect": "NoSchedule"}]}}


@pytest.mark.parametrize("overlay", [3, [1], {"a": object()}, {1: 2}, {"a": {1: 2}}])
def test_what_is_no_overlay_is_refused_and_changes_nothing(overlay):
    role = Role("r", "i")
    with pytest.raises(AppDefError, match="overlay"):
        set_overlay(role, "kubernetes", "V1Pod", overlay)
    assert role.metadata == {}


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        ({}, {}),
        ({"kubernetes": {"spec": {"x": 1}}}, {"spec": {"x": 1}}),
        ({"kubernetes": {"V1Pod": {"spec": {"x": 1}}}}, {"spec": {"x": 1}}),
        ({"kubernetes": {"__torchx_overlays__": True, "V1Job": {"a": 1}}}, {}),
        ({"kubernetes": None}, {}),
    ],
)
def test_where_an_overlay_stands(metadata, expected):
    assert get_overlay(Role("r", "i", metadata=metadata), "kubernetes", "V1Pod") == expected


def test_a_plain_overlay_is_added_to():
    role = Role("r", "i", metadata={"kubernetes": {"spec": {"x": 1}}})
    set_overlay(role, "kubernetes", "V1Pod", {"spec": {"y": 2}})
    assert get_overlay(role, "kubernetes", "V1Pod") == {"spec": {"x": 1, "y": 2}}


class TestFiles:
    def read(self, tmp_path, text, name="overlay.yaml"):
        path = tmp_path / name
        path.write_text(text)
        role = Role("r", "i", metadata={"kubernetes": f"file://{path}"})
        return get_overlay(role, "kubernetes", "V1Pod")

    def test_yaml(self, tmp_path):
        assert self.read(tmp_path, "spec: {nodeSelector: {a: b}}") == {"spec": {"nodeSelector": {"a": "b"}}}

    def test_json(self, tmp_path):
        assert self.read(tmp_path, '{"spec": {"x": [1]}}', "overlay.json") == {"spec": {"x": [1]}}

    def test_overlays_by_kind(self, tmp_path):
        assert self.read(tmp_path, "V1Pod: {spec: {x: 1}}") == {"spec": {"x": 1}}

    def test_a_tuple_of_yaml_replaces(self, tmp_path):
        found = self.read(tmp_path, "spec:\n  volumes: !!python/tuple\n  - name: only\n")
        assert applied({"spec": {"volumes": [1]}}, found) == {"spec": {"volumes": [{"name": "only"}]}}

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ("- 1", "has list: use a mapping"),
            ("", "has NoneType: use a mapping"),
            ("a: [", "is not YAML"),
            ("a: !!python/object/apply:os.getcwd []", "is not YAML"),
            ("a: !!python/name:os.system", "is not YAML"),
        ],
    )
    def test_what_is_no_overlay(self, tmp_path, text, words):
        with pytest.raises(AppDefError, match=words):
            self.read(tmp_path, text)

    def test_what_is_not_there(self, tmp_path):
        for place in (f"file://{tmp_path}/none.yaml", str(tmp_path), "nosuch://x"):
            with pytest.raises(AppDefError, match=f"The overlay {place} cannot be read"):
                read_overlay(place)
        with pytest.raises(AppDefError, match="is an empty text"):
            read_overlay("")

    def test_a_file_that_is_no_overlay_by_its_size(self, tmp_path):
        with pytest.raises(AppDefError, match="more than 1 MB"):
            self.read(tmp_path, "a: " + "x" * (1 << 20))
