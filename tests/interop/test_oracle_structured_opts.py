"""Run options as dataclasses compared with TorchX's: declared, made of a cfg, used as a mapping."""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from interop.oracle import WORDS, cases, check_example, compare, each_difference, outcome, theirs
from interop.structured_opts_cases import CLASSES, USUAL, Option, OptionsClass, forget, made

from torchx_tui.backends.options import StructuredOpts

AREA = "structured options"
KEYS = WORDS[AREA]["keys"]
ASKED = st.lists(st.sampled_from(KEYS), min_size=1, max_size=3)
VALUES = st.sampled_from(["v", "w", 1, 0, None, True, ["l"], {"k": "v"}])
CFGS = st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=5)

# A name that no field can have, a private field, a group, and an unknown option.
EVERY_FORM = OptionsClass(
    (Option("mail_user", default='"a"', text="usual", cfg_key="mail-user"), Option("_hidden")),
    groups={"k8s": ((Option("context", text="usual"),), " = None")},
)
FILLED = {"mail-user": "v", "k8s.context": "w", "_hidden": "x", "other": 1}


@pytest.fixture(autouse=True)
def bases(torchx):
    """Give TorchX's base class and ours; remove the modules that were made with them."""
    yield theirs("torchx.schedulers.api").StructuredOpts, StructuredOpts
    forget()


@given(CLASSES)
@example(EVERY_FORM)
@cases(300)
def test_declaring(bases, declared):
    def fault(their, our):
        if any(option.text not in USUAL for option in declared.every):
            return "texts under fields"
        return "texts of the class below" if any(option.text != "none" for option in declared.inherited) else None

    def options(one):
        return [(name, option.opt_type, option.default, option.is_required) for name, option in one.as_runopts()]

    both = [made(base, declared) for base in bases]
    compare(AREA, options, None, declared.source, both)
    compare(AREA, lambda one: [option.help for _, option in one.as_runopts()], fault, declared.source, both)
    compare(AREA, lambda one: sorted(one.get_docstrings().items()), fault, declared.source, both)


@given(CLASSES, st.lists(st.tuples(CFGS, ASKED), min_size=12, max_size=12))
@example(EVERY_FORM, [(FILLED, ["mailUser", "k8s.context", "_hidden", "other"]), ({}, ["mail_user", "k8s"])])
@cases(250)
def test_made_of_a_cfg(bases, declared, given_and_asked):
    both = [made(base, declared) for base in bases]
    for cfg, keys in given_and_asked:
        case = (declared.source, cfg, keys)

        def explain(their, our):
            return "get of None" if only_none(their, our) else key_fault(declared, [*cfg, *keys])  # noqa: B023

        compare(AREA, lambda one: listed(one.from_cfg(cfg)), explain, case, both)  # noqa: B023
        compare(AREA, lambda one: asked(one.from_cfg(cfg), keys), explain, case, both)  # noqa: B023


def listed(opts):
    return repr(opts), list(opts), len(opts), dict(opts), opts | opts


def asked(opts, keys):
    return [(outcome(lambda: opts[key]), key in opts, opts.get(key, "no value")) for key in keys]  # noqa: B023


def only_none(their, our):
    """Return whether two answers differ in what get() returns for an option that is None, and in nothing else."""
    if not (isinstance(their, list) and isinstance(our, list)):
        return False
    return repr(their) == repr([(value, there, None if value is None else got) for value, there, got in our])


def key_fault(declared, keys):
    """Return the entry that one of the keys, or a field's name, falls under."""
    if any(option.name not in (snake(option.name), "_hidden") for option in declared.every):
        return "spellings"
    for key in keys:
        before, point, after = key.partition(".")
        if point and before.lower() not in declared.groups:
            return "unknown options with a point"
        inner = declared.groups[before.lower()][0] if point else (*declared.options, *declared.inherited)
        if (point and before not in declared.groups) or any(spelled_otherwise(one, after or key) for one in inner):
            return "spellings"
    return None


def snake(name):
    return re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name).lower()


def spelled_otherwise(option, key):
    """Return whether a key is the option in a spelling that TorchX reads at one place and not at another."""
    camel = StructuredOpts.snake_to_camel(option.name)
    if key == camel:
        return snake(camel) != option.name
    return snake(key) == snake(option.name) and key not in (option.name, option.cfg_key)


@each_difference(AREA)
def test_each_difference_is_there(bases, difference):
    def names(base):
        return {
            "declared": lambda name, text="none": made(base, OptionsClass((Option(name, text=text),))),
            "inherited": lambda name, text: made(base, OptionsClass((), (Option(name, text=text),))),
        }

    check_example(difference, names, bases)
