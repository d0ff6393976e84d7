"""The rules of components."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from torchx_tui.components.lint import validate
from torchx_tui.components.model import LinterMessage
from torchx_tui.specs.errors import ComponentNotFoundException


def lint(tmp_path: Path, text: str, function: str = "f") -> list[LinterMessage]:
    path = tmp_path / "components.py"
    path.write_text(text)
    return validate(str(path), function)


def test_async_function_is_refused(tmp_path):
    (message,) = lint(tmp_path, "async def f() -> AppDef: ...\n")
    assert message.description == "Function: f is async, a component is a plain function"


def test_constructors_of_classes_are_checked(tmp_path):
    text = """
class Good:
    def __init__(self, a: str): ...
    def build(self) -> AppDef: ...
class Bad:
    def __init__(self, a): ...
    def build(self) -> int: ...
class Empty: ...
"""
    assert lint(tmp_path, text, "Good") == []
    assert [message.description for message in lint(tmp_path, text, "Bad")] == [
        "Missing type annotation for argument 'a' in function 'Bad'",
        "Function: build has incorrect return annotation, supported annotation: AppDef",
    ]
    assert "no method build" in lint(tmp_path, text, "Empty")[0].description


def test_syntax_error_has_its_line(tmp_path):
    (message,) = lint(tmp_path, "x = 1\ndef f(:\n")
    assert (message.name, message.line, message.char) == ("TorchXValidator", 2, 7)


# Too deep for Python's parser, for its tree, and for its memory. Python 3.10 reads the second.
@pytest.mark.parametrize(
    "text", ["(" * 1000 + ")" * 1000, "1" + "+1" * 100_000, "-" * 100_000 + "1"], ids=["parser", "tree", "memory"]
)
def test_file_that_is_nested_too_deep(tmp_path, text):
    (fault,) = lint(tmp_path, text)
    assert fault.name == "TorchXValidator"
    assert re.search("nested|Function f not found", fault.description)
    # Python says where there are too many brackets.
    assert text.startswith("(") or (fault.line, fault.char) == (0, 0)


def test_missing_function_or_file(tmp_path):
    (message,) = lint(tmp_path, "", "nope")
    assert (message.name, message.description) == ("TorchXValidator", "Function nope not found")
    assert (message.line, message.char) == (0, 0)
    with pytest.raises(ComponentNotFoundException, match=r"gone\.py: No such file or directory$"):
        validate(str(tmp_path / "gone.py"), "f")


def test_lint_runs_nothing(tmp_path):
    ran = tmp_path / "ran"
    (message,) = lint(tmp_path, f"open({str(ran)!r}, 'w')\nraise SystemExit(3)\ndef f(): ...\n")
    assert (message.line, ran.exists()) == (3, False)
