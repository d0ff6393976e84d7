"""Five files of components whose parameters are of every kind, and what each makes of the texts that are typed.

Each component has one role whose arguments are the `repr` of what the component was given, in the order of `TYPED`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from support.tables import toml_table

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


_TYPED = toml_table(Path(__file__).with_suffix(".toml"))
KINDS: dict[str, dict[str, Any]] = _TYPED["kinds"]
"""Of each component: what is `typed` into its form, what it is then `given`, and what is `needed` at least."""
BUILTINS: dict[str, dict[str, dict[str, str]]] = _TYPED["builtins"]
"""Of each builtin: what is `needed` in its form, and `more`."""


def write_files(folder: Path) -> None:
    """Write the files into a folder, whose names the components then have."""
    for name, text in _FILES.items():
        (folder / name).write_text(_HEADER + text, encoding="utf-8")
