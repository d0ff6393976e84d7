"""The AppDefs of the builtin components held against TorchX's, field by field."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from interop.builtin_calls import ARGUMENTS, NEEDED, TAKES_A_REST, calls
from interop.component_calls import built_by_them, built_by_us
from interop.oracle import Refused, cases, hold, names_of, outcome, plain, theirs

from torchx_tui.components import get_builtin_source

AREA = "builtin components"


def fields_of(app: Any) -> Any:
    """Return an AppDef's fields, but for those that TorchX does not have, mappings in one order."""
    if isinstance(app, Refused):
        return app
    roles = [
        {name: value for name, value in role.items() if name not in ("base_image", "overrides")}
        for role in plain(app)["roles"]
    ]
    return json.loads(json.dumps({**plain(app), "roles": roles}, sort_keys=True))


def explained(name: str, argv: list[str], their: Any, our: Any) -> str | None:
    """Return the entry that an outcome falls under."""
    if isinstance(our, Refused):
        if isinstance(their, Refused):
            return "errors"
        if any(not word.isascii() for word in argv if word.startswith("--j=")):
            return "digits of other scripts"
        return "no nodes" if "nodes" in str(our.error) else None
    if isinstance(their, Refused):
        return "an elastic spmd" if name == "dist.spmd" and "--j=1:4x8" in argv else None
    their_role, our_role = ({**app["roles"][0]} for app in (their, our))
    if name in ("utils.copy", "utils.booth"):
        started = their_role.pop("entrypoint"), our_role.pop("entrypoint")
        same_words = their_role.pop("args")[2:] == our_role.pop("args")[2:]
        travels = started == ("python", "python3") and same_words and their_role == our_role
        return "programs that travel" if travels else None
    if {"--cpu=0", "--memMB=0"} & set(argv):
        del their_role["resource"], our_role["resource"]
        return "a zero" if their_role == our_role else None
    return None


@given(calls())
@example(("utils.python", ["--m="]))
@example(("utils.python", ["--script="]))
@cases(1500)
def test_each_builtin(torchx: str, call: tuple[str, list[str]]) -> None:
    name, argv = call
    their_app = fields_of(outcome(lambda: built_by_them(name, argv)))
    our_app = fields_of(outcome(lambda: built_by_us(name, argv)))

    def explain(their: Any, our: Any) -> str | None:
        return explained(name, argv, their, our)

    if isinstance(their_app, Refused) and their_app.names[0] == "SystemExit":
        assert isinstance(our_app, Refused)
        assert our_app.names[0] == "ArgumentError"
        return
    hold(AREA, their_app, our_app, explain, call)


@pytest.mark.parametrize("name", sorted(ARGUMENTS))
def test_the_usual_call_is_equal(torchx: str, name: str) -> None:
    argv = [f"--{one}={ARGUMENTS[name][one][0]}" for one in NEEDED.get(name, [])]
    their_app, our_app = fields_of(built_by_them(name, argv)), fields_of(built_by_us(name, argv))
    if name not in ("utils.copy", "utils.booth"):
        assert our_app == their_app


@pytest.mark.parametrize("name", [*sorted(ARGUMENTS), "demo.train"])
def test_torchx_launches_a_builtin_that_was_printed(torchx: str, tmp_path: Path, name: str) -> None:
    argv = [f"--{one}={ARGUMENTS[name][one][0]}" for one in NEEDED.get(name, [])]
    argv += ["--", "a b"] if name in TAKES_A_REST else []
    path = tmp_path / "copy.py"
    path.write_text(get_builtin_source(name))
    copied = f"{path}:{name.partition('.')[2]}"
    made = built_by_them(copied, argv)
    assert fields_of(made) == fields_of(built_by_us(name, argv))
    with theirs("torchx.runner").get_runner() as runner:
        assert str(runner.dryrun(made, "local_cwd"))


def of_role(field: str) -> Any:
    return lambda app: getattr(app.roles[0], field)


EXAMPLES: dict[str, tuple[str, list[str], Any, str, str]] = {
    "programs that travel": ("utils.copy", ["--src=a", "--dst=b"], of_role("entrypoint"), "'python'", "'python3'"),
    "errors": ("utils.sh", ["--h=no-such"], of_role("name"), "KeyError", "ArgumentError"),
    "no nodes": ("dist.ddp", ["--script=a.py", "--j=0x2"], of_role("num_replicas"), "0", "ArgumentError"),
    "digits of other scripts": (
        "dist.ddp", ["--script=a.py", "--j=４"], of_role("num_replicas"), "1", "ArgumentError"
    ),
    "an elastic spmd": ("dist.spmd", ["--m=a", "--j=1:2x4"], of_role("min_replicas"), "ValueError", "1"),
    "a zero": ("utils.sh", ["--cpu=0"], lambda app: app.roles[0].resource.cpu, "2", "0"),
}  # fmt: skip


@pytest.mark.parametrize("name", names_of(AREA))
def test_each_difference_is_there(torchx: str, name: str) -> None:
    component, argv, of, their_text, our_text = EXAMPLES[name]
    assert repr(outcome(lambda: of(built_by_them(component, argv)))) == their_text
    assert repr(outcome(lambda: of(built_by_us(component, argv)))) == our_text


def test_no_example_is_left_over() -> None:
    assert set(EXAMPLES) == set(names_of(AREA))
