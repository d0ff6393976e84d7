"""Component files for the linter: some well-formed, most with a fault, each with the function `f` or without."""

from __future__ import annotations

DOC = '    """Do."""\n'
# Types that an argument may be declared with.
TYPES = """
str; int; float; bool; Name; list; dict; List; Dict; object; None; specs.Name; a.b.C; 'str'; "int"; 3; ...; [str]
lambda: 0
list[str]; List[int]; list[float]; list[Name]; list[list[str]]; List[Dict[str, int]]; list['str']; list[specs.Name]
list[str | None]; list[str, int]; list[Optional[str]]; list[Any]; list[3]
dict[str, str]; Dict[str, int]; dict[Name, Name]; dict[str]; dict[str, str, str]; dict[str, list[str]]
Dict[List[int], str]
dict[str, str | None]; dict['str', str]; Dict[str, typing.Any]
tuple[str, int]; Tuple[int, int, int]; tuple[str]; tuple[str, ...]; tuple[()]; tuple[list[str], int]; Tuple[str, 'x']
Optional[str]; Optional[int]; Optional[Name]; Optional[list[str]]; Optional[Dict[str, str]]; Optional[list[list[str]]]
Optional[dict[str]]; Optional[Optional[str]]; Optional[set[str]]; Optional['str']; Optional[tuple[str, int]]
str | None; None | str; list[str] | None; None | Dict[str, str]; int | str; int | str | None; str | set[str]
None | None
list[list[str]] | None; 'str' | None; set[str] | None
Union[str, None]; Union[int, str]; Set[str]; set[int]; frozenset[str]; Sequence[str]; Mapping[str, str]
Callable[[int], str]
Annotated[str, '-n']; Annotated[list[str], '-n']; Annotated[Optional[str], '-n']; Annotated[set[str], '-n']
Annotated[str]
Annotated[str | None, 1]; Annotated[list[list[str]], 'x']
Literal['a']; Literal['a', 'b']; Literal[1]; Final[str]; Type[str]
typing.List[str]; typing.Optional[str]; typing.Dict[str, str]; t.Tuple[int, int]; typing.Annotated[str, 'x']
a.b.List[str]
collections.abc.Sequence[str]; typing.Set[str]; typing.Optional[set[str]]; f()[str]
"""
TYPES_LISTED = [kind.strip() for line in TYPES.strip().splitlines() for kind in line.split(";")]

ARGUMENTS = [
    "",
    "a",
    "a, b",
    "a: str, b",
    "a: str = 'x'",
    "a=1",
    "*args",
    "*args: str",
    "*args: set[str]",
    "*args: str, k",
    "*, k: int",
    "*, k",
    "a: str, *, k: set[str] = None",
    "a, *b, c",
    "**kwargs",
    "**kwargs: str",
    "a: str, **kwargs: str",
    "a: str, /",
    "a, /",
    "a, /, b: str",
    "a: set[str], b: set[int]",
    "self",
    "a: str, *args: str, k: int = 1",
    "a: str = None, b: int = 'x'",
    "a: list[str] = []",
    "a: str,\n      b,\n      c: set[str]",
]
RETURNS = [
    "",
    " -> AppDef",
    " -> specs.AppDef",
    " -> torchx.specs.AppDef",
    " -> 'AppDef'",
    " -> 'specs.AppDef'",
    " -> str",
    " -> None",
    " -> specs.Role",
    " -> list[AppDef]",
    " -> 'str'",
    " -> ''",
    " -> 3",
    " -> Optional[AppDef]",
    " -> AppDef | None",
    " -> f()",
    " -> a.b.c.AppDef",
    " -> ...",
    " -> True",
]
F = "def f(a: str) -> AppDef:\n" + DOC
FILES = [
    "",
    "x = 1\n",
    "def g() -> AppDef:\n" + DOC,
    "def f(:\n",
    "def f()\n    pass\n",
    "  x = 1\n",
    "f = 1\n",
    "f = lambda: 0\n",
    "if True\n",
    "print 'x'\n",
    "x = (\n",
    "def f(a: str) -> AppDef:\n",
    "def f(a: str = , b) -> AppDef:\n    pass\n",
    "'''\n",
    "\x00",
    "def f(a=1, b): pass\n",
    "def f(a: str) -> AppDef:\n    pass\n",
    F,
    F + F,
    F + "def f(a) -> AppDef:\n" + DOC,
    "def f(a) -> AppDef:\n" + DOC + F,
    "async def f(a: str) -> AppDef:\n" + DOC,
    "@decorated\ndef f(a: str) -> AppDef:\n" + DOC,
    "@decorated\n\ndef f(a) -> AppDef:\n" + DOC,
    "if x:\n    def f(a: str) -> AppDef:\n        '''Do.'''\n",
    "if x:\n    def f(a) -> AppDef:\n        '''Do.'''\n",
    "try:\n    def f(a) -> AppDef:\n        '''Do.'''\nexcept E:\n    pass\n",
    "with x:\n    def f(a: str) -> AppDef:\n        '''Do.'''\n",
    "for x in y:\n    def f(a) -> AppDef:\n        '''Do.'''\n",
    "def g():\n    def f(a: str) -> AppDef:\n        '''Do.'''\n",
    "class C:\n    def f(self, a: str) -> AppDef:\n        '''Do.'''\n",
    "class f:\n    def build(self) -> AppDef:\n        '''Do.'''\n",
    "class f:\n    def build(self) -> str:\n        '''Do.'''\n",
    "class f:\n    def build(self):\n        '''Do.'''\n",
    "class f:\n    pass\n",
    "class f(Base):\n    pass\n",
    "class f:\n    def __init__(self, a: str):\n        pass\n    def build(self) -> AppDef:\n        '''Do.'''\n",
    "class f:\n    def __init__(self, a):\n        pass\n    def build(self) -> AppDef:\n        '''Do.'''\n",
    "class f:\n    def __init__(self, a: set[str]):\n        pass\n    def build(self) -> AppDef:\n        '''Do.'''\n",
    "@dataclass\nclass f:\n    a: str\n    def build(self) -> 'AppDef':\n        '''Do.'''\n",
    "# é\n" + F,
    "\ufeff" + F,
    F.replace("\n", "\r\n"),
    "from __future__ import annotations\n" + F,
    "\n\n\n" + "def f(a) -> AppDef:\n" + DOC,
]


def corpus() -> list[str]:
    """Return the sources of all files."""
    files = [f"def f(a: {kind}) -> AppDef:\n{DOC}" for kind in TYPES_LISTED]
    files += [f"def f({star}a: {kind}) -> AppDef:\n{DOC}" for star in ("*, ", "*") for kind in TYPES_LISTED]
    files += [f"def f({arguments}){returns}:\n{DOC}" for arguments in ARGUMENTS for returns in RETURNS]
    return files + FILES
