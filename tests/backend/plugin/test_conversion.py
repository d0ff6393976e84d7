"""AppDefs both ways, run options, and lines."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.tables import tables

from torchx_tui.backends.plugin.logs import whole_lines
from torchx_tui.specs.mounts import BindMount, DeviceMount, VolumeMount
from torchx_tui.specs.resources import Resource
from torchx_tui.specs.roles import AppDef, RetryPolicy, Role
from torchx_tui.specs.workspace import Workspace

table = tables(__file__)


@pytest.fixture(autouse=True)
def _only_with_torchx(torchx):
    """All of it is of TorchX's classes."""


texts = st.text(max_size=8)
pairs = st.dictionaries(texts, texts, max_size=2)
mounts = st.one_of(
    st.builds(BindMount, texts, texts, st.booleans()),
    st.builds(VolumeMount, texts, texts, st.booleans()),
    st.builds(DeviceMount, texts, texts, texts),
)
resources = st.builds(
    Resource,
    cpu=st.integers(-1, 99),
    gpu=st.integers(-1, 8),
    memMB=st.integers(-1, 9999),
    capabilities=pairs,
    devices=st.dictionaries(texts, st.integers(1, 9), max_size=2),
    tags=pairs,
)
roles = st.builds(
    Role,
    name=texts,
    image=texts,
    entrypoint=texts,
    args=st.lists(texts, max_size=3),
    env=pairs,
    num_replicas=st.integers(1, 9),
    max_retries=st.integers(0, 9),
    retry_policy=st.sampled_from(RetryPolicy),
    resource=resources,
    port_map=st.dictionaries(texts, st.integers(1, 65535), max_size=2),
    metadata=st.dictionaries(texts, st.one_of(texts, st.lists(texts, max_size=2), pairs), max_size=2),
    min_replicas=st.none() | st.integers(1, 9),
    mounts=st.lists(mounts, max_size=2),
    workspace=st.none() | st.builds(Workspace, pairs),
)


@given(st.builds(AppDef, name=texts, roles=st.lists(roles, max_size=3), metadata=pairs))
def test_there_and_back_nothing_is_lost(app):
    from torchx_tui.backends.plugin.convert import ToTorchX
    from torchx_tui.specs.from_torchx import from_torchx

    turned = ToTorchX()
    theirs = turned.app(app)
    assert type(theirs).__module__.startswith("torchx.")
    assert AppDef(theirs.name, [from_torchx(role) for role in theirs.roles], theirs.metadata) == app
    assert turned.left_out == []


def test_what_this_torchx_has_no_place_for_is_said():
    from torchx_tui.backends.plugin.convert import ToTorchX

    turned = ToTorchX()
    turned.app(AppDef("app", [Role("worker", "image", base_image="old")]))
    assert turned.left_out == ["worker: base_image, which this TorchX does not have"]


def test_overrides_are_made_once_and_only_when_asked_for():
    from torchx_tui.backends.plugin.convert import ToTorchX
    from torchx_tui.specs.from_torchx import from_torchx

    made = []

    async def image():
        made.append("image")
        return "built"

    role = Role("worker", "plain", overrides={"image": image(), "resource": lambda: Resource(1, 2, 3)})
    theirs = ToTorchX().role(role)
    back = from_torchx(theirs)
    assert made == []
    assert (theirs.image, theirs.image, back.image, role.image) == ("built",) * 4
    assert made == ["image"]
    assert type(theirs.resource).__module__.startswith("torchx.")
    assert back.resource == Resource(1, 2, 3)


def test_run_options():
    import torchx.specs

    from torchx_tui.backends.plugin.scheduler import given_options, options_from_torchx

    theirs: Any = torchx.specs.runopts()
    theirs.add("queue", type_=str, required=True, help="which\n   queue")
    theirs.add("count", type_=int, default=3, help="how many")
    theirs.add("tags", type_=list[str], default=["a"], help="")
    theirs.add("env", type_=dict[str, str], help="")
    theirs.add("odd", type_=frozenset, default=frozenset("x"), help="of a type that no form has")
    ours = options_from_torchx(theirs, "acme")
    declared = {name: (one.opt_type, one.default, one.is_required, one.help) for name, one in ours}
    assert declared == {
        "queue": (str, None, True, "which queue"),
        "count": (int, 3, False, "how many"),
        "tags": (list[str], ["a"], False, ""),
        "env": (dict[str, str], None, False, ""),
        "odd": (str, None, False, "of a type that no form has"),
    }
    resolved = ours.resolve({"queue": "fast"})
    # What has no default here takes the plugin's own.
    assert given_options(resolved, ours) == {"queue": "fast", "count": 3, "tags": ["a"]}
    assert theirs.resolve(given_options(resolved, ours))["odd"] == frozenset("x")


def test_states_that_nobody_knows():
    import torchx.specs

    from torchx_tui.backends.plugin.convert import state_from_torchx
    from torchx_tui.specs.status import AppState

    for state in torchx.specs.AppState:
        assert state_from_torchx(state).name == state.name
    assert state_from_torchx("HELD") is AppState.UNKNOWN


@table("whole lines", "pieces lines")
def test_whole_lines(pieces, lines):
    assert list(whole_lines(pieces)) == lines
