"""The AppDefs of the builtin components compared with TorchX's, field by field."""

import pytest
from hypothesis import example, given
from interop.builtin_calls import COMPONENTS, calls, usual_call
from interop.component_calls import built_from
from interop.oracle import Refused, cases, check_example, each_difference, hold, outcome, theirs
from interop.plain_data import fields_of

import torchx_tui.specs as our_specs

pytestmark = pytest.mark.usefixtures("torchx")

AREA = "builtin components"
RUN_A_PROGRAM = ("utils.copy", "utils.booth")


def explained(name, argv, their, our):
    """Return the entry that an outcome falls under."""
    if isinstance(our, Refused):
        if isinstance(their, Refused):
            return "errors"
        if any(not word.isascii() for word in argv if word.startswith("--j=")):
            return "digits of other scripts"
        return "no nodes" if "nodes" in str(our.error) else None
    if isinstance(their, Refused):
        return "an elastic spmd" if name == "dist.spmd" and "--j=1:4x8" in argv else None
    their_role, our_role = ({**app["roles"][0]} for app in (their, our))
    if name in RUN_A_PROGRAM:
        started = their_role.pop("entrypoint"), our_role.pop("entrypoint")
        same_words = their_role.pop("args")[2:] == our_role.pop("args")[2:]
        travels = started == ("python", "python3") and same_words and their_role == our_role
        return "programs that travel" if travels else None
    if {"--cpu=0", "--memMB=0"} & set(argv):
        del their_role["resource"], our_role["resource"]
        return "a zero" if their_role == our_role else None
    return None


def fields(specs, name, argv):
    return fields_of(built_from(specs, name, argv))


@given(calls())
@example(("utils.python", ["--m="]))
@example(("utils.python", ["--script="]))
@example(("dist.ddp", ["--script=a.py", "--name=n"]))
@cases(1500)
def test_each_builtin(call):
    name, argv = call
    their, our = (outcome(lambda specs=specs: fields(specs, name, argv)) for specs in (theirs(), our_specs))
    if isinstance(their, Refused) and their.names[0] == "SystemExit":
        assert repr(our) == "ArgumentError"
    else:
        hold(AREA, their, our, lambda their, our: explained(name, argv, their, our), call)


@pytest.mark.parametrize("name", sorted(set(COMPONENTS) - set(RUN_A_PROGRAM)))
def test_the_usual_call_is_equal(name):
    argv = usual_call(name)
    assert fields(our_specs, name, argv) == fields(theirs(), name, argv)


@each_difference(AREA)
def test_each_difference_is_there(difference):
    check_example(difference, lambda specs: {"role": lambda name, *argv: built_from(specs, name, argv).roles[0]})
