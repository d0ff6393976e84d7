"""Classes of run options made at random: their source, and the same source run with either package's base class."""

from __future__ import annotations

import linecache
import sys
import types
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from hypothesis import strategies as st

TEXTS = {
    "usual": '"""Who pays."""',
    "single quotes": "'''Who pays.'''",
    "one quote": '"Who pays."',
    "several lines": '"""Who pays,\n        and when.\n    """',
    "quotes inside": '"""Who "pays"?"""',
    "a comment before": '# why\n    """Who pays."""',
    "none": "",
}
USUAL = ("usual", "quotes inside", "none")
TYPES = {
    "str": ['"a"', '""', "None"], "int": ["3", "True"], "float": ["0.5"], "bool": ["False"],
    "list[str]": ["field(default_factory=list)", 'field(default_factory=lambda: ["a"])'],
    "dict[str, str]": ["field(default_factory=dict)"], "str | None": ["None", '"b"'], "Optional[int]": ["None", "7"],
    "list[str] | None": ["None"], "Union[str, None]": ["None"], "int | None": ['"wrong"', "None"],
}  # fmt: skip
NAMES = ["queue", "log_dir", "a_b_c", "x1", "mail_user", "_hidden", "clusterName", "ZONE"]
VALUES = st.sampled_from(["v", "w", 1, 0, None, True, ["l"], {"k": "v"}])


@dataclass(frozen=True)
class Option:
    """One field: the texts of its type and default, the kind of text under it, and another name where it has one."""

    name: str
    type: str
    default: str
    text: str
    cfg_key: str = ""

    @property
    def source(self) -> str:
        """The lines of the field."""
        default = self.default
        if self.cfg_key:
            default = f'field({f"default={default}, " if default else ""}metadata={{"cfg_key": "{self.cfg_key}"}})'
        text = TEXTS[self.text]
        return f"    {self.name}: {self.type}{f' = {default}' if default else ''}\n" + (f"    {text}\n" if text else "")


@dataclass(frozen=True)
class OptionsClass:
    """A class: its own fields, those of the class below it, and those of the classes that are groups of options."""

    options: tuple[Option, ...]
    inherited: tuple[Option, ...] = ()
    groups: dict[str, tuple[tuple[Option, ...], str]] = field(default_factory=dict)

    @property
    def every(self) -> list[Option]:
        """All options, those of groups too."""
        return [*self.options, *self.inherited, *(option for inner, _ in self.groups.values() for option in inner)]

    @property
    def source(self) -> str:
        """The module's source; required fields come first, as a dataclass wants them."""
        groups = "".join(
            _class(f"Group{name.title()}", "StructuredOpts", inner) for name, (inner, _) in self.groups.items()
        )
        below = _class("Below", "StructuredOpts", self.inherited)
        tail = "".join(
            f"    {name}: {'Optional[' * bool(default)}Group{name.title()}{']' * bool(default)}{default}\n"
            for name, (_, default) in sorted(self.groups.items(), key=lambda one: one[1][1])
        )
        required = [option for option in self.options if not option.default]
        rest = [option for option in self.options if option.default]
        own = _class("Made", "Below", (*required,), kind="@dataclass(kw_only=True)") + tail
        return groups + below + own + "".join(option.source for option in rest)


def _class(name: str, base: str, options: tuple[Option, ...], kind: str = "@dataclass") -> str:
    ordered = sorted(options, key=lambda option: bool(option.default))
    return f"{kind}\nclass {name}({base}):\n    _ = None\n{''.join(option.source for option in ordered)}\n"


@st.composite
def _option(draw: st.DrawFn, name: str) -> Option:
    kind = draw(st.sampled_from(list(TYPES)))
    default = draw(st.sampled_from(["", *TYPES[kind]]))
    named = name == "mail_user" and not default.startswith("field(") and draw(st.booleans())
    if name.startswith("_"):
        default = default or "None"
    return Option(name, kind, default, draw(st.sampled_from([*TEXTS, *USUAL])), "mail-user" if named else "")


def _options(names: list[str], most: int) -> st.SearchStrategy[tuple[Option, ...]]:
    chosen = st.lists(st.sampled_from(names), max_size=most, unique=True)
    return chosen.flatmap(lambda found: st.tuples(*(_option(name) for name in found)))


@st.composite
def _classes(draw: st.DrawFn) -> OptionsClass:
    inherited = draw(_options(["region", "spot"], 1))
    groups = {
        name: (draw(_options(["context", "user_name"], 2)), draw(st.sampled_from(["", " = None"])))
        for name in draw(st.lists(st.sampled_from(["k8s", "disk"]), max_size=1))
    }
    return OptionsClass(draw(_options(NAMES, 4)), inherited, groups)


CLASSES = _classes()
_numbers: Iterator[int] = count()


def made(base: type, declared: OptionsClass) -> Any:
    """Return the class, of either package's `StructuredOpts`; its source can be looked up as a file's can."""
    name = f"structured_opts_{next(_numbers)}"
    head = "from dataclasses import dataclass, field\nfrom typing import Optional, Union\n"
    source = head + declared.source
    module = types.ModuleType(name)
    module.__file__ = f"<{name}>.py"
    module.__dict__["StructuredOpts"] = base
    linecache.cache[module.__file__] = (len(source), None, source.splitlines(True), module.__file__)
    sys.modules[name] = module
    exec(compile(source, module.__file__, "exec"), module.__dict__)
    return module.__dict__["Made"]


def forget() -> None:
    """Forget the modules that were made."""
    for name in [name for name in sys.modules if name.startswith("structured_opts_")]:
        linecache.cache.pop(f"<{name}>.py", None)
        del sys.modules[name]
