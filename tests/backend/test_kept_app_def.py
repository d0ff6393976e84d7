"""The AppDef that is kept with a job: small enough, without what a launch adds anew."""

import pytest

from torchx_tui.backends.shared.kept_app_def import escape_macros, kept_text, read_kept
from torchx_tui.specs.roles import AppDef, Role, macros
from torchx_tui.specs.workspace import Workspace

LAUNCH_VARIABLES = ("TORCHX_JOB_ID", "TORCHX_INTERNAL_SESSION_ID", "TORCHX_RANK0_HOST", "TORCHX_IMAGE")


def app(image="image:1"):
    env = {"LR": "0.1", **dict.fromkeys(LAUNCH_VARIABLES, "x")}
    return AppDef("train", [Role("r", image, entrypoint="python3", env=env, workspace=Workspace({"/a": ""}))])


def read(text):
    notes = []
    found = read_kept(text, "", notes)
    assert found is not None
    assert notes == []
    return found


def test_variables_of_a_launch_are_not_kept():
    given = app()
    given.roles[0].metadata["odd"] = {"a set"}  # which JSON does not have
    text, why = kept_text(given, 10_000)
    assert why == ""
    role = read(text).roles[0]
    assert role.metadata == {"odd": "{'a set'}"}
    assert role.env == {"LR": "0.1"}
    assert role.workspace == Workspace({"/a": ""})
    assert set(given.roles[0].env) == {"LR", *LAUNCH_VARIABLES}


def test_a_built_workspace_is_not_kept():
    for image, built in (("sha256:abc", ()), ("made:1", ("made:1",))):
        assert read(kept_text(app(image), 10_000, built)[0]).roles[0].workspace is None


def test_a_large_app_def_is_left_out():
    size = len(kept_text(app(), 10_000)[0].encode())
    assert kept_text(app(), size)[1] == ""
    large = app()
    large.roles[0].args = ["x" * 5000]
    text, why = kept_text(large, 4096)
    assert (text, why) == ("", "the AppDef is left out: it has 5 KB, and 4 KB is most")
    notes = []
    assert read_kept("", why, notes) is None
    assert notes == [why]


@pytest.mark.parametrize(
    ("text", "words"), [("", []), ("{", ["the AppDef that is kept with the job cannot be read: "])]
)
def test_a_missing_or_broken_text(text, words):
    notes = []
    assert read_kept(text, "", notes) is None
    assert [note.partition(": ")[0] + ": " for note in notes] == words


@pytest.mark.parametrize("text", ["plain", "$HOME", "$$", "${app_id}", "a$${app_id}", "$(date)", "$1 ${x"])
def test_escaped_texts_survive_a_launch(text):
    assert macros.Values("", "job", "0").substitute(escape_macros(text)) == text
