"""Command lines and what they print: the cases are in `cases/*.toml`.

A case is one command, or several as `steps`. In its texts <tmp> is the current folder, <job> the handle of its job, and
<MASK> a masked secret. Its keys:

- files: their texts; Python files get the imports of a component
- environ: variables; an empty text removes one
- jobs: the states of jobs of a canned scheduler, local_cwd://torchx/NAME
- job: the arguments of a local job that is run before
- run, stdin: the command line and its input
- code: the exit code, 0 if it is not given
- out, err: the exact output; err is empty if neither it nor err_has is given
- lines: the lines of stdout, sorted
- out_has, err_has, out_lacks: regular expressions
- json, record: what stdout and the only record of a launch hold at least
- launched: the number of records of launches
- written, unwritten: files by their text, and names of files that must not be there
"""

from __future__ import annotations

import io
import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from support.command import Command
from support.component_files import HEADER
from support.shell import launches
from support.tables import toml_table

from torchx_tui.backends.shared.secrets import MASK
from torchx_tui.specs.status import AppState

CASES: dict[str, Any] = {
    f"{path.stem}: {name}": case
    for path in sorted(Path(__file__).with_name("cases").glob("*.toml"))
    for name, case in toml_table(path).items()
}


def filled(value: Any, names: dict[str, str]) -> Any:
    """Return a value with the placeholders in its texts replaced."""
    if isinstance(value, dict):
        return {filled(key, names): filled(one, names) for key, one in value.items()}
    if isinstance(value, list):
        return [filled(one, names) for one in value]
    if isinstance(value, str):
        for name, text in names.items():
            value = value.replace(f"<{name}>", text)
    return value


def part_of(data: Any, expected: Any) -> Any:
    """Return the part of JSON data that a case gives: only its keys of objects."""
    if isinstance(expected, dict) and isinstance(data, dict):
        return {key: part_of(data[key], one) for key, one in expected.items() if key in data}
    if isinstance(expected, list) and isinstance(data, list) and len(data) == len(expected):
        return [part_of(*pair) for pair in zip(data, expected, strict=True)]
    return data


def check(command: Command, step: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    if "stdin" in step:
        monkeypatch.setattr("sys.stdin", io.StringIO(step["stdin"]))
    ended = command(*shlex.split(step["run"]))
    assert ended.code == step.get("code", 0), ended.err
    if "err_has" not in step:
        assert ended.err == step.get("err", "")
    assert ended.out == step.get("out", ended.out)
    assert sorted(ended.out.splitlines()) == step.get("lines", sorted(ended.out.splitlines()))
    for key, text in (("out_has", ended.out), ("err_has", ended.err), ("out_lacks", ended.out)):
        for pattern in step.get(key, ()):
            assert bool(re.search(pattern, text, re.MULTILINE)) == (key != "out_lacks"), (pattern, text)
    if "json" in step:
        assert part_of(ended.data, step["json"]) == step["json"]
    assert len(launches()) == step.get("launched", len(launches()))
    if "record" in step:
        (path,) = launches()
        record = json.loads(path.read_text())
        assert {key: record[key] for key in step["record"]} == step["record"]


@pytest.mark.parametrize("name", CASES)
def test_case(command, tmp_path, monkeypatch, request, name):
    case = filled(CASES[name], {"tmp": str(tmp_path), "MASK": re.escape(MASK)})
    for file, text in case.get("files", {}).items():
        (tmp_path / file).write_text((HEADER if file.endswith(".py") else "") + text)
    for variable, value in case.get("environ", {}).items():
        monkeypatch.setenv(variable, value)
        if not value:
            monkeypatch.delenv(variable)
    if "jobs" in case:
        scheduler = request.getfixturevalue("scheduler")
        for job, state in case["jobs"].items():
            scheduler.add(job, AppState[state], 60)
        scheduler.usual_workspace = case.get("usual_workspace", "")
    if "job" in case:
        handle = command("run", "-s", "local_cwd", *shlex.split(case["job"])).out.strip()
        case = filled(case, {"job": handle})
    for step in case.get("steps", [case]):
        check(command, step, monkeypatch)
    written = case.get("written", {})
    assert {file: (tmp_path / file).read_text() for file in written} == written
    assert not [file for file in case.get("unwritten", ()) if (tmp_path / file).exists()]
