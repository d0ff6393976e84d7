"""Five files of components whose parameters are of every kind, and what each makes of the texts that are typed.

Each component has one role whose arguments are the `repr` of what the component was given, in the order of `TYPED`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

_HEADER = """
from __future__ import annotations
import enum, os
from dataclasses import KW_ONLY, dataclass, field
from typing import Annotated, ClassVar, Dict, List, Literal, Optional, Tuple, Union
from torchx_tui.specs import AppDef, Resource, Role

def _app(*values) -> AppDef:
    role = Role("r", "img", entrypoint="echo", args=[repr(v) for v in values], resource=Resource(1, 0, 64))
    return AppDef("kinds", [role])
"""

_PLAIN = '''
def needed(text: str, whole: int, number: float, flag: bool) -> AppDef:
    """Needs all.

    Args:
        text: any text
        whole: a whole number
    """
    return _app(text, whole, number, flag)

def given(text: str = "a b", whole: int = 3, number: float = 0.5, flag: bool = True) -> AppDef:
    """Has defaults."""
    return _app(text, whole, number, flag)

def maybe(text: Optional[str] = None, whole: Optional[int] = None, number: float | None = None,
          flag: Union[bool, None] = None, set_: Optional[int] = 7) -> AppDef:
    """Can do without."""
    return _app(text, whole, number, flag, set_)
'''

_CONTAINERS = '''
def several(words: List[str], numbers: list[int], env: Dict[str, str], counts: dict[str, int],
            pair: Tuple[int, str], many: tuple[float, ...]) -> AppDef:
    """Needs containers."""
    return _app(words, numbers, env, counts, pair, many)

def maybe(words: Optional[list[str]] = None, numbers: list[float] = [0.5, 1.0], env: Optional[dict[str, str]] = None,
          flags: dict[str, bool] = {"a": True}, bare: list = ["x"], pair: tuple[int, int] = (1, 2)) -> AppDef:
    """Has containers."""
    return _app(words, numbers, env, flags, bare, pair)
'''

_CHOICES = '''
class Color(enum.Enum):
    RED = "r"
    BLUE = "b"

class Size(str, enum.Enum):
    S = "small"
    M = "medium"
    L = "large"
    XL = "huge"
    XXL = "huger"

def few(mode: Literal["fast", "slow"], level: Literal[1, 2, 3] = 2, color: Color = Color.RED,
        size: Optional[Size] = None, way: Optional[Literal["up", "down"]] = None,
        flag: Optional[bool] = None) -> AppDef:
    """Can be few things."""
    return _app(mode, level, color.name, size and size.name, way, flag)
'''

_SHAPES = '''
HERE = "constant"

def star(first: str, *rest: str, last: int = 1) -> AppDef:
    """Takes the rest."""
    return _app(first, rest, last)

def star_numbers(*rest: int, named: str) -> AppDef:
    """Takes numbers."""
    return _app(rest, named)

def placed(first: int, second: str = "s", /, third: float = 1.5) -> AppDef:
    """Takes some by their place."""
    return _app(first, second, third)

def computed(home: str = os.environ.get("NO_SUCH", "fallback"), most: int = max(2, 3), named: str = HERE,
             listed: list[int] = [n for n in (1, 2)], share: float = 1 / 4, flag: bool = bool(1)) -> AppDef:
    """Works its defaults out."""
    return _app(home, most, named, listed, share, flag)

def odd_names(größe: int, class_: str = "c", _hidden: str = "h", x: Annotated[int, "-z"] = 1,
              a_name_that_is_longer_than_any_label_of_the_form: str = "long") -> AppDef:
    """Has odd names."""
    return _app(größe, class_, _hidden, x, a_name_that_is_longer_than_any_label_of_the_form)
'''

_CLASSES = '''
class Made:
    """Is made, then built.

    Args:
        data: what is read
    """

    def __init__(self, data: str, *rest: str, epochs: int = 2, env: Optional[dict[str, str]] = None) -> None:
        self.values = data, rest, epochs, env

    def build(self) -> AppDef:
        return _app(*self.values)

@dataclass
class Fields:
    """Is a dataclass."""

    data: str
    kind: ClassVar[str] = "not asked for"
    lr: float = 0.1
    tags: list[str] = field(default_factory=list)
    _: KW_ONLY
    steps: int = field(default=5)
    flag: bool = False

    def build(self) -> AppDef:
        return _app(self.data, self.lr, self.tags, self.steps, self.flag)
'''

_FILES = {
    "plain.py": _PLAIN,
    "containers.py": _CONTAINERS,
    "choices.py": _CHOICES,
    "shapes.py": _SHAPES,
    "classes.py": _CLASSES,
}


@dataclass(frozen=True)
class Kind:
    """A component, and what is typed into its form.

    Attributes:
        name: the component's.
        typed: texts by parameter.
        values: what the component is given for all its parameters.
        untouched: what it is given where only `needed` is typed.
        needed: texts of those that must be given.
    """

    name: str
    typed: dict[str, str]
    values: tuple[object, ...]
    untouched: tuple[object, ...]
    needed: dict[str, str] = field(default_factory=dict)


_ALL_NEEDED = {"text": "two words", "whole": "-4", "number": "1e-3", "flag": "false"}
_CONTAINERS_NEEDED = {
    "words": "a, b c",
    "numbers": "1,-2",
    "env": "A=1,B='x,y=z'",
    "counts": "a=1",
    "pair": "7,seven",
    "many": "0.5,1,2",
}
_CONTAINERS_MADE = (
    ["a", "b c"], [1, -2], {"A": "1", "B": "x,y=z"}, {"a": 1}, (7, "seven"), (0.5, 1.0, 2.0)
)  # fmt: skip

KINDS = [
    Kind("plain.py:needed", _ALL_NEEDED, ("two words", -4, 0.001, False), ("two words", -4, 0.001, False), _ALL_NEEDED),
    Kind(
        "plain.py:given",
        {"text": "", "whole": "0", "number": "inf", "flag": "false"},
        ("", 0, float("inf"), False),
        ("a b", 3, 0.5, True),
    ),
    Kind(
        "plain.py:maybe",
        {"text": 'it\'s "so", [red]x[/red]', "whole": "5", "number": "2.5", "flag": "true", "set_": ""},
        ('it\'s "so", [red]x[/red]', 5, 2.5, True, None),
        (None, None, None, None, 7),
    ),
    Kind("containers.py:several", _CONTAINERS_NEEDED, _CONTAINERS_MADE, _CONTAINERS_MADE, _CONTAINERS_NEEDED),
    Kind(
        "containers.py:maybe",
        {"words": "x", "numbers": "", "env": "A=' spaced '", "flags": "b=no,c=1", "bare": "1,2", "pair": "3,4"},
        (["x"], [], {"A": " spaced "}, {"b": False, "c": True}, ["1", "2"], (3, 4)),
        (None, [0.5, 1.0], None, {"a": True}, ["x"], (1, 2)),
    ),
    Kind(
        "choices.py:few",
        {"mode": "slow", "level": "3", "color": "BLUE", "size": "XXL", "way": "down", "flag": "true"},
        ("slow", 3, "BLUE", "XXL", "down", True),
        ("fast", 2, "RED", None, None, None),
        {"mode": "fast"},
    ),
    Kind(
        "shapes.py:star",
        {"first": "-1", "rest": "--lr 0.1 'two words' ''", "last": "2"},
        ("-1", ("--lr", "0.1", "two words", ""), 2),
        ("f", (), 1),
        {"first": "f"},
    ),
    Kind("shapes.py:star_numbers", {"rest": "3 -4", "named": "n"}, ((3, -4), "n"), ((), "n"), {"named": "n"}),
    Kind(
        "shapes.py:placed",
        {"first": "9", "second": "t", "third": "2"},
        (9, "t", 2.0),
        (9, "s", 1.5),
        {"first": "9"},
    ),
    Kind(
        "shapes.py:computed",
        {"home": "/h", "most": "9", "named": "other", "listed": "4,5", "share": "0.75", "flag": "false"},
        ("/h", 9, "other", [4, 5], 0.75, False),
        ("fallback", 3, "constant", [1, 2], 0.25, True),
    ),
    Kind(
        "shapes.py:odd_names",
        {
            "größe": "8",
            "class_": "k",
            "_hidden": "i",
            "x": "2",
            "a_name_that_is_longer_than_any_label_of_the_form": "short",
        },
        (8, "k", "i", 2, "short"),
        (8, "c", "h", 1, "long"),
        {"größe": "8"},
    ),
    Kind(
        "classes.py:Made",
        {"data": "corpus", "rest": "a b", "epochs": "4", "env": "HF_HOME=/x"},
        ("corpus", ("a", "b"), 4, {"HF_HOME": "/x"}),
        ("corpus", (), 2, None),
        {"data": "corpus"},
    ),
    Kind(
        "classes.py:Fields",
        {"data": "corpus", "lr": "0.5", "tags": "a,b", "steps": "6", "flag": "true"},
        ("corpus", 0.5, ["a", "b"], 6, True),
        ("corpus", 0.1, [], 5, False),
        {"data": "corpus"},
    ),
]

# What must be typed of the builtins, and what is typed in the rest, so that each field of every kind is typed once.
BUILTINS: dict[str, tuple[dict[str, str], dict[str, str]]] = {
    "utils.echo": ({}, {"msg": "hello, [b]you[/b]", "image": "busybox", "num_replicas": "2"}),
    "utils.sh": ({}, {"args": "ls -l 'a b'", "env": "A=1,B='x,y'", "max_retries": "1", "h": "gpu.small", "cpu": "2"}),
    "utils.python": (
        {"m": "http.server"},
        {"args": "--bind ::1 8000", "name": "web", "memMB": "100"},
    ),
    "utils.binary": ({"entrypoint": "/bin/ls"}, {"args": "-l /", "name": "ls"}),
    "utils.touch": ({"file": "/tmp/x"}, {"image": "busybox"}),
    "utils.copy": ({"src": "/a", "dst": "s3://b/c"}, {"mounts": "type=bind,src=/a,dst=/a,readonly"}),
    "utils.booth": ({"x1": "1.5", "x2": "-3"}, {"trial_idx": "4", "tracker_base": "/t"}),
    "dist.torchrun": (
        {"script": "train.py"},
        {
            "script_args": "--lr 0.1",
            "j": "2:4x8",
            "env": "A=1",
            "metadata": "k=v",
            "debug": "true",
            "mounts": "type=bind,src=/a,dst=/b,type=device,src=/dev/fuse",
            "name": "exp/run",
            "rdzv_conf": "timeout=600",
            "tee": "0",
        },
    ),
    "dist.ddp": ({"m": "train.main"}, {"j": "2x2", "h": "gpu.small", "max_retries": "2"}),
    "dist.spmd": ({"script": "train.py"}, {"args": "--x", "h": "gpu.xlarge", "j": "2", "debug": "true"}),
    "demo.train": ({}, {"steps": "5", "step_seconds": "0.5", "num_replicas": "3", "fail_at_step": "4"}),
}


def write_files(folder: Path) -> None:
    """Write the files into a folder, whose names the components then have."""
    for name, text in _FILES.items():
        (folder / name).write_text(_HEADER + text, encoding="utf-8")
