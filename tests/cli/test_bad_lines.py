"""What people get wrong on a command line: what was typed, and the words that come. Nothing is launched."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path

import pytest
from support.command import Command
from support.component_files import ComponentFile
from support.shell import launches

HERE = ("-s", "local_cwd")
GOOD = '''
def job(size: int, flag: bool = False) -> AppDef:
    """Do a job.

    Args:
        size: how large
        flag: whether
    """
    return AppDef("job", roles=[Role("r", image="", entrypoint="true")])


def unannotated(size) -> AppDef:
    """Do a job."""
    return AppDef("job")


def raises() -> AppDef:
    """Do a job."""
    raise RuntimeError("no data here")


def empty() -> AppDef:
    """Do a job."""
    return AppDef("empty")


def nested() -> AppDef:
    """Do a job."""
    return AppDef("a/b", roles=[Role("r", image="", entrypoint="true")])
'''
# Files that cannot be run, by what they begin with.
FILES = {
    "syntax.py": "def job(size: int) -> AppDef:\n    return AppDef(\n",
    "exits.py": "import sys\nsys.exit(3)\n",
    "fails.py": "raise ValueError('no data here')\n",
    "interrupts.py": "raise KeyboardInterrupt\n",
}

LINES: list[tuple[list[str], str]] = [
    # the command itself
    (["lsit"], r"invalid choice: 'lsit' \(choose from .*list"),
    (["--fps", "fast", "list"], "from 30 to 240"),
    (["--theme", "pink", "list"], "invalid choice: 'pink' .*torchx-dark"),
    (["--config"], "argument --config: expected one argument"),
    (["--config", "gone.toml", "list"], r"gone\.toml does not exist"),
    (["--profile", "prod", "list"], "prod is not a profile; there are none"),
    (["--conf", "x", "list"], "unrecognized arguments|invalid choice"),
    # what is launched
    (["run"], "name a component, such as utils.echo"),
    (["run", *HERE], "name a component"),
    (["dryrun", "--json"], "name a component"),
    (["run", *HERE, "utils.ehco"], "There is no component utils.ehco. Did you mean utils.echo"),
    (["run", *HERE, "jobs.py:nope"], r"jobs\.py has no nope"),
    (["run", *HERE, "gone.py:job"], r"there is no file .*gone\.py"),
    (["run", *HERE, "jobs.py:unannotated"], r"jobs\.py:\d+: Missing type annotation for argument 'size'"),
    (["run", *HERE, "jobs.py:raises"], r"jobs\.py:\d+: RuntimeError: no data here"),
    (["run", *HERE, "jobs.py:empty"], "has no roles"),
    (["run", *HERE, "jobs.py:nested"], "The app's name is a/b: .* no slash"),
    (["run", *HERE, "syntax.py:job"], r"syntax\.py:2: syntax error: '\(' was never closed"),
    (["run", *HERE, "exits.py:job", "--size", "1"], r"exits\.py:2: it called sys\.exit\(3\)"),
    (["run", *HERE, "fails.py:job", "--size", "1"], r"fails\.py:1: ValueError: no data here"),
    (["run", *HERE, "interrupts.py:job", "--size", "1"], r"interrupts\.py:1: KeyboardInterrupt"),
    # its arguments
    (["run", *HERE, "jobs.py:job"], "job needs a value for size"),
    (["run", *HERE, "jobs.py:job", "--size", "big"], "size: `big` is not a whole number"),
    (["run", *HERE, "jobs.py:job", "--size", "1", "--flag", "ture"], "flag: `ture` is not true or false"),
    (["run", *HERE, "jobs.py:job", "--size"], "expected one argument"),
    (["run", *HERE, "jobs.py:job", "--size", "1", "--colour", "red"], "--colour.*Valid options: --size, --flag"),
    (["run", *HERE, "jobs.py:job", "--size", "1", "--size", "2"], "size: --size is given twice"),
    (["run", *HERE, "utils.echo", "--num_replicas", "0"], "0 replicas: at least 1"),
    (["run", *HERE, "dist.ddp", "--script", "x.py", "-j", "2by2"], "j: "),
    (["run", *HERE, "utils.python", "-c", "1", "-m", "x"], "give exactly one of"),
    # where, and with which options
    (["run", "-s", "slrum", "utils.echo"], "There is no scheduler slrum. Valid schedulers: .*local_cwd"),
    (["run", *HERE, "-s", "local_docker", "utils.echo"], "argument -s/--scheduler: given twice"),
    (["run", *HERE, "utils.echo", "-s", "local_docker"], "argument -s/--scheduler: given twice"),
    (["run", *HERE, "utils.echo", "--scheduler"], "argument -s/--scheduler: expected one argument"),
    (["run", *HERE, "-cfg", "log_dri=/x", "utils.echo"], "`log_dri`. Valid options are: .*log_dir"),
    (["run", *HERE, "-cfg", "prepend_cwd=maybe", "utils.echo"], "prepend_cwd: `maybe` is not true or false"),
    (["run", *HERE, "-cfg", "log_dir", "utils.echo"], "`log_dir` is not `key=value`"),
    (["run", *HERE, "-cfg", "log_dir=/x,logDir=/y", "utils.echo"], "`log_dir` is given twice"),
    (["run", *HERE, "--workspace", "/src", "utils.echo"], "local_cwd takes no workspace"),
    (["run", "-s", "kubernetes", "utils.echo"], "Required run option: queue.*`torchx-tui runopts` lists"),
    (["run", "-s", "kubernetes", "-cfg", "queue=q", "utils.echo"], "kubeconfig"),
    (["run", "-s", "local_docker", "utils.echo"], "Docker engine at .* was not found"),
    # changes in roles
    (["run", *HERE, "--set", "echo.replicas=2", "utils.echo"], "echo.replicas: there is no such field. Valid fields:"),
    (["run", *HERE, "--set", "trainer.cpu=2", "utils.echo"], "trainer: the app has no such role. Its roles: echo"),
    (["run", *HERE, "--set", "echo.cpu=lots", "utils.echo"], "echo.cpu: `lots` is not a whole number"),
    (["run", *HERE, "--set", "echo.num_replicas=0", "utils.echo"], "echo.num_replicas: use 1 or more, not 0"),
    (["run", *HERE, "--set", "num_replicas=2", "utils.echo"], "use ROLE.FIELD=VALUE"),
    # jobs
    (["status", "local_cwd"], "local_cwd is not of the form: <scheduler_backend>://<session_name>/<app_id>"),
    (["status"], "the following arguments are required: handle"),
    (["cancel", "slrum://torchx/x"], "There is no scheduler slrum"),
    (["log", "local_cwd://torchx"], "is not of the form"),
    (["log", "--streams", "both", "local_cwd://torchx/x"], "invalid choice: 'both'"),
    (["wait", "--timeout", "soon", "local_cwd://torchx/x"], "invalid float value: 'soon'"),
    (["prune", "--older-than", "-1"], "-1: give a number of days"),
    (["prune", "--older-than", "a week"], "a week: give a number of days"),
    (["list", "-s", "slrum"], "There is no scheduler slrum"),
    (["list", "-cfg", "namespace=x"], "-cfg is for one scheduler: name it with -s"),
    (["list", *HERE, "-cfg", "namespace=x"], "Unknown run option `namespace`"),
    # the rest
    (["runopts", "slrum"], "There is no scheduler slrum"),
    (["builtins", "--print", "utils.ehco"], "There is no component utils.ehco"),
    (["lint"], "the following arguments are required: FILE"),
    (["lint", "gone.py"], "gone.py: No such file or directory"),
    (["configure", "-s", "slrum"], "There is no scheduler slrum"),
    (["completion", "tcsh"], "invalid choice: 'tcsh' .*fish"),
]


@pytest.mark.parametrize(("typed", "words"), LINES, ids=[" ".join(typed) for typed, _ in LINES])
def test_a_mistake_is_told_in_words(command: Command, tmp_path: Path, typed: list[str], words: str):
    ComponentFile(tmp_path / "jobs.py").write(GOOD)
    for name, begin in FILES.items():
        (tmp_path / name).write_text(begin + GOOD)
    ended = command(*typed)
    assert re.search(words, ended.err, re.DOTALL), ended.err
    assert ended.code == 2
    assert ended.out == ""
    assert "Traceback" not in ended.err
    # What a backend refused is in the history, with why.
    assert all(json.loads(path.read_bytes())["error"] for path in launches())


STDIN: list[tuple[str, str]] = [
    ("", "what is on stdin is not JSON"),
    ("[1]", r"what is on stdin is not a JSON object, but \[1\]"),
    ("{}", "has no component_name"),
    ('{"component_name": 3}', "component_name is 3, use a str"),
    ('{"component_name": "utils.echo", "schedulr": "x"}', "schedulr is not a field of it; did you mean scheduler?"),
    ('{"component_name": "utils.echo", "scheduler": "slrum"}', "There is no scheduler slrum"),
    ('{"component_name": "utils.echo", "component_args": {"num_replicas": "x"}}', "`x` is not a whole number"),
    (
        '{"component_name": "utils.echo", "scheduler": "local_cwd", "scheduler_args": {"x": 1}}',
        "Unknown run option `x`",
    ),
    ('{"component_name": "utils.echo", "component_args_str": "--msg"}', 'component_args_str is "--msg", use a list'),
]


@pytest.mark.parametrize(("typed", "words"), STDIN)
def test_a_mistake_on_stdin_is_told_in_words(command: Command, monkeypatch: pytest.MonkeyPatch, typed: str, words: str):
    monkeypatch.setattr("sys.stdin", io.StringIO(typed))
    ended = command("run", "--stdin")
    assert re.search(words, ended.err, re.DOTALL), ended.err
    assert (ended.code, ended.out) == (2, "")
    assert launches() == []


def test_stdin_takes_nothing_beside_it(command: Command, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("sys.stdin", io.StringIO(json.dumps({"component_name": "utils.echo"})))
    ended = command("run", "-s", "kubernetes", "--wait", "--stdin", "utils.echo")
    assert (ended.code, "leave out scheduler, wait, rest" in ended.err) == (2, True)


BROKEN = {
    "a lone %": ("[local_cwd]\nlog_dir = /logs/%\n", ":2: [local_cwd] log_dir: write a single % as %%"),
    "no section": ("log_dir = /logs\n", ":1: a section such as [local_cwd] must come first"),
    "a section twice": ("[local_cwd]\n[local_cwd]\n", ":2: the section [local_cwd] appears twice: merge them"),
    "a header that is not closed": ("[local_cwd\n", ":1: a section such as [local_cwd] must come first"),
    "a bad bool": ("[local_cwd]\nprepend_cwd = perhaps\n", ":2: [local_cwd] prepend_cwd: `perhaps` is not true or"),
}


@pytest.mark.parametrize("way", [("run",), ("dryrun",), ("run", "--dryrun")], ids=" ".join)
@pytest.mark.parametrize(("text", "words"), BROKEN.values(), ids=BROKEN)
def test_a_broken_torchxconfig_keeps_a_launch_back(
    command: Command, tmp_path: Path, text: str, words: str, way: tuple[str, ...]
):
    (tmp_path / ".torchxconfig").write_text(text)
    ended = command(*way, *HERE, "utils.echo", "--msg", "hi")
    assert f"torchx-tui: {tmp_path}/.torchxconfig{words}" in ended.err
    assert "correct that, or use --ignore-config to launch without .torchxconfig" in ended.err
    assert (ended.code, ended.out, launches()) == (2, "", [])
    # Listing jobs takes no harm from it.
    assert command("list", *HERE).code == 0


def test_a_torchxconfig_that_is_not_there_keeps_a_launch_back(command: Command, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TORCHXCONFIG", "/gone/.torchxconfig")
    ended = command("run", *HERE, "utils.echo")
    assert "TORCHXCONFIG names /gone/.torchxconfig, which is not a file" in ended.err
    assert (ended.code, ended.out, launches()) == (2, "", [])


def test_a_broken_section_of_another_scheduler_keeps_nothing_back(command: Command, tmp_path: Path):
    (tmp_path / ".torchxconfig").write_text("[local_docker]\npull = perhaps\n")
    assert command("dryrun", *HERE, "utils.echo").code == 0


@pytest.mark.parametrize("line", [("--ignore-config", "utils.echo"), ("utils.echo", "--ignore-config")], ids=" ".join)
def test_ignore_config_goes_on_without_the_file(command: Command, tmp_path: Path, line: tuple[str, ...]):
    sound = "[component:utils.echo]\nmsg = of the file\n[cli:run]\ncomponent = utils.sh\n"
    for text in (sound, f"{sound}[local_cwd]\nprepend_cwd = perhaps\n", "[local_cwd\n"):
        (tmp_path / ".torchxconfig").write_text(text)
        ended = command("dryrun", "--json", *HERE, *line)
        assert (ended.code, ended.err) == (0, "")
        assert ended.data["app"]["roles"][0]["args"] == ["hello world"]
    (tmp_path / ".torchxconfig").write_text(sound)
    ended = command("run", "--ignore-config")
    assert (ended.code, "name a component" in ended.err) == (2, True)


def test_a_profile_that_cannot_be_read_keeps_a_launch_back(command: Command, tmp_path: Path):
    config = tmp_path / "config.toml"
    config.write_text('[profiles.here]\nrunopts = { prepend_cwd = "perhaps" }\n')
    ended = command("--config", str(config), "--profile", "here", "run", *HERE, "utils.echo")
    assert "profiles.here.runopts.prepend_cwd: `perhaps` is not true or false" in ended.err
    assert "use --profile NAME to launch with another profile" in ended.err
    assert (ended.code, ended.out, launches()) == (2, "", [])


def test_a_scheduler_of_config_that_there_is_not_names_its_file(command: Command, tmp_path: Path):
    (tmp_path / ".torchxconfig").write_text("[cli:run]\nscheduler = slrum\n")
    ended = command("run", "utils.echo")
    words = f"{tmp_path}/.torchxconfig, section [cli:run]: There is no scheduler slrum"
    assert (ended.code, words in ended.err) == (2, True)
    assert launches() == []
