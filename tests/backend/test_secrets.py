import time

import pytest
from backend.tables import TABLES

from torchx_tui.backends.shared.secrets import (
    MASK,
    SECRET_NAMES,
    choose_patterns,
    is_secret,
    mask_args,
    mask_arguments,
    mask_data,
    mask_env,
    mask_text,
)


@pytest.mark.parametrize(("name", "secret"), TABLES["secrets"]["names"])
def test_names(name, secret):
    assert is_secret(name) is secret


def test_own_patterns():
    assert is_secret("my_pin", ["*PIN"])
    assert not is_secret("HF_TOKEN", ["*PIN"])
    assert is_secret("my-pin", ["MY_PIN"])


def test_patterns_are_for_names_alone():
    choose_patterns(["?"])
    try:
        assert (mask_data(["plain", "x"]), mask_args(["plain"])) == (["plain", "x"], ["plain"])
        assert mask_data({"x": "plain", "HF_TOKEN": "known"}) == {"x": MASK, "HF_TOKEN": "known"}
    finally:
        choose_patterns(SECRET_NAMES)


def test_values():
    assert mask_env({"A_KEY": "x", "B_TOKEN": "", "C": "y"}) == {"A_KEY": MASK, "B_TOKEN": "", "C": "y"}


@pytest.mark.parametrize(("text", "shown"), TABLES["secrets"]["texts"])
def test_texts(text, shown):
    assert mask_text("", text) == shown
    # What is masked stays as it is.
    assert mask_text("", shown) == shown


@pytest.mark.parametrize(
    "part", ["a-", ".-a", "a='\\'", "://a:", "--ab ", '"a', "a: ", "-a  "], ids=lambda part: part.strip()
)
def test_time_to_mask_is_linear(part):
    text = part * (100_000 // len(part))
    began = time.process_time()
    mask_text("", text)
    # A quadratic pattern takes more than ten seconds.
    assert time.process_time() - began < 2


def test_arguments():
    given = ["plain", "--token", "A", "--password", "B", "-p", "C", "--api-key", "--lr", "1", "A_KEY=v", "x --token q"]
    shown = list(given)
    for number in (2, 4):
        shown[number] = MASK
    assert mask_args(given) == [*shown[:-2], f"A_KEY={MASK}", f"x --token {MASK}"]


def test_data():
    data = {
        "env": {"HF_TOKEN": "x", "DB": "a://u:p@h"},
        "args": ["--token", "x"],
        "n": 1,
        "l": [{"password": "x"}, None],
    }
    shown = {"env": {"HF_TOKEN": MASK, "DB": f"a://u:{MASK}@h"}, "args": ["--token", MASK]}
    assert mask_data(data) == {**shown, "n": 1, "l": [{"password": MASK}, None]}
    assert data["args"] == ["--token", "x"]


def test_plain_texts_in_data():
    assert mask_data("plain") == "plain"
    assert mask_data("a://u:p@h") == f"a://u:{MASK}@h"
    assert mask_data(("x", "y"), "api_keys") == [MASK, MASK]
    assert mask_data(["x", ""], "api_keys") == [MASK, ""]
    assert mask_data([], "api_keys") == []


def test_words_about_a_text():
    assert mask_arguments("`a` is not a number", "lr", "a") == "`a` is not a number"
    assert mask_arguments("token=a is wrong", "lr", "token=a") == f"token={MASK} is wrong"
    assert mask_arguments("`abc` is not a number", "token", "abc") == f"`{MASK}` is not a number"
    # What is left of a secret in the words gives it away.
    assert mask_arguments("the abc is not a number", "token", "abc") is None
    assert mask_arguments("`def` is not a number", "token", "abc def") is None
    assert mask_arguments("it is not a number", "token", "") == "it is not a number"
