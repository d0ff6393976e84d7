"""Changes to roles: the text of every field is read back as the role has it; what is refused, and how."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.tables import toml_table

from torchx_tui.components.role_overrides import (
    ROLE_FIELDS,
    check_role_field,
    override_roles,
    read_overrides,
    role_texts,
)
from torchx_tui.specs.errors import RoleOverrideError
from torchx_tui.specs.mounts import BindMount, DeviceMount, VolumeMount
from torchx_tui.specs.resource_names import get_named_resources, named_resources
from torchx_tui.specs.resources import Resource
from torchx_tui.specs.roles import AppDef, RetryPolicy, Role
from torchx_tui.specs.serialize import appdef_to_dict
from torchx_tui.specs.workspace import Workspace

ROWS = toml_table(Path(__file__).with_name("role_overrides.toml"))

TEXTS = st.one_of(st.text(max_size=10), st.text("ab=,;:'\"\\ \n{}[]#~*&", max_size=10))
WORDS = TEXTS.map(str.strip).filter(bool)
NAMES = st.from_regex(r"[A-Za-z_][A-Za-z0-9_.-]{0,10}", fullmatch=True)
# Mounts are written with commas, so that none has one in its paths.
PATHS = st.from_regex(r"/[a-zA-Z0-9._ =-]{0,12}[a-z]", fullmatch=True)
MOUNTS = st.one_of(
    st.builds(BindMount, PATHS, PATHS, st.booleans()),
    st.builds(VolumeMount, NAMES, PATHS, st.booleans()),
    st.builds(DeviceMount, PATHS, PATHS, st.sampled_from(["r", "rw", "rwm"])),
)
FIGURES = st.integers(0, 10**6)
RESOURCES = st.one_of(
    st.builds(Resource, FIGURES, FIGURES, FIGURES),
    st.sampled_from(["gpu.small", "cpu.nano", "aws_p3.2xlarge"]).map(get_named_resources),
)
PLACES = st.sampled_from(["", "lib", "a/b", "1", "null", "a: b"])
WORKSPACES = st.one_of(st.none(), st.builds(Workspace, st.dictionaries(WORDS, PLACES, min_size=1, max_size=3)))
ROLES = st.builds(
    Role,
    name=st.just("r"),
    image=WORDS | st.just(""),
    entrypoint=WORDS,
    args=st.lists(TEXTS, max_size=4),
    env=st.dictionaries(NAMES, TEXTS, max_size=4),
    num_replicas=st.integers(1, 10**6),
    max_retries=st.integers(0, 99),
    retry_policy=st.sampled_from(RetryPolicy),
    resource=RESOURCES,
    mounts=st.lists(MOUNTS, max_size=3),
    workspace=WORKSPACES,
)


def as_dict(role: Role) -> dict[str, Any]:
    return appdef_to_dict(AppDef("a", [role]))["roles"][0]


def changed(role: Role, **texts: str) -> Role:
    return override_roles(AppDef("a", [role]), {role.name: texts}).roles[0]


# There and back


@given(ROLES)
def test_texts_of_a_role_make_the_same_role(role):
    """Of a bare role with the same name, the texts alone make the role that they were taken from."""
    texts = role_texts(role)
    assert list(texts) == list(ROLE_FIELDS)
    assert [name for name, text in texts.items() if check_role_field(name, text)] == []
    if texts["resource"]:
        # A name stands for all of the resource; figures beside it would make another one of it.
        texts = {name: text for name, text in texts.items() if name not in ("cpu", "gpu", "memMB")}
    else:
        del texts["resource"]
    made = changed(Role("r", ""), **texts)
    assert as_dict(made) == as_dict(role)
    assert role_texts(made) == role_texts(role)


def test_mapping_of_a_workspace_is_one_line():
    role = Role("r", "", workspace=Workspace({f"/{number:050}": "x" for number in range(3)}))
    assert role_texts(role)["workspace"] == f"{{{', '.join(f'/{number:050}: x' for number in range(3))}}}"


@pytest.mark.parametrize(
    ("projects", "text"),
    ROWS["workspace_of_one_folder_is_a_path"],
)
def test_workspace_of_one_folder_is_a_path(projects, text):
    assert role_texts(Role("r", "", workspace=Workspace(projects)))["workspace"] == text


def test_empty_role_has_empty_texts():
    texts = role_texts(Role("r", ""))
    assert {name for name, text in texts.items() if text} == {"num_replicas", "max_retries", "retry_policy"}


# Each field


@pytest.mark.parametrize(("field", "text", "attribute", "value"), ROWS["fields"])
def test_text_replaces_a_field(field, text, attribute, value):
    role = Role(
        "r", "old", entrypoint="old", args=["old"], env={"OLD": "1"}, num_replicas=2, max_retries=1,
        resource=Resource(1, 1, 2), mounts=[BindMount("/old", "/old")], workspace=Workspace({"/old": ""}),
    )  # fmt: skip
    before = copy.deepcopy(as_dict(role))
    made = changed(role, **{field: text})
    assert repr(getattr(made, attribute)) == value
    assert as_dict(role) == before
    assert as_dict(made) == {**before, attribute: as_dict(made)[attribute]}


def test_every_field_has_a_row():
    assert {row[0] for row in ROWS["fields"]} == set(ROLE_FIELDS)


def test_figure_changes_a_named_resource():
    made = changed(Role("r", ""), cpu="3", resource="gpu.small").resource
    small = get_named_resources("gpu.small")
    assert (made.cpu, made.gpu, made.memMB) == (3, small.gpu, small.memMB)
    assert made.get_resource_name() is None


def test_text_wins_over_a_late_value():
    role = Role("r", "old", overrides={"image": lambda: "late", "resource": lambda: Resource(9, 9, 9)})
    made = changed(role, image="typed", cpu="3")
    assert made.image == "typed"
    assert made.resource == Resource(3, 9, 9)
    assert role.image == "late"


def test_all_roles_of_a_name_are_changed():
    app = AppDef("a", [Role("r", "1"), Role("s", "2"), Role("r", "3")])
    made = override_roles(app, {"r": {"image": "new"}})
    assert [role.image for role in made.roles] == ["new", "2", "new"]
    assert [role.image for role in app.roles] == ["1", "2", "3"]


# What is refused


@pytest.mark.parametrize(
    ("field", "text", "words"),
    ROWS["invalid_texts"],
)
def test_invalid_texts(field, text, words):
    named_resources.load()
    assert words in check_role_field(field, text)
    with pytest.raises(RoleOverrideError) as caught:
        changed(Role("r", "", entrypoint="x"), **{field: text})
    assert (caught.value.role, caught.value.field) == ("r", field)
    assert words in caught.value.reason


def test_named_resource_is_checked_once_all_are_known():
    named_resources.reset()
    assert check_role_field("resource", "gpu.smal") == ""
    assert "whole number" in check_role_field("gpu", "0.5")
    named_resources.load()
    assert "gpu.small" in check_role_field("resource", "gpu.smal")


def test_unknown_roles_and_fields():
    app = AppDef("a", [Role("trainer", ""), Role("reader", "")])
    with pytest.raises(RoleOverrideError, match="Its roles: trainer, reader"):
        override_roles(app, {"triner": {"cpu": "1"}})
    with pytest.raises(RoleOverrideError, match=r"trainer\.cpus: .*Valid fields: num_replicas, image"):
        override_roles(app, {"trainer": {"cpus": "1"}})


# Of a command line


def test_changes_of_a_command_line():
    texts = ["trainer.cpu=2", "a.b.env=A=1,B=2", "trainer.cpu=3", "trainer.image=", "r.args=--x=1 y"]
    assert read_overrides(texts) == {
        "trainer": {"cpu": "3", "image": ""},
        "a.b": {"env": "A=1,B=2"},
        "r": {"args": "--x=1 y"},
    }
    assert read_overrides([]) == {}


@pytest.mark.parametrize(
    ("text", "words"),
    ROWS["unreadable_change"],
)
def test_unreadable_change(text, words):
    with pytest.raises(RoleOverrideError, match=words):
        read_overrides([text])


def test_unreadable_change_hides_its_value():
    with pytest.raises(RoleOverrideError) as caught:
        read_overrides(["HF_TOKEN=hunter2"])
    assert "HF_TOKEN" in str(caught.value)
    assert "hunter2" not in str(caught.value)
