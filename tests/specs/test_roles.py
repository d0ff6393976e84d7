"""AppDef, Role and Resource."""

from __future__ import annotations

import copy
from dataclasses import fields

import pytest

from torchx_tui.specs import (
    MISSING,
    NULL_RESOURCE,
    AppDef,
    AppDryRunInfo,
    Resource,
    RetryPolicy,
    Role,
    UnknownRoleError,
)


def test_fields_of_a_role_stand_in_their_documented_order() -> None:
    assert [field.name for field in fields(Role)] == [
        *("name", "image", "base_image", "entrypoint", "args", "env", "num_replicas", "max_retries", "retry_policy"),
        *("resource", "port_map", "metadata", "min_replicas", "mounts", "workspace", "overrides"),
    ]


def test_a_role_with_defaults() -> None:
    role = Role("trainer", "image")
    assert role.entrypoint == MISSING
    assert role.resource == NULL_RESOURCE
    assert role.retry_policy is RetryPolicy.APPLICATION
    role.resource.cpu = 5
    assert Role("other", "image").resource == NULL_RESOURCE


def test_roles_are_found_by_name() -> None:
    app = AppDef("app", [Role("trainer", "a"), Role("reader", "b")])
    assert app["reader"] is app.roles[1]
    assert app.get_role("trainer") is app.roles[0]
    assert "trainer" in app
    assert "writer" not in app
    with pytest.raises(KeyError) as caught:
        app.get_role("writer")
    assert isinstance(caught.value, UnknownRoleError)
    assert str(caught.value) == "The app app has no role writer. Its roles: trainer, reader"
    with pytest.raises(TypeError):
        iter(app)  # type: ignore[arg-type]


def test_pre_proc_is_a_hook() -> None:
    info = AppDryRunInfo("request", str.upper)
    assert Role("r", "i").pre_proc("local_cwd", info) is info
    assert str(info) == "REQUEST"


def test_dry_run_info_has_the_names_of_every_generation() -> None:
    app = AppDef("app")
    info = AppDryRunInfo({"a": 1}, repr)
    info._app = app
    info._cfg = {"b": 2}
    info._scheduler = "local_cwd"
    assert info.app is app
    assert info.cfg == {"b": 2}
    assert info.request == {"a": 1}


def test_an_override_is_called_once_and_shared_by_copies() -> None:
    calls: list[int] = []

    def image() -> str:
        calls.append(1)
        return "made"

    role = Role("r", "written", overrides={"image": image})
    twin = copy.deepcopy(role)
    assert twin.image == role.image == "made"
    assert calls == [1]


def test_copies_share_nothing_else() -> None:
    role = Role("r", "i", args=["a"], metadata={"k": {"deep": []}})
    twin = copy.deepcopy(role)
    twin.args.append("b")
    twin.metadata["k"]["deep"].append(1)
    twin.overrides["image"] = lambda: "x"
    assert role.args == ["a"]
    assert role.metadata == {"k": {"deep": []}}
    assert role.image == "i"


def test_a_resource_is_copied_with_capabilities() -> None:
    original = Resource(1, 2, 3, {"a": 1, "b": 2}, {"efa": 4}, {"tag": 5})
    twin = Resource.copy(original, b=3, c=4)
    assert twin == Resource(1, 2, 3, {"a": 1, "b": 3, "c": 4}, {"efa": 4}, {"tag": 5})
    assert original.capabilities == {"a": 1, "b": 2}
