"""The rules of components."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support.tables import toml_table

from torchx_tui.components.lint import validate
from torchx_tui.components.model import LinterMessage
from torchx_tui.specs.errors import ComponentNotFoundException

ROWS = toml_table(Path(__file__).with_name("lint.toml"))

RULES = "TorchxFunctionValidator"


def lint(tmp_path: Path, text: str, function: str = "f") -> list[LinterMessage]:
    path = tmp_path / "components.py"
    path.write_text(text)
    return validate(str(path), function)


@pytest.mark.parametrize(
    "parameters",
    [
        "",
        "a: str, b: int = 1, c: float = 1.0, d: bool = False",
        "a: List[str], b: list[int], c: Dict[str, str], d: dict[str, int], e: Tuple[str, int]",
        "a: typing.Dict[str, str], b: typing.List[int], c: t.Optional[t.List[str]] = None",
        "a: list[builtins.int], b: dict[str, builtins.float]",
        "a: Optional[str] = None, b: str | None = None, c: None | Dict[str, str] = None, d: Union[int, None] = None",
        "a: Annotated[str, '-a'], b: Literal['x', 'y'] = 'x'",
        "*args: str, k: str",
        "a: JobName",
    ],
)
def test_accepted_parameters(tmp_path, parameters):
    assert lint(tmp_path, f'def f({parameters}) -> AppDef:\n    """Do."""\n') == []


@pytest.mark.parametrize("returns", ["AppDef", "specs.AppDef", "torchx.specs.AppDef", "'AppDef'"])
def test_accepted_return_types(tmp_path, returns):
    assert lint(tmp_path, f'def f() -> {returns}:\n    """Do."""\n') == []


@pytest.mark.parametrize(
    ("parameters", "description"),
    ROWS["refused_parameters"],
)
def test_refused_parameters(tmp_path, parameters, description):
    messages = lint(tmp_path, f'\ndef f({parameters}) -> AppDef:\n    """Do."""\n')
    (place,) = [(message.name, message.line, message.char, message.severity) for message in messages]
    assert place == (RULES, 2, 0, "error")
    assert messages[0].description.startswith(description)


def test_docstring_is_not_required(tmp_path):
    assert lint(tmp_path, "def f() -> AppDef: ...\n") == []


def test_async_function_is_refused(tmp_path):
    (message,) = lint(tmp_path, "async def f() -> AppDef: ...\n")
    assert message.description == "Function: f is async, a component is a plain function"


def test_refused_return_types(tmp_path):
    (missing,) = lint(tmp_path, 'def f():\n    """Do."""\n')
    assert "missing return annotation" in missing.description
    (wrong,) = lint(tmp_path, 'def f() -> int:\n    """Do."""\n')
    assert wrong.description == "Function: f has incorrect return annotation, supported annotation: AppDef"


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


def test_file_with_a_null_byte(tmp_path):
    (fault,) = lint(tmp_path, "def f():\0 pass")
    assert (fault.name, fault.line, fault.char) == ("TorchXValidator", 0, 0)
    assert "null bytes" in fault.description


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


def test_message_has_the_line_of_its_argument(tmp_path):
    source = 'def f(\n    a: str,\n    b,\n    c: Set[str],\n    **d: str,\n) -> AppDef:\n    """Do."""\n'
    assert [message.line for message in lint(tmp_path, source)] == [3, 4, 5]


@pytest.mark.parametrize("returns", ["None", "list[AppDef]", "Optional[AppDef]", "f()"])
def test_annotation_that_is_no_name(tmp_path, returns):
    (message,) = lint(tmp_path, f'def f() -> {returns}:\n    """Do."""\n')
    assert "missing return annotation or has unknown annotations" in message.description


@pytest.mark.parametrize(("kind", "words"), ROWS["types"])
def test_types_that_python_refuses(tmp_path, kind, words):
    (message,) = lint(tmp_path, f'def f(a: {kind}) -> AppDef:\n    """Do."""\n')
    assert words in message.description


@pytest.mark.parametrize("block", ["with x:", "for x in y:", "while x:", "if x:"])
def test_function_in_a_block(tmp_path, block):
    assert lint(tmp_path, f'{block}\n    def f(a: str) -> AppDef:\n        """Do."""\n') == []
