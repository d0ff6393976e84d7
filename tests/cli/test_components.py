"""builtins, runopts and lint."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.command import Command
from support.component_files import ComponentFile

from torchx_tui.backends.runner import Runner
from torchx_tui.specs import SchedulerError

GOOD = '''
def good(size: int) -> AppDef:
    """Do it."""
    return AppDef("good")
'''
BAD = '''
def bad(size, **rest) -> AppDef:
    """Do it."""
    return AppDef("bad")
'''


@pytest.fixture
def file(tmp_path: Path) -> ComponentFile:
    return ComponentFile(tmp_path / "jobs.py")


def test_builtins(command: Command):
    first, *rest = command("builtins").out.splitlines()
    assert first == f"Found {len(rest)} builtin components:"
    assert [line.split()[0] for line in rest] == [f"{number}." for number in range(1, len(rest) + 1)]
    assert any(line.split()[1:] == ["utils.echo", "Print", "a", "message."] for line in rest)
    found = {one["name"]: one for one in command("builtins", "--json").data}
    assert len(found) == len(rest)
    assert (found["dist.torchrun"]["kind"], found["dist.torchrun"]["error"]) == ("builtin", None)


@pytest.mark.parametrize(
    ("name", "words", "printed"),
    [
        ("utils.echo", ["--msg", "copied"], "echo/0 copied"),
        ("utils.booth", ["--x1", "1", "--x2", "3", "--tracker_base", "results"], "booth(1, 3) = 0"),
        ("demo.train", ["--steps", "1", "--num_replicas", "1", "--step_seconds", "0"], "trainer/0 "),
    ],
)
def test_a_builtin_that_is_printed_can_be_launched(
    command: Command, tmp_path: Path, name: str, words: list[str], printed: str
):
    (tmp_path / "printed.py").write_text(command("builtins", "--print", name).out)
    ended = command("run", "-s", "local_cwd", f"printed.py:{name.partition('.')[2]}", *words)
    assert (ended.code, printed in ended.err) == (0, True), ended.err


def test_the_source_of_a_component_of_a_file(command: Command, file: ComponentFile):
    file.write(GOOD)
    assert command("builtins", "--print", "jobs.py:good").out.endswith(f"{GOOD.strip()}\n")


def test_runopts(command: Command):
    ended = command("runopts", "local_cwd")
    assert ended.out.startswith("local_cwd:\n    usage:\n        [log_dir=LOG_DIR]")
    every = command("runopts", "--json").data
    assert {"local_cwd", "local_docker", "kubernetes"} <= set(every)
    (queue,) = [option for option in every["kubernetes"] if option["name"] == "queue"]
    assert queue.items() >= {"name": "queue", "type": "str", "required": True, "default": None}.items()
    assert "queue" in queue["help"]


def test_lint_of_a_sound_file(command: Command, file: ComponentFile):
    file.write(GOOD)
    assert (command("lint", "jobs.py").code, command("lint", "jobs.py").out) == (0, "")
    assert command("lint", "--json", "jobs.py:good").data == []


def test_lint_tells_place_severity_and_fix(command: Command, file: ComponentFile):
    file.write(GOOD + BAD)
    line = file.line_of("def bad")
    ended = command("lint", "jobs.py")
    assert ended.code == 1
    assert f"jobs.py:{line}:1: error: Missing type annotation for argument 'size' in function 'bad'\n" in ended.out
    assert "    fix: " in ended.out
    found = command("lint", "--json", "jobs.py:bad").data
    assert {(one["path"], one["function"], one["line"], one["severity"]) for one in found} == {
        ("jobs.py", "bad", line, "error")
    }
    assert all(one["fix"] for one in found)


def test_a_warning_alone_is_no_failure(command: Command, file: ComponentFile):
    file.write('def plain() -> AppDef:\n    return AppDef("a")\n')
    ended = command("lint", "jobs.py")
    assert (ended.code, ": warning: " in ended.out) == (0, True)


def test_lint_of_what_is_no_component_or_no_python(command: Command, file: ComponentFile):
    file.write("def helper():\n    pass\n")
    assert command("lint", "jobs.py").out.startswith("jobs.py:1:1: error: no function here is a component\n    fix: ")
    file.write("def broken(:\n")
    ended = command("lint", "jobs.py")
    assert (ended.code, ended.out.startswith("jobs.py:3:")) == (1, True)
    assert command("lint", "jobs.py:nope").code == 1


@pytest.mark.parametrize(
    "words",
    [["builtins"], ["builtins", "--json"], ["builtins", "--print", "utils.echo"], ["runopts"], ["runopts", "--json"]],
)
def test_what_is_printed_is_no_failure(command: Command, words: list[str]):
    assert command(*words).code == 0


def test_a_scheduler_without_options_is_left_out_unless_it_is_asked_for(
    command: Command, monkeypatch: pytest.MonkeyPatch
):
    run_opts = Runner.run_opts

    def broken(self: Runner, name: str) -> object:
        if name == "kubernetes":
            raise SchedulerError("no client is installed")
        return run_opts(self, name)

    monkeypatch.setattr(Runner, "run_opts", broken)
    every = command("runopts", "--json")
    assert (every.code, "local_cwd" in every.data, "kubernetes" in every.data) == (0, True, False)
    assert every.err == "torchx-tui: kubernetes is left out: no client is installed\n"
    one = command("runopts", "kubernetes")
    assert (one.code, one.out, one.err) == (2, "", "torchx-tui: no client is installed\n")


def test_each_fault_as_json(command: Command, file: ComponentFile):
    file.write("def helper():\n    pass\n")
    (none,) = command("lint", "--json", "jobs.py").data
    assert (none["path"], none["function"], none["name"], none["column"]) == ("jobs.py", "", "TorchXValidator", 1)
    file.write("def broken(:\n")
    (broken,) = command("lint", "--json", "jobs.py").data
    assert (broken["function"], broken["name"], broken["severity"]) == ("<file>", "TorchXValidator", "error")


def test_a_file_is_named_as_it_is_called(command: Command, tmp_path: Path):
    ComponentFile(tmp_path / "a:b.py").write(GOOD)
    assert command("lint", "a:b.py").code == 0
    assert command("lint", "none.py").err.startswith("torchx-tui: none.py: ")


def test_a_fix_of_several_lines_is_indented(command: Command, file: ComponentFile):
    file.write('def bad(size: "int\\n" = 1) -> AppDef:\n    """Do it."""\n')
    lines = command("lint", "jobs.py").out.splitlines()
    assert [line.startswith("    ") for line in lines] == [False, True, True]
