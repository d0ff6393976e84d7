"""Classes of run options made at random: their source, and the same source run with either package's base class."""

from __future__ import annotations

import linecache
import sys
import types
from dataclasses import dataclass, field
from itertools import count

from hypothesis import strategies as st
from interop.oracle import WORDS

NAMES, TYPES, TEXTS = (WORDS["structured options"][kind] for kind in ("names", "types", "texts"))
USUAL = ("usual", "quotes inside", "none")


@dataclass(frozen=True)
class Option:
    """One field: the texts of its type and default, the kind of text under it, and another name where it has one."""

    name: str
    type: str = "str"
    default: str = "None"
    text: str = "none"
    cfg_key: str = ""

    @property
    def source(self):
        default = self.default
        if self.cfg_key:
            default = f'field({f"default={default}, " if default else ""}metadata={{"cfg_key": "{self.cfg_key}"}})'
        line = f"    {self.name}: {self.type}{f' = {default}' if default else ''}\n"
        return line + (f"    {TEXTS[self.text]}\n" if TEXTS[self.text] else "")


@dataclass(frozen=True)
class OptionsClass:
    """A class: its own fields, those of its base class, and those of the classes that are groups of options.

    Of each group it has the fields, and " = None" where the group may be left out.
    """

    options: tuple[Option, ...]
    inherited: tuple[Option, ...] = ()
    groups: dict[str, tuple[tuple[Option, ...], str]] = field(default_factory=dict)

    @property
    def every(self):
        return [*self.options, *self.inherited, *(option for inner, _ in self.groups.values() for option in inner)]

    @property
    def source(self):
        """The module's source; required fields come first, as a dataclass wants them."""
        groups = "".join(
            _class(f"Group{name.title()}", "StructuredOpts", one) for name, (one, _) in self.groups.items()
        )
        tail = "".join(
            f"    {name}: {'Optional[' * bool(default)}Group{name.title()}{']' * bool(default)}{default}\n"
            for name, (_, default) in sorted(self.groups.items(), key=lambda one: one[1][1])
        )
        required = [option for option in self.options if not option.default]
        rest = [option for option in self.options if option.default]
        base = _class("Base", "StructuredOpts", self.inherited)
        own = _class("Made", "Base", required, kind="@dataclass(kw_only=True)") + tail
        return groups + base + own + "".join(option.source for option in rest)


def _class(name, base, options, kind="@dataclass"):
    ordered = sorted(options, key=lambda option: bool(option.default))
    return f"{kind}\nclass {name}({base}):\n    _ = None\n{''.join(option.source for option in ordered)}\n"


@st.composite
def _option(draw, name):
    kind = draw(st.sampled_from(list(TYPES)))
    default = draw(st.sampled_from(["", *TYPES[kind]]))
    named = name == "mail_user" and not default.startswith("field(") and draw(st.booleans())
    if name.startswith("_"):
        default = default or "None"
    return Option(name, kind, default, draw(st.sampled_from([*TEXTS, *USUAL])), "mail-user" if named else "")


def _options(names, most):
    chosen = st.lists(st.sampled_from(names), max_size=most, unique=True)
    return chosen.flatmap(lambda found: st.tuples(*(_option(name) for name in found)))


_groups = st.dictionaries(
    st.sampled_from(["k8s", "disk"]),
    st.tuples(_options(["context", "user_name"], 2), st.sampled_from(["", " = None"])),
    max_size=1,
)
CLASSES = st.builds(OptionsClass, _options(NAMES, 4), _options(["region", "spot"], 1), _groups)
_numbers = count()


def made(base, declared):
    """Return the class, of either package's `StructuredOpts`; its source can be looked up as a file's can."""
    name = f"structured_opts_{next(_numbers)}"
    source = "from dataclasses import dataclass, field\nfrom typing import Optional, Union\n" + declared.source
    module = types.ModuleType(name)
    module.__file__ = f"<{name}>.py"
    module.__dict__["StructuredOpts"] = base
    linecache.cache[module.__file__] = (len(source), None, source.splitlines(True), module.__file__)
    sys.modules[name] = module
    exec(compile(source, module.__file__, "exec"), module.__dict__)
    return module.__dict__["Made"]


def forget():
    """Forget the modules that were made."""
    for name in [name for name in sys.modules if name.startswith("structured_opts_")]:
        linecache.cache.pop(f"<{name}>.py", None)
        del sys.modules[name]
