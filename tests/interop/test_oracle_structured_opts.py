"""Run options as dataclasses held against TorchX's: declared, made of a cfg, asked as a mapping."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from interop.oracle import cases, hold, names_of, outcome, theirs
from interop.structured_opts_cases import CLASSES, USUAL, VALUES, Option, OptionsClass, forget, made

from torchx_tui.backends.options import StructuredOpts

AREA = "structured options"
KEYS = [
    "queue", "log_dir", "logDir", "a_b_c", "aBC", "x1", "mail_user", "mailUser", "mail-user", "_hidden", "_extra_cfg",
    "clusterName", "cluster_name", "ZONE", "zone", "LOG_DIR", "region", "spot", "k8s.context", "k8s.user_name",
    "k8s.userName", "disk.context", "K8s.context", "k8s.other", "k8s", "other", "get", "no.such", "",
]  # fmt: skip
ASKED = st.lists(st.sampled_from(KEYS), min_size=1, max_size=3)
CFGS = st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=5)

# A name that no field can have, a private field, a group, and what is no option.
EVERY_FORM = OptionsClass(
    (Option("mail_user", "str", '"a"', "usual", "mail-user"), Option("_hidden", "str", "None", "none")),
    groups={"k8s": ((Option("context", "str", "None", "usual"),), " = None")},
)
FILLED = {"mail-user": "v", "k8s.context": "w", "_hidden": "x", "other": 1}


@pytest.fixture(autouse=True)
def no_modules_left() -> Iterator[None]:
    yield
    forget()


def both_of(declared: OptionsClass) -> tuple[Any, Any]:
    """Return TorchX's class and ours."""
    return made(theirs("torchx.schedulers.api").StructuredOpts, declared), made(StructuredOpts, declared)


def compare(both: tuple[Any, Any], act: Callable[[Any], Any], explain: Any, case: Any) -> None:
    their_class, our_class = both
    hold(AREA, outcome(lambda: act(their_class)), outcome(lambda: act(our_class)), explain, case)


def options(made_class: Any) -> list[Any]:
    return [(name, one.opt_type, one.default, one.is_required, one.help) for name, one in made_class.as_runopts()]


def without_help(shown: Any) -> Any:
    return [one[:4] for one in shown] if isinstance(shown, list) else shown


@given(CLASSES)
@example(EVERY_FORM)
@cases(300)
def test_declaring(torchx: str, declared: OptionsClass) -> None:
    def explain_options(their: Any, our: Any) -> str | None:
        return text_fault(declared) if repr(without_help(their)) == repr(without_help(our)) else None

    both = both_of(declared)
    compare(both, options, explain_options, "as_runopts")
    compare(both, lambda one: sorted(one.get_docstrings().items()), lambda *_: text_fault(declared), "get_docstrings")


def text_fault(declared: OptionsClass) -> str | None:
    """Return the entry that the texts under the fields fall under."""
    if any(option.text not in USUAL for option in declared.every):
        return "texts under fields"
    return "texts of the class below" if any(option.text != "none" for option in declared.inherited) else None


@given(CLASSES, st.lists(st.tuples(CFGS, ASKED), min_size=12, max_size=12))
@example(EVERY_FORM, [(FILLED, ["mailUser", "k8s.context", "_hidden", "other"]), ({}, ["mail_user", "k8s"])])
@cases(250)
def test_made_of_a_cfg(torchx: str, declared: OptionsClass, given_and_asked: list[Any]) -> None:
    both = both_of(declared)
    for cfg, keys in given_and_asked:
        case = (declared.source, cfg, keys)
        compare(both, lambda one: listed(one.from_cfg(cfg)), lambda *_: key_fault(declared, list(cfg)), case)  # noqa: B023

        def explain(their: Any, our: Any) -> str | None:
            return "get of None" if only_none(their, our) else key_fault(declared, [*cfg, *keys])  # noqa: B023

        compare(both, lambda one: asked(one.from_cfg(cfg), keys), explain, case)  # noqa: B023


def listed(opts: Any) -> Any:
    return repr(opts), list(opts), len(opts), dict(opts), opts | opts


def asked(opts: Any, keys: list[str]) -> Any:
    return [(outcome(lambda: opts[key]), key in opts, opts.get(key, "no value")) for key in keys]  # noqa: B023


def only_none(their: Any, our: Any) -> bool:
    """Return whether two answers differ in what get() gives for an option that is None, and in nothing else."""
    if not (isinstance(their, list) and isinstance(our, list)):
        return False
    return repr(their) == repr([(value, there, None if value is None else got) for value, there, got in our])


def key_fault(declared: OptionsClass, keys: list[str]) -> str | None:
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


def snake(name: str) -> str:
    return re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name).lower()


def spelled_otherwise(option: Option, key: str) -> bool:
    """Return whether a key is the option in a spelling that TorchX reads at one place and not at another."""
    camel = StructuredOpts.snake_to_camel(option.name)
    if key == camel:
        return snake(camel) != option.name
    return snake(key) == snake(option.name) and key not in (option.name, option.cfg_key)


def one(name: str, kind: str = "str", default: str = "None", text: str = "none") -> OptionsClass:
    return OptionsClass((Option(name, kind, default, text),))


# Of each entry: the class, what is asked of it, what TorchX gives and what ours do.
EXAMPLES: dict[str, tuple[OptionsClass, Callable[[Any], Any], str, str]] = {
    "texts under fields": (
        one("a", text="single quotes"), lambda made_class: made_class.get_docstrings(), "{}", "{'a': 'Who pays.'}"
    ),
    "texts of the class below": (
        OptionsClass((), (Option("a", "str", "None", "usual"),)), lambda made_class: made_class.get_docstrings(),
        "{}", "{'a': 'Who pays.'}",
    ),
    "spellings": (
        one("log_dir"), lambda made_class: made_class.from_cfg({"LOG_DIR": "x"})["log_dir"], "None", "'x'"
    ),
    "unknown options with a point": (
        one("a"), lambda made_class: dict(made_class.from_cfg({"b.c": 1})), "KeyError", "{'a': None, 'b.c': 1}"
    ),
    "get of None": (one("a"), lambda made_class: made_class.from_cfg({}).get("a", 1), "None", "1"),
}  # fmt: skip


@pytest.mark.parametrize("name", names_of(AREA))
def test_each_difference_is_there(torchx: str, name: str) -> None:
    declared, act, their_text, our_text = EXAMPLES[name]
    assert repr(outcome(lambda: act(made(theirs("torchx.schedulers.api").StructuredOpts, declared)))) == their_text
    assert repr(outcome(lambda: act(made(StructuredOpts, declared)))) == our_text


def test_no_example_is_left_over() -> None:
    assert set(EXAMPLES) == set(names_of(AREA))
