"""The rules of components."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from torchx_tui.components import LinterMessage, validate
from torchx_tui.specs import ComponentNotFoundException

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
def test_what_is_accepted(tmp_path: Path, parameters: str) -> None:
    assert lint(tmp_path, f'def f({parameters}) -> AppDef:\n    """Do."""\n') == []


@pytest.mark.parametrize("returns", ["AppDef", "specs.AppDef", "torchx.specs.AppDef", "'AppDef'"])
def test_ways_to_say_appdef(tmp_path: Path, returns: str) -> None:
    assert lint(tmp_path, f'def f() -> {returns}:\n    """Do."""\n') == []


@pytest.mark.parametrize(
    ("parameters", "description"),
    [
        ("a", "Missing type annotation for argument 'a' in function 'f'"),
        ("*args", "Missing type annotation for argument 'args' in function 'f'"),
        ("*, k", "Missing type annotation for argument 'k' in function 'f'"),
        ("a: Set[str]", "Unsupported container type 'Set' for argument 'a: Set[str]' in function 'f'"),
        (
            "a: List[List[int]]",
            "Non-primitive element type 'List[int]' for argument 'a: List[List[int]]' in function 'f'",
        ),
        ("a: Dict[str, List[int]]", "Non-primitive value type 'List[int]'"),
        ("a: Dict[List[int], str]", "Non-primitive key type 'List[int]'"),
        ("a: Dict[str]", "Malformed dict type 'Dict[str]', expected exactly two type parameters (dict[K, V])"),
        ("a: 'str'", "Unsupported argument type \"'str'\""),
        ("a: x.y", "Unsupported argument type 'x.y'"),
        ("a: Tuple[str]", "Unsupported tuple type 'Tuple[str]'"),
        ("a: Union[int, str]", "Unsupported container type 'Union'"),
        ("**kwargs: str", "Unsupported argument '**kwargs' in function 'f'"),
    ],
)
def test_parameters_that_are_refused(tmp_path: Path, parameters: str, description: str) -> None:
    messages = lint(tmp_path, f'\ndef f({parameters}) -> AppDef:\n    """Do."""\n')
    (place,) = [(message.name, message.line, message.char, message.severity) for message in messages]
    assert place == (RULES, 2, 0, "error")
    assert messages[0].description.startswith(description)


def test_what_is_returned_counts(tmp_path: Path) -> None:
    (missing,) = lint(tmp_path, 'def f():\n    """Do."""\n')
    assert "missing return annotation" in missing.description
    (wrong,) = lint(tmp_path, 'def f() -> int:\n    """Do."""\n')
    assert wrong.description == "Function: f has incorrect return annotation, supported annotation: AppDef"


def test_async_is_named(tmp_path: Path) -> None:
    (message,) = lint(tmp_path, 'async def f() -> AppDef:\n    """Do."""\n')
    assert "async" in message.description


def test_a_missing_docstring_is_a_warning(tmp_path: Path) -> None:
    (message,) = lint(tmp_path, "\ndef f() -> AppDef:\n    pass\n")
    assert (message.name, message.line, message.char, message.severity) == (RULES, 2, 0, "warning")


def test_classes_are_checked_by_what_they_are_made_with(tmp_path: Path) -> None:
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


def test_a_syntax_error_has_its_place(tmp_path: Path) -> None:
    (message,) = lint(tmp_path, "x = 1\ndef f(:\n")
    assert (message.name, message.line, message.char) == ("TorchXValidator", 2, 7)


def test_what_is_no_text_is_not_python(tmp_path: Path) -> None:
    path = tmp_path / "jobs.py"
    path.write_text("def f():\0 pass")
    (fault,) = validate(str(path), "f")
    assert (fault.name, fault.line, fault.char) == ("TorchXValidator", 0, 0)
    # Too deep for Python's parser, for its tree, and for its memory. Python 3.10 reads the second.
    for text in ("(" * 1000 + ")" * 1000, "1" + "+1" * 100_000, "-" * 100_000 + "1"):
        path.write_text(text)
        (fault,) = validate(str(path), "f")
        assert fault.name == "TorchXValidator"
        assert re.search("nested|Function f not found", fault.description)
        # Python says where there are too many brackets.
        assert text.startswith("(") or (fault.line, fault.char) == (0, 0)


def test_what_is_not_there(tmp_path: Path) -> None:
    (message,) = lint(tmp_path, "", "nope")
    assert (message.name, message.description) == ("TorchXValidator", "Function nope not found")
    assert (message.line, message.char) == (0, 0)
    (message,) = lint(tmp_path, "def f() -> AppDef: ...\ndef g() -> AppDef: ...\n", "nope")
    assert message.fix == "name one that is there: f, g"
    with pytest.raises(ComponentNotFoundException, match=r"gone\.py: No such file or directory$"):
        validate(str(tmp_path / "gone.py"), "f")


def test_linting_runs_nothing(tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    (message,) = lint(tmp_path, f"open({str(ran)!r}, 'w')\nraise SystemExit(3)\ndef f() -> AppDef: ...\n")
    assert (message.line, ran.exists()) == (3, False)


@pytest.mark.parametrize(
    ("parameter", "written"),
    [
        ("msg", "msg: str"),
        ("lr=0.1", "lr: float = 0.1"),
        ("shift=-1", "shift: int = -1"),
        ("debug=False", "debug: bool = False"),
        ("name=None", "name: str | None = None"),
        ("hosts=[]", "hosts: list[str] = []"),
        ("env={}", "env: dict[str, str] = {}"),
        ("image=IMAGE", "image: str = IMAGE"),
        ("*args", "*args: str"),
        ("*, k=3", "k: int = 3"),
        ("a: Set[int]", "a: list[int]"),
        ("a: FrozenSet[int]", "a: list[int]"),
        ("a: Sequence[int]", "a: list[int]"),
        ("a: Iterable[int]", "a: list[int]"),
        ("a: Collection[int]", "a: list[int]"),
        ("a: List[List[int]]", "a: list[str]"),
        ("a: Tuple[List[int], str]", "a: list[str]"),
        ("a: Dict[str, List[int]]", "a: dict[str, str]"),
        ("a: Dict[List[int], int]", "a: dict[str, int]"),
        *(
            (f"a: {kind}[str, int] = {{}}", "a: dict[str, int] = {}")
            for kind in ("Mapping", "MutableMapping", "DefaultDict", "OrderedDict")
        ),
        ("a: Dict[str]", "a: dict[str, str]"),
        ("a: 'int' = 1", "a: int = 1"),
        ("a: 'set[str]'", "a: str"),
        ("a: x.Size", "a: Size"),
        ("a: Tuple[int]", "a: list[int]"),
        ("a: Union[int, str]", "a: str"),
        ("a: Literal['x', 1]", "a: Literal['x', '1']"),
        ("**kwargs", "kwargs: dict[str, str]"),
    ],
)
def test_the_fix_is_what_to_write(tmp_path: Path, parameter: str, written: str) -> None:
    (message,) = lint(tmp_path, f'def f({parameter}) -> AppDef:\n    """Do."""\n')
    assert message.fix.startswith(f"write `{written}`")
    assert lint(tmp_path, f'def f({written}) -> AppDef:\n    """Do."""\n') == []


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ('async def f() -> AppDef:\n    """Do."""\n', "write `def f(...)` without `async`"),
        ('def f():\n    """Do."""\n', "write `def f(...) -> AppDef:`"),
        ('def f() -> int:\n    """Do."""\n', "write `def f(...) -> AppDef:`"),
        ("def f() -> AppDef: ...\n", 'write """What f does."""'),
        ("class f: ...\n", "write `def build(self) -> AppDef:` in it"),
        ("\ndef f(:\n", "correct line 2"),
        (b"x = '\\0'\n".decode("unicode_escape"), "Python"),
        ("", "write `def f() -> AppDef:`"),
    ],
)
def test_every_rule_says_what_to_do(tmp_path: Path, text: str, written: str) -> None:
    (message,) = lint(tmp_path, text)
    assert written in message.fix


def test_a_message_has_the_line_of_its_argument(tmp_path: Path) -> None:
    source = 'def f(\n    a: str,\n    b,\n    c: Set[str],\n    **d: str,\n) -> AppDef:\n    """Do."""\n'
    assert [message.line for message in lint(tmp_path, source)] == [3, 4, 5]


@pytest.mark.parametrize("returns", ["None", "list[AppDef]", "Optional[AppDef]", "f()"])
def test_an_annotation_that_is_no_name_is_told_as_missing(tmp_path: Path, returns: str) -> None:
    (message,) = lint(tmp_path, f'def f() -> {returns}:\n    """Do."""\n')
    assert "missing return annotation or has unknown annotations" in message.description


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("list[str, int]", "Non-primitive element type '(str, int)'"),
        ("Annotated[str]", "Unsupported container type 'Annotated'"),
    ],
)
def test_types_that_python_itself_refuses(tmp_path: Path, kind: str, words: str) -> None:
    (message,) = lint(tmp_path, f'def f(a: {kind}) -> AppDef:\n    """Do."""\n')
    assert words in message.description


@pytest.mark.parametrize("block", ["with x:", "for x in y:", "while x:", "if x:"])
def test_a_function_inside_a_block_is_found(tmp_path: Path, block: str) -> None:
    assert lint(tmp_path, f'{block}\n    def f(a: str) -> AppDef:\n        """Do."""\n') == []


@pytest.mark.parametrize(
    ("parameter", "written"),
    [
        ("a: Sequence[bool]", "a: list[bool]"),
        ("a: Sequence[float]", "a: list[float]"),
        ("a: Sequence[x]", "a: list[str]"),
        ("a: 'Literal[1.5]'", "a: str"),
        ("a: Literal[x]", "a: str"),
    ],
)
def test_the_nearest_type_is_advised(tmp_path: Path, parameter: str, written: str) -> None:
    found = lint(tmp_path, f'def f({parameter}) -> AppDef:\n    """Do."""\n')
    assert [message.fix.startswith(f"write `{written}`") for message in found] == [True]


@pytest.mark.parametrize(
    ("parameter", "advice"),
    [
        ("a=1", "write `a: int = 1`"),
        ("a", "write `a: str`, or another type: "),
        ("*a", "write `*a: str`, or another type: "),
        ("a: set[str]", "write `a: list[str]`, or another type: "),
        ("*a: set[str]", "write `*a: list[str]`, or another type: "),
    ],
)
def test_another_type_is_offered_where_the_default_does_not_tell(tmp_path: Path, parameter: str, advice: str) -> None:
    (message,) = lint(tmp_path, f'def f({parameter}) -> AppDef:\n    """Do."""\n')
    assert message.fix.startswith(advice)
    assert message.fix == advice or advice.endswith(": ")
