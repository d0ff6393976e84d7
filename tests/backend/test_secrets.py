from __future__ import annotations

import pytest

from torchx_tui.backends.secrets import MASK, is_secret, mask_env


@pytest.mark.parametrize(
    ("name", "secret"),
    [
        ("HF_TOKEN", True),
        ("aws_secret_access", True),
        ("Password", True),
        ("API_KEY", True),
        ("LR", False),
        ("", False),
    ],
)
def test_names(name: str, secret: bool) -> None:
    assert is_secret(name) is secret


def test_own_patterns() -> None:
    assert is_secret("my_pin", ["*PIN"])
    assert not is_secret("HF_TOKEN", ["*PIN"])


def test_values() -> None:
    assert mask_env({"A_KEY": "x", "B_TOKEN": "", "C": "y"}) == {"A_KEY": MASK, "B_TOKEN": "", "C": "y"}
