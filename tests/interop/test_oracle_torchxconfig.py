"""`.torchxconfig` held against TorchX's: which files count, what they say, what is written, hostile ones too."""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from interop.oracle import Refused, cases, hold, names_of, outcome, theirs

import torchx_tui.specs as our_specs
from torchx_tui.backends import torchxconfig

AREA = "torchxconfig"
KINDS: dict[str, Any] = {
    "log_dir": str, "count": int, "ratio": float, "quiet": bool, "tags": list[str], "env": dict[str, str],
    "max_time": str,
}  # fmt: skip
SECTIONS = [
    "[sched]",
    "[sched]",
    "[sched]",
    "[component:a.b]",
    "[cli:run]",
    "[:x]",
    "[component:]",
    "[a:b:c]",
    "[DEFAULT]",
]
KEYS = [*KINDS, "logDir", "maxTime", "unknown", "J"]
WORDS = ["1", "x", "true", "NO", "2.5", "None", "", "a,b", "a;b", "A:1;B:2", "'a,b'", "#FIXME:(str) x", "a # b", "é"]
HOSTILE = [
    "%",
    "100%",
    "%(x)s",
    "%(count)s",
    "[",
    "]",
    "no sign",
    "=",
    "= 1",
    "  more",
    "\x1b[31m",
    "# x",
    "; x",
    "a=1=2",
]
LINES = st.one_of(
    st.builds("{} = {}".format, st.sampled_from(KEYS), st.sampled_from(WORDS)),
    st.builds("{}: {}".format, st.sampled_from(KEYS), st.sampled_from(WORDS)),
    st.sampled_from(SECTIONS),
)
# Most files are well-formed; a line of some is not.
TEXTS = st.builds(
    lambda first, lines, odd: "\n".join([first, *lines, *odd]),
    st.sampled_from(SECTIONS), st.lists(LINES, max_size=5, unique=True),
    st.one_of(st.just([]), st.just([]), st.lists(st.sampled_from(HOSTILE), max_size=1)),
)  # fmt: skip
PLACES = st.fixed_dictionaries({}, optional=dict.fromkeys(["home", "cwd", "other"], TEXTS))
NAMED = st.sampled_from([None, None, None, "", "other/.torchxconfig", "missing"])
DIRS = st.sampled_from([None, [], ["other"], ["other", "cwd"], ["cwd", "other", "cwd"], ["nowhere", "home"]])
CFGS = st.sampled_from([{}, {"log_dir": "given"}, {"logDir": "given"}, {"count": 9, "quiet": True}])


class OneScheduler:
    """Has the options of `KINDS`, or those that are given."""

    def __init__(self, specs: Any, options: list[tuple[str, Any, Any, bool]]) -> None:
        self._options = specs.runopts()
        for name, kind, default, required in options:
            self._options.add(name, type_=kind, help=f"what {name} is", default=default, required=required)

    def run_opts(self) -> Any:
        return self._options


EVERY = [(name, kind, None, False) for name, kind in KINDS.items()]


@contextlib.contextmanager
def world(folder: Path, files: dict[str, str], named: str | None, options: Any = None) -> Iterator[Any]:
    """Give TorchX's module, with home, current folder, files and environment as they are said, for both."""
    config = theirs("torchx.runner.config")
    their_scheduler = OneScheduler(theirs("torchx.specs"), options or EVERY)
    our_scheduler = OneScheduler(our_specs, options or EVERY)
    for place in ("home", "cwd", "other"):
        (folder / place).mkdir(exist_ok=True)
        (folder / place / ".torchxconfig").unlink(missing_ok=True)
        if place in files:
            (folder / place / ".torchxconfig").write_text(files[place], encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(config, "DEFAULT_CONFIG_DIRS", [str(folder / "home"), str(folder / "cwd")])
        patch.setattr(config, "_get_scheduler", lambda _name: their_scheduler)
        patch.setattr(torchxconfig, "_run_opts", lambda _name: our_scheduler.run_opts())
        patch.setenv("HOME", str(folder / "home"))
        patch.chdir(folder / "cwd")
        if named is None:
            patch.delenv("TORCHXCONFIG", raising=False)
        else:
            patch.setenv("TORCHXCONFIG", str(folder / named) if named else "")
        yield config


def applied(config: Any, cfg: dict[str, Any], dirs: Any) -> dict[str, Any]:
    given_cfg = dict(cfg)
    config.apply("sched", given_cfg, dirs)
    return given_cfg


def asked(config: Any, dirs: Any, cfg: dict[str, Any]) -> list[Any]:
    """Return everything that can be asked of the files."""
    return [
        outcome(lambda: config.find_configs(dirs)),
        *(
            outcome(lambda prefix=prefix: config.load_sections(prefix, dirs))
            for prefix in ("component", "cli", "a", "")
        ),
        outcome(lambda: config.get_configs("component", "a.b", dirs)),
        outcome(lambda: config.get_config("cli", "run", "J", dirs)),
        outcome(lambda: applied(config, cfg, dirs)),
    ]


@given(PLACES, NAMED, DIRS, CFGS)
@example({"home": "[sched]\ncount = 1", "cwd": "[sched]\nquiet = 1"}, None, [], {})
@example({"home": "[:x]\nJ = 1\n[component:]\nJ = 1"}, None, None, {})
@example({"other": "[DEFAULT]\nJ = 1\n[cli:run]\nlog_dir = x"}, None, ["other"], {})
@example({"cwd": "[cli:run]\nJ = 1\ncount = 2", "other": "[cli:run]\nquiet = 3\nJ = 4"}, None, ["other", "cwd"], {})
@example({"home": "[sched]\nenv = x\nlog_dir = 100%"}, None, None, {})
@cases(700)
def test_files(torchx: str, tmp_path: Path, files: dict[str, str], named: str | None, dirs: Any, cfg: Any) -> None:
    with world(tmp_path, files, named) as config:
        places = None if dirs is None else [str(tmp_path / place) for place in dirs]
        their_answers, our_answers = asked(config, places, cfg), asked(torchxconfig, places, cfg)
    said = "\n".join(files.values())

    def explain(their: Any, our: Any) -> str | None:
        if isinstance(their, Refused) and their.names[0] == "FileNotFoundError":
            return "a file that is missing"
        if isinstance(their, list) and len(set(their)) < len(their):
            return "a folder twice"
        return text_fault(said, cfg, their, our) or ("the project's file" if named is None and not dirs else None)

    for their_answer, our_answer in zip(their_answers, our_answers, strict=True):
        hold(AREA, their_answer, our_answer, explain, (files, named, dirs, cfg))


def text_fault(said: str, cfg: dict[str, Any], their: Any, our: Any) -> str | None:
    """Return the entry that the text of files falls under, None where it is as usual."""
    no_pair = isinstance(their, Refused) and their.names[0] == "IndexError"
    if isinstance(our, Refused):
        if no_pair:
            return "quotes in lists and dicts"  # and ours refuses a line below it
        if "%" in str(our.error):
            return "a lone %"
        if their.__class__ is Refused and their.names[0] == "InvalidRunConfigException":
            return "two spellings"
        return "quotes in lists and dicts" if re.search("to_type|pair|list|dict", str(our.error)) else None
    if re.search("log_dir|logDir", said) and "logDir" in cfg:
        return "given in another spelling"
    if "#FIXME" in said and (isinstance(their, Refused) or "#FIXME" in repr(their)):
        return "what is to be filled in"
    quoted = re.search(r"(env|tags)\s*[=:].*'", said)
    return "quotes in lists and dicts" if no_pair or quoted else None


@given(TEXTS, CFGS)
@cases(1000)
def test_loading(torchx: str, tmp_path: Path, text: str, cfg: dict[str, Any]) -> None:
    def load(config: Any) -> Any:
        loaded = dict(cfg)
        config.load("sched", io.StringIO(text), loaded)
        return loaded

    with world(tmp_path, {}, None) as config:
        their_cfg, our_cfg = outcome(lambda: load(config)), outcome(lambda: load(torchxconfig))
    hold(AREA, their_cfg, our_cfg, lambda their, our: text_fault(text, cfg, their, our), (text, cfg))


DEFAULTS = {
    str: [None, "x", "", "a b", "50%", "None"], int: [None, 3], float: [None, 0.5], bool: [None, True, False],
    list[str]: [None, [], ["a"], ["a", "b"], ["a;b"]], dict[str, str]: [None, {}, {"A": "1", "B": "2"}, {"A": "x:y"}],
}  # fmt: skip
OPTION = st.sampled_from(list(KINDS)).flatmap(
    lambda name: st.tuples(st.just(name), st.just(KINDS[name]), st.sampled_from(DEFAULTS[KINDS[name]]), st.booleans())
)
OPTIONS = st.lists(OPTION, min_size=1, max_size=4, unique_by=lambda one: one[0])


def dumped(config: Any, required_only: bool) -> str:
    file = io.StringIO()
    config.dump(file, ["sched"], required_only)
    return file.getvalue()


@given(OPTIONS, st.booleans())
@cases(800)
def test_writing(torchx: str, tmp_path: Path, options: list[Any], required_only: bool) -> None:
    declared = [(name, kind, None if required else default, required) for name, kind, default, required in options]

    def explain(_their: Any, _our: Any) -> str | None:
        defaults = [default for _, _, default, _ in declared]
        if "50%" in defaults:
            return "a % that is written"
        return "separators in what is written" if ["a;b"] in defaults or {"A": "x:y"} in defaults else None

    with world(tmp_path, {}, None, declared) as config:
        their_text, our_text = [outcome(lambda one=one: dumped(one, required_only)) for one in (config, torchxconfig)]
    hold(AREA, their_text, our_text, explain, (options, required_only))


FILES = {"home": "[sched]\nlog_dir = home", "cwd": "[sched]\nlog_dir = cwd"}
# Of each entry: the current folder's file, what is given before, what TorchX gives and what ours do.
READ: dict[str, tuple[str, dict[str, Any], str, str]] = {
    "the project's file": ("log_dir = cwd", {}, "{'log_dir': 'home'}", "{'log_dir': 'cwd'}"),
    "a lone %": ("count = 1\n[other]\nx = 1%", {}, "{'log_dir': 'home', 'count': 1}", "ConfigError"),
    "two spellings": ("maxTime = 1\nmax_time = 2", {}, "InvalidRunConfigException", "ConfigError"),
    "given in another spelling": (
        "log_dir = x", {"logDir": "y"}, "{'logDir': 'y', 'log_dir': 'home'}", "{'logDir': 'y'}"
    ),
    "what is to be filled in": (
        "max_time = #FIXME:x", {"log_dir": "x"}, "{'log_dir': 'x', 'max_time': '#FIXME:x'}", "{'log_dir': 'x'}"
    ),
    "quotes in lists and dicts": (
        "tags = 'a,b'", {"log_dir": "x"},
        """{'log_dir': 'x', 'tags': ["'a", "b'"]}""", "{'log_dir': 'x', 'tags': ['a,b']}",
    ),
}  # fmt: skip
WRITTEN: dict[str, tuple[tuple[str, Any, Any, bool], str, str]] = {
    "a % that is written": (("log_dir", str, "50%", False), "ValueError", "'log_dir = 50%%'"),
    "separators in what is written": (("tags", list[str], ["a;b"], False), "'tags = a;b'", "\"tags = 'a;b'\""),
}  # fmt: skip


@pytest.mark.parametrize("name", READ)
def test_each_difference_of_reading_is_there(torchx: str, tmp_path: Path, name: str) -> None:
    text, cfg, their_text, our_text = READ[name]
    with world(tmp_path, {**FILES, "cwd": f"[sched]\n{text}"}, None) as config:
        assert repr(outcome(lambda: applied(config, cfg, None))) == their_text
        assert repr(outcome(lambda: applied(torchxconfig, cfg, None))) == our_text


@pytest.mark.parametrize("name", WRITTEN)
def test_each_difference_of_writing_is_there(torchx: str, tmp_path: Path, name: str) -> None:
    option, *expected = WRITTEN[name]
    with world(tmp_path, {}, None, [option]) as config:
        for module, text in zip((config, torchxconfig), expected, strict=True):
            assert repr(outcome(lambda module=module: dumped(module, False).splitlines()[1])) == text


def test_a_file_that_is_missing(torchx: str, tmp_path: Path) -> None:
    with world(tmp_path, {}, "missing") as config:
        assert repr(outcome(config.find_configs)) == "FileNotFoundError"
        assert repr(outcome(torchxconfig.find_configs)) == "ConfigError"


def test_a_folder_twice(torchx: str, tmp_path: Path) -> None:
    with world(tmp_path, FILES, None) as config:
        for module, files in ((config, 2), (torchxconfig, 1)):
            assert len(module.find_configs([str(tmp_path / "cwd")] * 2)) == files


def test_no_example_is_left_over() -> None:
    assert {*READ, *WRITTEN, "a file that is missing", "a folder twice"} == set(names_of(AREA))
