"""The arguments of components held against TorchX's: every type that a text can be turned into."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from interop.component_calls import built_by_them, built_by_us
from interop.oracle import Refused, cases, hold, names_of, outcome

AREA = "component arguments"
TYPES = {
    "text": "str", "whole": "int", "real": "float", "truth": "bool",
    "some_text": "Optional[str]", "some_whole": "Optional[int]", "some_real": "float | None",
    "some_truth": "bool | None",
    "texts": "list[str]", "wholes": "List[int]", "reals": "list[float]", "truths": "list[bool]",
    "some_texts": "Optional[List[str]]", "pairs": "dict[str, str]", "whole_pairs": "Dict[str, int]",
    "truth_pairs": "dict[str, bool]", "some_pairs": "dict[str, str] | None", "pair": "tuple[int, str]",
    "flagged": 'Annotated[str, "-fl"]',
}  # fmt: skip
HEADER = "from typing import Annotated, Dict, List, Optional\nfrom torchx.specs import AppDef\n"
ONE = 'def {name}(p: {type}) -> AppDef:\n    """Do.\n\n    Args:\n        p: it\n    """\n    return AppDef(repr(p))\n'
MIXED = '''
def mixed(
    x: int, text: str = "d", *rest: str, truth: bool = False, real: float = 0.5, h: Optional[str] = None
) -> AppDef:
    """Do."""
    return AppDef(repr((x, text, rest, truth, real, h)))


def numbers(*rest: int, texts: Optional[List[str]] = None) -> AppDef:
    """Do."""
    return AppDef(repr((rest, texts)))
'''
WORDS = ["", " ", "a", "1", " 2 ", "1_0", "-3", "2.5", "nan", "true", "True", "yes", "no", "false", "on", "ture", "é b"]
LISTS = ["a,b", "1,2", "1, 2 ,", ",", "true,no", "1,x", "2.5,1"]
DICTS = [
    "a=1",
    "a=1,b=2",
    "a=x;b=2",
    "a='1,2'",
    "a=1,2,b=3",
    "a=",
    "a=1,b=",
    "=1",
    "a==1",
    "a=true,b=false",
    "a= 1 , b=2",
]
VALUES = st.one_of(
    st.sampled_from(WORDS), st.sampled_from(LISTS), st.sampled_from(DICTS), st.text("ab1 ,=;é", max_size=5)
)
WRITTEN = st.sampled_from([*["--p={}", "--p {}", "-p {}"] * 4, "--p {} --p {}"])
MORE = st.sampled_from(
    [
        "--x=2",
        "--text a",
        "--text=",
        "--truth true",
        "--truth yes",
        "--real 1e3",
        "--real x",
        "-h gpu",
        "--h=b",
        "--tex b",
        "--none 1",
        "--",
        "a",
        "-v",
        "--flag",
        "-- --x 9",
    ]
)


@pytest.fixture(scope="module")
def components(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("components") / "oracle_components.py"
    path.write_text(HEADER + "".join(ONE.format(name=name, type=kind) for name, kind in TYPES.items()) + MIXED)
    return path


def compare(name: str, argv: list[str], explain: Any) -> None:
    their_app, our_app = outcome(lambda: built_by_them(name, argv).name), outcome(lambda: built_by_us(name, argv).name)
    hold(AREA, their_app, our_app, explain, (name.rpartition(":")[2], argv))


def explained(kind: str, argv: list[str], their: Any, our: Any) -> str | None:
    """Return the entry that an outcome falls under."""
    if isinstance(our, Refused) and our.names[0] == "ArgumentError":
        if isinstance(their, Refused):
            return "a command line that is refused" if their.names[0] == "SystemExit" else None
        said = str(our.error)
        for words, name in [("twice", "given twice"), ("not true or false", "truth values")]:
            if words in said:
                return name
        if is_optional_number(kind):
            return "optional numbers"
        if kind.startswith("tuple") and their == "None":
            return "empty lists and dicts"
        return "a missing key or value" if "dict" in kind.lower() else None
    if isinstance(their, Refused) and their.names[0] == "SystemExit":
        return "-- before numbers" if "--" in argv else None
    text = argv[-1].rpartition("--p=")[2] if len(argv) == 1 else argv[-1]
    if kind.startswith("tuple"):
        return "tuples" if isinstance(their, Refused) else None
    if kind == "list[bool]":
        return "lists of truth values"
    if "bool" in kind:
        return (
            "truth values in a dict" if "dict" in kind and text else "truth values" if text else "empty lists and dicts"
        )
    if is_optional_number(kind):
        return "optional numbers"
    return "empty lists and dicts" if not text.strip() else None


def is_optional_number(kind: str) -> bool:
    return kind in ("Optional[int]", "float | None")


@given(st.sampled_from(sorted(TYPES)), VALUES, WRITTEN)
@cases(1300)
def test_each_type(torchx: str, components: Path, name: str, value: str, written: str) -> None:
    argv = [part.format(value) for part in written.split(" ")]
    compare(f"{components}:{name}", argv, lambda their, our: explained(TYPES[name], argv, their, our))


@given(st.builds(list.__add__, st.sampled_from([[], ["-x 1"], ["-x 2"]]), st.lists(MORE, max_size=3)))
@cases(1000)
def test_several_arguments_and_the_rest(torchx: str, components: Path, words: list[str]) -> None:
    argv = [part for word in words for part in word.split(" ")]

    def explain(their: Any, our: Any) -> str | None:
        return "truth values" if "yes" in argv and not isinstance(our, Refused) else explained("", argv, their, our)

    compare(f"{components}:mixed", argv, explain)


@given(st.lists(st.sampled_from(["1", "-2", "x", "--", "--texts", "a,b", "--texts=c"]), max_size=5))
@cases(300)
def test_the_rest_as_numbers(torchx: str, components: Path, argv: list[str]) -> None:
    compare(f"{components}:numbers", argv, lambda their, our: explained("", argv, their, our))


# Of each entry: the component, the arguments, what TorchX hands to it and what we do.
EXAMPLES: dict[str, tuple[str, list[str], str, str]] = {
    "a command line that is refused": ("whole", ["--p=x"], "SystemExit", "ArgumentError"),
    "truth values": ("truth", ["--p=yes"], "'False'", "'True'"),
    "optional numbers": ("some_whole", ["--p=3"], '''"'3'"''', "'3'"),
    "empty lists and dicts": ("texts", ["--p="], "'None'", "'[]'"),
    "lists of truth values": ("truths", ["--p=true,no"], "ValueError", "'[True, False]'"),
    "truth values in a dict": ("truth_pairs", ["--p=a=false"], '''"{'a': True}"''', '''"{'a': False}"'''),
    "tuples": ("pair", ["--p=1,a"], "ValueError", '''"(1, 'a')"'''),
    "a missing key or value": ("pairs", ["--p=a=1,b="], '''"{'a': '1,b'}"''', "ArgumentError"),
    "-- before numbers": ("numbers", ["--", "1"], "SystemExit", "'((1,), None)'"),
    "given twice": ("text", ["--p=a", "--p=b"], '''"'b'"''', "ArgumentError"),
}


@pytest.mark.parametrize("name", names_of(AREA))
def test_each_difference_is_there(torchx: str, components: Path, name: str) -> None:
    function, argv, their_text, our_text = EXAMPLES[name]
    assert repr(outcome(lambda: built_by_them(f"{components}:{function}", argv).name)) == their_text
    assert repr(outcome(lambda: built_by_us(f"{components}:{function}", argv).name)) == our_text


def test_no_example_is_left_over() -> None:
    assert set(EXAMPLES) == set(names_of(AREA))
