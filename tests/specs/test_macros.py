"""Placeholders of roles."""

from __future__ import annotations

import copy

from hypothesis import given
from hypothesis import strategies as st

from torchx_tui.specs.roles import Role, macros

VALUES = macros.Values("/img", "app-1", "2", rank0_env="HOST")


def test_the_values_by_placeholder():
    told = {
        "img_root": "/img",
        "app_id": "app-1",
        "replica_id": "2",
        "rank0_env": "HOST",
        "base_img_root": "DEPRECATED",
    }
    assert VALUES.to_dict() == told


def test_they_are_replaced_in_entrypoint_args_env_and_metadata():
    role = Role(
        name="trainer",
        image="${app_id}",
        entrypoint=f"{macros.img_root}/main.py",
        args=["--id", macros.app_id, "plain"],
        env={"RANK": macros.replica_id},
        metadata={"kubernetes": {"names": [macros.app_id, {"deep": (macros.replica_id, 1)}], "count": 3}},
    )
    before = copy.deepcopy(role)
    applied = VALUES.apply(role)
    assert applied.entrypoint == "/img/main.py"
    assert applied.args == ["--id", "app-1", "plain"]
    assert applied.env == {"RANK": "2"}
    assert applied.metadata == {"kubernetes": {"names": ["app-1", {"deep": ("2", 1)}], "count": 3}}
    assert applied.image == "${app_id}"
    assert role == before


def test_values_by_placeholder():
    assert VALUES.to_dict() == {
        "img_root": "/img",
        "app_id": "app-1",
        "replica_id": "2",
        "rank0_env": "HOST",
        "base_img_root": "DEPRECATED",
    }


def test_the_first_hosts_variable_is_left_for_the_shell():
    assert VALUES.substitute(f"$${{{macros.rank0_env}:=localhost}}:29500") == "${HOST:=localhost}:29500"


def test_what_is_no_placeholder_stays():
    assert VALUES.substitute("${other} $HOME ${ $ 5$") == "${other} $HOME ${ $ 5$"
    assert VALUES.substitute("$app_id/$$app_id") == "app-1/$app_id"


def test_early_positional_form():
    assert macros.Values("/img", "app", "0").base_img_root == "DEPRECATED"


@given(st.text())
def test_any_text_survives(text):
    replaced = VALUES.substitute(text)
    if "$" not in text:
        assert replaced == text


@given(st.text(), st.text(), st.text())
def test_values_are_not_read_again(img_root, app_id, replica_id):
    values = macros.Values(img_root, app_id, replica_id)
    assert values.substitute("${img_root}|${app_id}|${replica_id}") == f"{img_root}|{app_id}|{replica_id}"


def test_overrides_are_made_and_their_placeholders_replaced():
    calls: list[int] = []

    async def args() -> list[str]:
        calls.append(1)
        return [macros.app_id]

    role = Role(name="r", image="i", overrides={"args": args(), "image": lambda: "made"})
    applied = VALUES.apply(role)
    assert applied.args == ["app-1"]
    assert applied.image == "made"
    assert role.args == [macros.app_id]
    assert calls == [1]
