"""Placeholders of roles."""

from __future__ import annotations

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


def test_overrides_are_made_and_their_placeholders_replaced():
    calls: list[int] = []

    async def args() -> list[str]:
        calls.append(1)
        return [macros.app_id]

    role = Role(
        name="r", image="i", overrides={"args": args(), "image": lambda: "made"}, metadata={"a": [(macros.app_id, 1)]}
    )
    applied = VALUES.apply(role)
    assert (applied.args, applied.metadata) == (["app-1"], {"a": [("app-1", 1)]})
    assert applied.image == "made"
    assert role.args == [macros.app_id]
    assert calls == [1]
