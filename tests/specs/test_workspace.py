"""Workspaces: their text form, and who copies."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchx_tui.specs.errors import AppDefError
from torchx_tui.specs.workspace import Workspace


@pytest.mark.parametrize(
    ("text", "projects"),
    [
        (None, {}),
        ("", {}),
        ("/home/me/project", {"/home/me/project": ""}),
        ("2024", {"2024": ""}),
        ("{/a: x, /b: }", {"/a": "x", "/b": ""}),
        ("/a: x\n/b: y", {"/a": "x", "/b": "y"}),
    ],
)
def test_text_form(text, projects):
    assert Workspace.from_str(text) == Workspace(projects)


@pytest.mark.parametrize("text", ["[a, b]", "{a: b", "{/a: [x]}", "{/a: {b: c}}"])
def test_what_is_no_workspace(text):
    with pytest.raises(AppDefError, match="workspace:"):
        Workspace.from_str(text)


def test_what_it_says_of_itself():
    one, two, none = Workspace({"/a": ""}), Workspace({"/a": "x", "/b": ""}), Workspace({})
    assert one.is_unmapped_single_project()
    assert not two.is_unmapped_single_project()
    assert (str(one), str(two)) == ("/a", "/a:x;/b")
    assert bool(one)
    assert not none
    assert hash(one) == hash(Workspace({"/a": ""}))


def test_merging_copies_each_project_to_its_place(tmp_path):
    source = tmp_path / "source"
    source.mkdir()
    copied: list[tuple[str | Path, Path]] = []
    workspace = Workspace({str(source): "sub"})
    workspace.merge_into(tmp_path / "out", lambda project, target: copied.append((project, target)))
    assert copied == [(source, tmp_path / "out" / "sub")]


@pytest.mark.parametrize("place", ["../x", "a/../../x", "/abs", ".."])
def test_place_outside_the_folder_is_refused(tmp_path, place):
    with pytest.raises(AppDefError, match="outside the job's folder"):
        Workspace({str(tmp_path): place}).merge_into(tmp_path / "out", lambda *_: pytest.fail("copied"))
    with pytest.raises(AppDefError, match="outside the job's folder"):
        Workspace.from_str(f"{{{tmp_path}: {place}}}")


def test_a_project_that_is_not_there(tmp_path):
    with pytest.raises(AppDefError, match="does not exist"):
        Workspace({str(tmp_path / "gone"): ""}).merge_into(tmp_path, lambda *_: None)
