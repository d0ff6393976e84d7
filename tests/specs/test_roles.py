"""AppDef, Role and Resource."""

from __future__ import annotations

import copy
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace

import pytest
from support.waiting import PATIENCE

from torchx_tui.specs.batch_script import BatchScript, script_of
from torchx_tui.specs.errors import UnknownRoleError
from torchx_tui.specs.resources import NULL_RESOURCE, Resource
from torchx_tui.specs.roles import AppDef, AppDryRunInfo, RetryPolicy, Role
from torchx_tui.specs.status import MISSING


def test_a_role_with_defaults():
    role = Role("trainer", "image")
    assert role.entrypoint == MISSING
    assert role.resource == NULL_RESOURCE
    assert role.retry_policy is RetryPolicy.APPLICATION
    role.resource.cpu = 5
    assert Role("other", "image").resource == NULL_RESOURCE


def test_roles_are_found_by_name():
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


def test_pre_proc_is_a_hook():
    info = AppDryRunInfo("request", str.upper)
    assert Role("r", "i").pre_proc("local_cwd", info) is info
    assert str(info) == "REQUEST"


def test_dry_run_info_has_the_names_of_every_generation():
    app = AppDef("app")
    info = AppDryRunInfo({"a": 1}, repr)
    assert (info.app, info.cfg, info.notes) == (None, {}, [])
    info._app = app
    info._cfg = {"b": 2}
    info._scheduler = "local_cwd"
    assert info.app is app
    assert info.cfg == {"b": 2}
    assert info.request == {"a": 1}


def test_an_override_is_called_once_and_shared_by_copies():
    calls: list[int] = []

    def image() -> str:
        calls.append(1)
        return "made"

    role = Role("r", "written", overrides={"image": image})
    twin = copy.deepcopy(role)
    assert twin.image == role.image == "made"
    assert calls == [1]


def test_a_role_whose_override_was_read_becomes_a_dict():
    role = Role("r", "written", overrides={"image": lambda: "made"})
    assert role.image == "made"
    as_dict = asdict(role)
    assert as_dict["image"] == "made"
    assert as_dict["overrides"]["image"]() == "made"
    assert role.overrides["image"]() == "made"


def test_an_override_that_fails_is_tried_again():
    answers = iter([ValueError("no"), "made"])

    def image() -> str:
        answer = next(answers)
        if isinstance(answer, ValueError):
            raise answer
        return answer

    role = Role("r", "written", overrides={"image": image})
    with pytest.raises(ValueError, match="no"):
        role.image  # noqa: B018 - reading it is the test
    assert role.overrides == {"image": image}
    assert role.image == role.image == "made"


def test_copies_share_nothing_else():
    role = Role("r", "i", args=["a"], metadata={"k": {"deep": []}})
    twin = copy.deepcopy(role)
    twin.args.append("b")
    twin.metadata["k"]["deep"].append(1)
    twin.overrides["image"] = lambda: "x"
    assert role.args == ["a"]
    assert role.metadata == {"k": {"deep": []}}
    assert role.image == "i"


def test_a_resource_is_copied_with_capabilities():
    original = Resource(1, 2, 3, {"a": 1, "b": 2}, {"efa": 4}, {"tag": 5})
    twin = Resource.copy(original, b=3, c=4)
    assert twin == Resource(1, 2, 3, {"a": 1, "b": 3, "c": 4}, {"efa": 4}, {"tag": 5})
    assert original.capabilities == {"a": 1, "b": 2}


def test_an_override_may_wait_for_another_role_in_another_thread():
    other = Role("other", "written", overrides={"image": lambda: "made"})

    def image() -> str:
        with ThreadPoolExecutor(max_workers=1) as thread:
            return thread.submit(lambda: other.image).result(PATIENCE)

    assert Role("r", "written", overrides={"image": image}).image == "made"


def test_override_may_be_a_coroutine():
    async def image() -> str:
        return "made"

    role = Role("r", "written", overrides={"image": image()})
    assert role.image == copy.deepcopy(role).image == "made"


def test_a_batch_script_travels_in_a_role():
    script = BatchScript("#!/bin/sh\n", ("--hold",), ("a", "b"), {"nodes": "2"}, {"LR": "1"})
    role = script.role()
    assert (role.name, role.image, role.env) == ("batch", "", {"LR": "1"})
    # The launch adds variables of its own, and the user takes others away.
    role.env["TORCHX_JOB_ID"] = "1"
    assert script_of([Role("other", "image"), role]) == script
    role.env.clear()
    assert script_of([role]) == replace(script, env={})


@pytest.mark.parametrize(
    "told",
    [
        *(None, "text", {}, {"script": 3}, {"script": "", "args": "a"}, {"script": "", "options": [1]}),
        *({"script": "", "variables": [[]]}, {"script": "", "settings": {"a": 1}}),
    ],
)
def test_what_is_no_batch_script(told):
    assert script_of([Role("batch", "", metadata={"sbatch": told})]) is None
    assert script_of([Role("batch", "", metadata={"sbatch": {"script": "x"}})]) == BatchScript("x")
