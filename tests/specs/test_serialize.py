"""AppDefs to JSON and back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.tables import toml_table

from torchx_tui.specs.errors import AppDefError
from torchx_tui.specs.mounts import BindMount, DeviceMount, VolumeMount
from torchx_tui.specs.resources import Resource
from torchx_tui.specs.roles import AppDef, RetryPolicy, Role
from torchx_tui.specs.serialize import appdef_from_dict, appdef_from_json, appdef_to_dict, appdef_to_json
from torchx_tui.specs.workspace import Workspace

ROWS = toml_table(Path(__file__).with_name("serialize.toml"))

names = st.text(max_size=8)
leaves = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | names
anything: st.SearchStrategy[Any] = st.recursive(
    leaves,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(names | st.sampled_from(["$tuple", "$items"]) | st.integers(), inner, max_size=3)
    ),
    max_leaves=8,
)
free = st.dictionaries(names | st.sampled_from(["$tuple", "$items"]), anything, max_size=3)
texts = st.dictionaries(names, names, max_size=3)
counts = st.integers(min_value=-1, max_value=1000)
mounts = st.one_of(
    st.builds(BindMount, names, names, st.booleans()),
    st.builds(VolumeMount, names, names, st.booleans()),
    st.builds(DeviceMount, names, names, names),
)
roles = st.builds(
    Role,
    name=names,
    image=names,
    base_image=st.none() | names,
    entrypoint=names,
    args=st.lists(names, max_size=3),
    env=texts,
    num_replicas=counts,
    max_retries=counts,
    retry_policy=st.sampled_from(RetryPolicy),
    resource=st.builds(Resource, counts, counts, counts, free, st.dictionaries(names, counts, max_size=2), free),
    port_map=st.dictionaries(names, counts, max_size=2),
    metadata=free,
    min_replicas=st.none() | counts,
    mounts=st.lists(mounts, max_size=3),
    workspace=st.none() | st.builds(Workspace, texts),
)
apps = st.builds(AppDef, name=names, roles=st.lists(roles, max_size=3), metadata=texts)


@given(apps)
def test_round_trip_is_exact(app):
    text = appdef_to_json(app)
    assert "\n" not in text
    again = appdef_from_json(text)
    assert again == app
    # Equality takes 1, 1.0 and True for the same; their representation does not.
    assert repr(again) == repr(app)


def test_the_form():
    tree = appdef_to_dict(AppDef("app", [Role("trainer", "img", mounts=[BindMount("/a", "/b")])]))
    assert tree["format"] == 1
    assert tree["roles"][0]["retry_policy"] == "APPLICATION"
    assert tree["roles"][0]["mounts"] == [{"type": "bind", "src_path": "/a", "dst_path": "/b", "read_only": False}]


def test_only_what_is_needed_must_be_there():
    role = {"name": "trainer", "image": "img"}
    assert appdef_from_dict({"name": "app", "roles": [role]}) == AppDef("app", [Role("trainer", "img")])


def test_numbers_become_the_texts_that_a_process_gets():
    role = {"name": "trainer", "image": "img", "args": [1, "a"], "env": {"LR": 0.5}}
    (made,) = appdef_from_dict({"name": "app", "roles": [role]}).roles
    assert (made.args, made.env) == (["1", "a"], {"LR": "0.5"})


@pytest.mark.parametrize(("tree", "words"), ROWS["refused"])
def test_what_is_refused(tree, words):
    with pytest.raises(AppDefError) as caught:
        appdef_from_dict(tree)
    assert words in f"{caught.value}\n"


def test_broken_json_is_refused():
    with pytest.raises(AppDefError, match="not JSON"):
        appdef_from_json("{")
    with pytest.raises(AppDefError, match="AppDef: "):
        appdef_from_dict({"name": "app", 3: "x", "metadata": {}})


def test_foreign_objects_in_metadata():
    app = AppDef("app", [Role("trainer", "img", metadata={"kubernetes": {"pod": object()}})])
    for write in (appdef_to_json, appdef_to_dict):
        with pytest.raises(AppDefError, match=r"role trainer: metadata\.kubernetes\.pod: a object"):
            write(app)
        with pytest.raises(AppDefError, match=r"^AppDef: metadata\.team: a object|^metadata\.team: a object"):
            write(AppDef("app", metadata={"team": object()}))  # type: ignore[dict-item]
    tree = json.loads(appdef_to_json(app, strict=False))
    assert tree["roles"][0]["metadata"]["kubernetes"]["pod"].startswith("<object")


def test_overrides_are_written_as_what_they_make():
    app = AppDef("app", [Role("trainer", "img", overrides={"image": lambda: "made"})])
    assert appdef_from_json(appdef_to_json(app)).roles[0].image == "made"
