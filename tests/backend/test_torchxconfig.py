"""`.torchxconfig`: which files count, what they set, and the errors of a broken one."""

import io
from pathlib import Path
from types import SimpleNamespace

import pytest
from backend.tables import TABLES
from hypothesis import given
from hypothesis import strategies as st
from support.canned import CannedScheduler
from support.torchxconfig import apply, load_sections

from torchx_tui.backends import registry
from torchx_tui.backends.local.request import LocalOpts
from torchx_tui.backends.torchxconfig import (
    ConfigValue,
    dump,
    find_configs,
    nearest,
    option_value,
    read_config,
    section_options,
)
from torchx_tui.base.errors import ConfigError
from torchx_tui.specs.errors import BackendUnavailableError, UnknownSchedulerException
from torchx_tui.specs.run_options import runopts


@pytest.fixture
def project(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(folder, text):
    path = folder / ".torchxconfig"
    path.write_text(text, encoding="utf-8")
    return path


# Which files count


def test_the_project_wins_over_the_home(project, own_home, monkeypatch):
    assert find_configs() == []
    here = write(project, "[component:utils.echo]\nmsg = project\n")
    home = write(own_home, "[component:utils.echo]\nmsg = home\nnum_replicas = 3\n")
    assert find_configs() == [str(here), str(home)]
    assert load_sections("component") == {"utils.echo": {"msg": "project", "num_replicas": "3"}}
    # A project in the home folder is read once.
    monkeypatch.chdir(own_home)
    assert find_configs() == [str(home)]


def test_the_environment_names_the_only_file(project, monkeypatch):
    other = write(project, "").rename(project / "other.ini")
    write(project, "")
    named = {"TORCHXCONFIG": str(other)}
    assert find_configs(environ=named) == find_configs([project], named) == [str(other)]
    assert find_configs(environ={"TORCHXCONFIG": ""}) == []
    monkeypatch.setenv("TORCHXCONFIG", str(project / "none.ini"))
    with pytest.raises(ConfigError, match=r"none\.ini, which is not a file"):
        find_configs()


# What they say


@pytest.mark.parametrize(
    ("text", "given", "cfg"),
    [
        ("log_dir = None\nprependCwd = yes\n", {}, {"log_dir": None, "prepend_cwd": True}),
        ("prepend_cwd = maybe\nlog_dir = /x\n", {"prependCwd": True}, {"prependCwd": True, "log_dir": "/x"}),
    ],
    ids=["cast", "given values stay"],
)
def test_values_become_run_options(project, text, given, cfg):
    write(project, f"[local_cwd]\n{text}")
    apply("local_cwd", given, LocalOpts.as_runopts())
    assert given == cfg


def test_an_unknown_key_is_skipped_with_a_hint(project):
    path = write(project, "[local_cwd]\nlogdir = /x\nprepend_cwd = #FIXME:(bool) something\n")
    cfg = {}
    assert apply("local_cwd", cfg, LocalOpts.as_runopts()) == [
        f"{path}:2: [local_cwd] logdir is not a run option of local_cwd; did you mean log_dir?",
        f"{path}:3: [local_cwd] prepend_cwd must still be filled in",
    ]
    assert cfg == {}


def test_hints_name_the_nearest_or_all_options():
    assert nearest("logdir", ["prepend_cwd", "log_dir"]) == "did you mean log_dir?"
    assert nearest("queue", ["prepend_cwd", "log_dir"]) == "known are prepend_cwd, log_dir"
    assert nearest("queue", []) == "there is none"
    assert ConfigValue("x", "a.ini", "local_cwd", "queue").place == "a.ini: [local_cwd] queue"


def test_keys_are_case_sensitive(project):
    write(
        project,
        "[component:a.py:f]\nMsg = A=B,C=D\nmsg = -a b --c=d e\n[component:]\nx = 1\n[cli:run]\ncomponent=a.b\n",
    )
    assert load_sections("component") == {"a.py:f": {"Msg": "A=B,C=D", "msg": "-a b --c=d e"}}
    assert load_sections("cli") == {"run": {"component": "a.b"}}


@pytest.mark.parametrize(("text", "words"), TABLES["torchxconfig"]["broken"])
def test_a_broken_file_is_named_with_its_line(project, text, words):
    path = write(project, text)
    with pytest.raises(ConfigError) as caught:
        read_config(path)
    assert str(caught.value).startswith(f"{path}{words}")


def test_encodings_of_a_file(project):
    path = write(project, "\ufeff[local_cwd]\nlog_dir = /logs\n")
    assert read_config(path)["local_cwd"]["log_dir"].text == "/logs"
    path.write_bytes(b"[a]\nx = \xff\n")
    with pytest.raises(ConfigError, match="it is not UTF-8"):
        read_config(path)
    with pytest.raises(ConfigError, match="cannot be read: Is a directory"):
        read_config(project)


def test_a_value_of_a_wrong_type_is_named_with_its_line(project):
    path = write(project, "[local_cwd]\n# as it was\nprepend_cwd = maybe\n")
    with pytest.raises(ConfigError) as caught:
        apply("local_cwd", {}, LocalOpts.as_runopts())
    assert str(caught.value).startswith(f"{path}:3: [local_cwd] prepend_cwd: `maybe` is not true or false")


def test_two_spellings_must_agree(project):
    known = LocalOpts.as_runopts()
    path = write(project, "[local_cwd]\nlog_dir = a\nlogDir = a\nprepend_cwd = 1\nprependCwd = no\n")
    options, warnings, errors = section_options(read_config(path)["local_cwd"], known)
    assert {name: option_value(value, known) for name, value in options.items()} == {
        "log_dir": "a",
        "prepend_cwd": True,
    }
    assert warnings == []
    assert errors == [f"{path}:5: [local_cwd] prependCwd is given as prepend_cwd too, with another value: remove one"]


# What is written


def test_a_written_file_is_read_again(project):
    with Path(".torchxconfig").open("w") as file:
        dump(file, ["local_cwd", "local_docker"])
    cfg = {}
    apply("local_cwd", cfg, LocalOpts.as_runopts())
    assert cfg == {"log_dir": None, "prepend_cwd": False, "auto_set_cuda_visible_devices": False}
    assert cfg == dict(LocalOpts.as_runopts().resolve({}))


def test_a_required_option_is_written_to_be_filled_in(monkeypatch):
    class NeedsQueue(CannedScheduler):
        def _run_opts(self):
            opts = runopts()
            opts.add("queue", str, "Where to wait.", required=True)
            return opts

    create = registry.create_scheduler
    made = {"kubernetes": lambda *given, **more: NeedsQueue()}
    monkeypatch.setattr(
        registry, "create_scheduler", lambda name, *given, **more: made.get(name, create)(name, *given, **more)
    )
    text = "[kubernetes]\nqueue = #FIXME:(str) Where to wait.\n\n[local_cwd]\n\n"
    assert dumped(["kubernetes", "local_cwd"], required_only=True) == text


def dumped(*schedulers, **options):
    written = io.StringIO()
    dump(written, *schedulers, **options)
    return written.getvalue()


def test_all_loadable_schedulers_are_written(monkeypatch):
    sections = {"[local_docker]", "[local_cwd]", "[kubernetes]"}
    assert set(dumped().splitlines()) >= sections
    create = registry.create_scheduler

    def create_some(name, *arguments, **more):
        if name == "local_docker":
            raise BackendUnavailableError("it is not installed")
        return create(name, *arguments, **more)

    monkeypatch.setattr(registry, "create_scheduler", create_some)
    assert sections - set(dumped().splitlines()) == {"[local_docker]"}
    with pytest.raises(BackendUnavailableError):
        dumped(["local_docker"])
    with pytest.raises(UnknownSchedulerException, match="local_cwd"):
        dumped(["local"])


_TEXTS = st.text(st.characters(exclude_categories=("C", "Z")), min_size=1)


@given(text=_TEXTS, items=st.lists(_TEXTS.filter(lambda item: not set(item) & set(",;")), max_size=3))
def test_any_default_is_read_back(tmp_path_factory, text, items):
    known = runopts()
    known.add("text", str, "a text", text)
    known.add("items", list[str], "texts", items or None)
    folder, cfg = tmp_path_factory.getbasetemp(), {}
    with pytest.MonkeyPatch.context() as patch:
        scheduler = SimpleNamespace(run_opts=lambda: known, close=lambda: None)
        patch.setattr(registry, "create_scheduler", lambda *_: scheduler)
        write(folder, dumped(["any"]))
        apply("any", cfg, known, [folder])
    if text != "None" and items != ["None"] and not any(one.startswith("#FIXME") for one in [text, *items]):
        assert cfg == {"text": text, "items": items or None}
