"""What the linter says of component files compared with TorchX's: rules, messages, lines and columns."""

import re
from itertools import product
from pathlib import Path

import pytest
import yaml
from interop.oracle import Refused, check_example, each_difference, hold, outcome, theirs

import torchx_tui.specs as our_specs
from torchx_tui.components.lint import validate

pytestmark = pytest.mark.usefixtures("torchx")

AREA = "linter"
FILE = yaml.safe_load(Path(__file__).with_name("linter_corpus.yaml").read_text(encoding="utf-8"))
TYPES = [kind.strip() for line in FILE["types"].splitlines() for kind in line.split(";")]
SIGNATURES = [
    *(f"({star}a: {kind}) -> AppDef" for star in ("", "*, ", "*") for kind in TYPES),
    *(f"({arguments}){returns}" for arguments, returns in product(FILE["arguments"], FILE["returns"])),
]
CORPUS = [*(f'def f{signature}:\n    """Do."""\n' for signature in SIGNATURES), *FILE["files"]]


def messages(specs, path, source):
    """Return what the linter of a package says of a source, without our warnings, of which TorchX has none."""
    path.write_bytes(source.encode())
    lint = validate if specs is our_specs else theirs("torchx.specs.file_linter").validate
    return [
        (one.name, one.description, one.line, one.char, one.severity)
        for one in lint(str(path), "f")
        if one.severity != "warning"
    ]


# Of each entry: words of a message that one of the two has, and what the source then has.
RULES = {
    "async functions": ("is async", r"^async def f"),
    "**kwargs": (r"Unsupported argument '\*\*", r"\*\*kwargs"),
    "defined twice": ("Missing type annotation", r"(?s)def f\(.*def f\("),
    "arguments before /": ("Missing type annotation", r"def f\(a, /"),
    "classes": ("has no method build|Missing type annotation|Unsupported container", r"class f"),
    "Literal": ("'Literal'", r"Literal\["),
    "Union": ("'Union'", r"Union\["),
    "AppDef in quotes": ("incorrect return annotation", r"-> 'specs\.AppDef'"),
    "tuples of any length": ("Non-primitive element type", r"tuple\[str, \.\.\."),
    "tuples of one or none": ("Unsupported tuple type", r"(?i)tuple\["),
    "quotes around a type": ("Non-primitive element type", r"(?i)tuple\["),
    "nothing twice": ("'Optional'|'None", r"Optional\[Optional|None \| None"),
    "a byte order mark": (r"U\+FEFF", "^\ufeff"),
}


def explained(source, their, our):
    """Return the entry that a source falls under."""
    if isinstance(their, Refused):
        return "types that are no plain name" if their.names[0] == "AttributeError" else None
    differ = {one[1] for one in their} ^ {one[1] for one in our}
    for name, (words, shape) in RULES.items():
        if any(re.search(words, text) for text in differ) and re.search(shape, source):
            return name
    return None


@pytest.mark.parametrize("number", range(0, len(CORPUS), 50))
def test_the_corpus(tmp_path, number):
    for source in CORPUS[number : number + 50]:
        their = outcome(lambda: messages(theirs(), tmp_path / "f.py", source))  # noqa: B023
        # Python before 3.11.4 raises ValueError for NUL characters, and TorchX does not catch it.
        if not ("\0" in source and isinstance(their, Refused)):
            our = messages(our_specs, tmp_path / "f.py", source)
            hold(AREA, their, our, lambda their, our: explained(source, their, our), source)  # noqa: B023


@each_difference(AREA)
def test_each_difference_is_there(tmp_path, difference):
    def names(specs):
        def said(*functions):
            source = "\n".join(f'{one.removesuffix("...")}\n    """Do."""\n' for one in functions)
            return [one[1].partition(" for argument")[0] for one in messages(specs, tmp_path / "f.py", source)]

        return {"messages": said}

    check_example(difference, names)
