"""The arguments of components compared with TorchX's: every type that a text can be converted to."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from interop.component_calls import built_from
from interop.oracle import WORDS, Refused, cases, check_example, compare, each_difference

pytestmark = pytest.mark.usefixtures("torchx")

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
ONE = 'def {}(p: {}) -> AppDef:\n    """Do.\n\n    Args:\n        p: it\n    """\n    return AppDef(repr(p))\n'
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
VALUES = st.one_of(
    *(st.sampled_from(WORDS[AREA][kind]) for kind in ("scalars", "lists", "dicts")), st.text("ab1 ,=;é", max_size=5)
)
WRITTEN = st.sampled_from([*["--p={}", "--p {}", "-p {}"] * 4, "--p {} --p {}"])
FIRST = st.sampled_from([[], ["-x 1"], ["-x 2"]])
MORE = st.sampled_from(WORDS[AREA]["more"])


@pytest.fixture(scope="module")
def components(tmp_path_factory):
    path = tmp_path_factory.mktemp("components") / "oracle_components.py"
    path.write_text(HEADER + "".join(ONE.format(*one) for one in TYPES.items()) + MIXED)
    return path


def explained(kind, argv, their, our):
    """Return the entry that an outcome falls under."""
    if isinstance(our, Refused) and our.names[0] == "ArgumentError":
        if isinstance(their, Refused):
            return "a command line that is refused" if their.names[0] == "SystemExit" else None
        said = str(our.error)
        for words, name in [
            ("` is given twice", "a key of a dict twice"),
            ("twice", "given twice"),
            ("not true or false", "truth values"),
        ]:
            if words in said:
                return name
        if kind in ("Optional[int]", "float | None"):
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
    if "bool" in kind and text:
        return "truth values in a dict" if "dict" in kind else "truth values"
    if kind in ("Optional[int]", "float | None"):
        return "optional numbers"
    if re.search("[\"']", text) and "list" in kind.lower():
        return "quotes in a list"
    return "empty lists and dicts" if not text.strip() else None


def check(components, name, argv, explain):
    compare(AREA, lambda specs: built_from(specs, f"{components}:{name}", argv).name, explain, (name, argv))


@given(st.sampled_from(sorted(TYPES)), VALUES, WRITTEN)
@cases(1300)
def test_each_type(components, name, value, written):
    argv = [part.format(value) for part in written.split(" ")]
    check(components, name, argv, lambda their, our: explained(TYPES[name], argv, their, our))


@given(st.builds(list.__add__, FIRST, st.lists(MORE, max_size=3)))
@cases(1000)
def test_several_arguments_and_the_rest(components, words):
    argv = [part for word in words for part in word.split(" ")]

    def explain(their, our):
        return "truth values" if "yes" in argv and not isinstance(our, Refused) else explained("", argv, their, our)

    check(components, "mixed", argv, explain)


@given(st.lists(st.sampled_from(["1", "-2", "x", "--", "--texts", "a,b", "--texts=c"]), max_size=5))
@cases(300)
def test_the_rest_as_numbers(components, argv):
    check(components, "numbers", argv, lambda their, our: explained("", argv, their, our))


@each_difference(AREA)
def test_each_difference_is_there(components, difference):
    def names(specs):
        return {"call": lambda name, *argv: built_from(specs, f"{components}:{name}", argv).name}

    check_example(difference, names)
