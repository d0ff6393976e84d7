"""Run options: declared, read from text and JSON, checked, printed."""

from __future__ import annotations

import json
from typing import Union

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchx_tui.specs.errors import InvalidRunConfigException
from torchx_tui.specs.run_options import CfgVal, get_type_name, parse_scalar, runopts

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


def test_help_is_printed_as_torchx_prints_it():
    opts = runopts()
    opts.add("log_dir", type_=str, help="where logs go")
    opts.add("tags", type_=list[str], help="words", default=["a"])
    opts.add("queue", type_=str, help="where to wait", required=True)
    assert str(opts) == (
        "    usage:\n"
        "        queue=QUEUE,[log_dir=LOG_DIR],[tags=TAGS]\n"
        "\n"
        "    required arguments:\n"
        "        queue=QUEUE (str)\n"
        "            where to wait\n"
        "\n"
        "    optional arguments:\n"
        "        log_dir=LOG_DIR (str, None)\n"
        "            where logs go\n"
        "        tags=TAGS (list, ['a'])\n"
        "            words"
    )


def test_resolve_fills_in_defaults_in_a_new_mapping(options):
    given_cfg: dict[str, CfgVal] = {"queue": "q"}
    resolved = options.resolve(given_cfg)
    assert given_cfg == {"queue": "q"}
    assert resolved == {
        "queue": "q",
        "log_dir": None,
        "retries": 3,
        "share": 0.5,
        "prepend_cwd": False,
        "tags": ["a"],
        "env": None,
    }


@pytest.mark.parametrize(
    ("cfg", "words"),
    [
        ({}, "Required run option: queue"),
        ({"queue": None}, "Required run option: queue"),
        ({"queue": 1}, "must be of type: str, but was: 1 (int)"),
        ({"queue": "q", "tags": ["a", 1]}, "must be of type: list"),
        ({"queue": "q", "tags": {"a": "b"}}, "must be of type: list"),
        ({"queue": "q", "env": {"a": 1}}, "must be of type: dict"),
        ({"queue": "q", "quue": "x"}, "Valid options are: env, log_dir, prepend_cwd, queue, retries, share, tags"),
        ({"queue": "q", "logDir": "a", "log_dir": "b"}, "as `logDir` and as `log_dir`"),
    ],
)
def test_resolve_refuses(options, cfg, words):
    with pytest.raises(InvalidRunConfigException) as caught:
        options.resolve(cfg)
    assert words in str(caught.value)
    assert isinstance(caught.value, ValueError)
    with pytest.raises(InvalidRunConfigException):
        options.check(cfg)


def test_unknown_options_pass_through_when_asked(options):
    assert options.resolve({"queue": "q", "other": 1}, ignore_unknown=True)["other"] == 1


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


@pytest.mark.parametrize(
    ("text", "cfg"),
    [
        ("", {}),
        ("queue=q", {"queue": "q"}),
        ("tags=a", {"tags": ["a"]}),
        ("tags=a,b", {"tags": ["a", "b"]}),
        ("tags=a;b", {"tags": ["a", "b"]}),
        ("tags=a,", {"tags": ["a"]}),
        ("tags=a;b;queue=q", {"tags": ["a", "b"], "queue": "q"}),
        ("tags=a,b,queue=q", {"tags": ["a", "b"], "queue": "q"}),
        ("env=A:1,B:2", {"env": {"A": "1", "B": "2"}}),
        ("env=A:b:c", {"env": {"A": "b:c"}}),
        (" queue = q , retries=4", {"queue": "q", "retries": 4}),
        ("queue='a,b=c',share=1", {"queue": "a,b=c", "share": 1.0}),
        ('queue=""', {"queue": ""}),
        ("queue=it's", {"queue": "it's"}),
    ],
)
def test_text_forms(options, text, cfg):
    assert options.cfg_from_str(text) == cfg


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("queue", "is not `key=value`"),
        ("queue=", "the value is missing"),
        ("=q", "the key is missing"),
        ("queue=a=b", "and the next key"),
        ("retries=many", "`many` is not a whole number"),
        ("share=many", "`many` is not a number"),
        ("prepend_cwd=maybe", "true/1/yes/on"),
        ("env=A", "Use key:value"),
        ("quue=q", "Valid options are"),
    ],
)
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


@given(st.text())
def test_any_text_is_read_or_refused(text):
    try:
        cfg = declared().cfg_from_str(text)
    except InvalidRunConfigException:
        return
    assert set(cfg) <= {key for key, _ in declared()}


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


def test_sets_are_merged(options):
    other = runopts()
    other.add("retries", type_=int, help="", default=9)
    assert (options | other).resolve({"queue": "q"})["retries"] == 9
    assert options.resolve({"queue": "q"})["retries"] == 3


@pytest.mark.parametrize(
    ("value", "kind", "expected"),
    [
        ("a", str, True),
        (1, str, False),
        (["a"], list[str], True),
        ([1], list[str], False),
        ({"a": "b"}, dict[str, str], True),
        ({"a": 1}, dict[str, str], False),
        ({"a": "b"}, list[str], False),
        ("a", list[str], False),
    ],
)
def test_is_type(value, kind, expected):
    assert runopts.is_type(value, kind) is expected


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [("bool", "yes", True), ("int", "3", 3), ("float", "3", 3.0), ("str", "3", "3"), ("other", "yes", "yes")],
)
def test_one_value_of_a_type(kind, text, value):
    found = parse_scalar(kind, text)
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize(
    ("kind", "words"), [("bool", "true or false"), ("int", "a whole number"), ("float", "a number")]
)
def test_one_value_that_is_refused(kind, words):
    with pytest.raises(ValueError, match=f"`x` is not {words}"):
        parse_scalar(kind, "x")


@pytest.mark.parametrize(
    ("kind", "name"),
    [(int, "int"), (list[str], "list"), (dict[str, str], "dict"), (Union[str, int], str(Union[str, int]))],  # noqa: UP007
)
def test_names_of_types(kind, name):
    assert get_type_name(kind) == name
