"""Run options: declared, read from text and JSON, checked, printed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.tables import toml_table

from torchx_tui.specs.errors import InvalidRunConfigException
from torchx_tui.specs.run_options import runopts

ROWS = toml_table(Path(__file__).with_name("runopts.toml"))

# What can stand in a text form without quotes being read as such.
PLAIN = st.text(st.characters(codec="utf-8", exclude_characters="=,;:'\"\\", exclude_categories=["Z", "C"]), min_size=1)
QUOTABLE = st.text(st.characters(codec="utf-8", exclude_characters="'\\", exclude_categories=["C"]), min_size=1)


@pytest.fixture
def options():
    return declared()


def declared() -> runopts:
    opts = runopts()
    opts.add("queue", type_=str, help="where to wait", required=True)
    opts.add("log_dir", type_=str, help="where logs go")
    opts.add("retries", type_=int, help="how often", default=3)
    opts.add("share", type_=float, help="of what", default=0.5)
    opts.add("prepend_cwd", type_=bool, help="first or last", default=False)
    opts.add("tags", type_=list[str], help="words", default=["a"])
    opts.add("env", type_=dict[str, str], help="variables")
    return opts


@pytest.mark.parametrize(("cfg", "words"), ROWS["refused_values"])
def test_resolve_refuses(options, cfg, words):
    with pytest.raises(InvalidRunConfigException) as caught:
        options.resolve(cfg)
    assert words in str(caught.value)
    assert isinstance(caught.value, ValueError)
    with pytest.raises(InvalidRunConfigException):
        options.check(cfg)


@pytest.mark.parametrize("name", ["log_dir", "logDir"])
def test_spellings_are_equal(options, name):
    assert options.cfg_from_str(f"{name}=/x") == {"log_dir": "/x"}
    assert options.resolve({"queue": "q", name: "/x"})["log_dir"] == "/x"
    found = options.get(name)
    assert found is not None
    assert found.help == "where logs go"


def test_an_option_declared_in_camel_case_is_found_in_snake_case():
    opts = runopts()
    opts.add("clusterName", type_=str, help="")
    assert opts.cfg_from_str("cluster_name=x") == {"clusterName": "x"}


def test_aliases_are_accepted(options):
    options.add("identity", type_=str, help="", aliases=["hpcIdentity"], deprecated_aliases=["id"])
    assert options.cfg_from_str("hpcIdentity=a") == {"identity": "a"}
    assert options.cfg_from_str("id=a") == {"identity": "a"}
    assert options.get("nothing") is None


@pytest.mark.parametrize("word", ["true", "1", "yes", "on", "True", "YES"])
def test_words_for_true(options, word):
    assert options.cfg_from_str(f"prepend_cwd={word}") == {"prepend_cwd": True}


@pytest.mark.parametrize("word", ["false", "0", "no", "off", "False", "OFF"])
def test_words_for_false(options, word):
    assert options.cfg_from_str(f"prepend_cwd={word}") == {"prepend_cwd": False}


@pytest.mark.parametrize(("text", "cfg"), ROWS["texts"])
def test_text_forms(options, text, cfg):
    assert options.cfg_from_str(text) == cfg


@pytest.mark.parametrize(("text", "words"), ROWS["refused_texts"])
def test_text_forms_that_are_refused(options, text, words):
    with pytest.raises(InvalidRunConfigException) as caught:
        options.cfg_from_str(text)
    assert words in str(caught.value)


@given(queue=QUOTABLE, tags=st.lists(PLAIN, min_size=1), retries=st.integers(), flag=st.booleans(), share=st.floats())
def test_what_is_written_is_read(queue, tags, retries, flag, share):
    text = f"queue='{queue}',tags={','.join(tags)},retries={retries},prepend_cwd={flag},share={share!r}"
    cfg = declared().cfg_from_str(text)
    assert repr(cfg.pop("share")) == repr(share)
    assert cfg == {"queue": queue, "tags": tags, "retries": retries, "prepend_cwd": flag}


def test_json_form(options):
    cfg = options.cfg_from_json_repr(json.dumps({"queue": "q", "tags": [1, "a"], "env": {"A": 1}, "logDir": None}))
    assert cfg == {"queue": "q", "tags": ["1", "a"], "env": {"A": "1"}, "log_dir": None}
    assert options.cfg_from_json_repr('{"tags": null, "env": null}') == {"tags": None, "env": None}
    assert options.cfg_from_json_repr('{"other": 1}', ignore_unknown=True) == {}


@pytest.mark.parametrize("text", ["[]", "{", '{"other": 1}', '{"tags": "a"}', '{"env": ["a"]}'])
def test_json_that_is_refused(options, text):
    with pytest.raises(InvalidRunConfigException):
        options.cfg_from_json_repr(text)


def test_declaring_nonsense_is_refused(options):
    with pytest.raises(ValueError, match="no default"):
        options.add("x", type_=int, help="", default=1, required=True)
    with pytest.raises(TypeError, match="is int"):
        options.add("x", type_=int, help="", default="one")
