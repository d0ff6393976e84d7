"""docs/reference/names.md is true: each public name of TorchX is here or named there, with the same value."""

import inspect
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from interop.oracle import theirs

import torchx_tui.specs as our_specs
from torchx_tui.backends import api
from torchx_tui.backends.job import Job
from torchx_tui.backends.kubernetes.scheduler import role_to_pod
from torchx_tui.backends.runner import Runner
from torchx_tui.specs.named_resources_aws import INSTANCE_TYPE, instance_type_from_resource

pytestmark = pytest.mark.usefixtures("torchx")

PAGE = (Path(__file__).parents[2] / "docs/reference/names.md").read_text(encoding="utf-8")
MODULES = [
    *("specs", "specs.builders", "specs.finder", "specs.file_linter", "specs.named_resources_aws"),
    *("specs.named_resources_generic", "workspace.api", "workspace.dir_workspace", "workspace.docker_workspace"),
    *("runner.api", "runner.config", "schedulers", "schedulers.api", "schedulers.ids", "schedulers.docker_scheduler"),
    "schedulers.kubernetes_scheduler",
]
SAME = ("run", "list", "close", "dryrun")
OF_A_JOB = ("cancel", "delete", "status", "wait", "log_lines", "describe")


def public_names(module):
    """Return what a module of TorchX exports by `__all__`, else the functions and classes that it defines."""
    found = theirs(f"torchx.{module}")
    own = [
        name
        for name, value in vars(found).items()
        if name[0] != "_" and inspect.isroutine(value) | inspect.isclass(value) and value.__module__ == found.__name__
    ]
    return set(getattr(found, "__all__", own))


@pytest.mark.parametrize("module", MODULES)
def test_each_name_of_torchx_is_on_the_page(module):
    missing = [name for name in public_names(module) if not re.search(rf"\b{name}\b", PAGE)]
    # The page names one factory of AWS resources for all.
    assert [name for name in missing if not re.fullmatch(r"aws_[a-z0-9]+_\w+", name)] == []


def test_names_of_specs_are_here_unless_the_page_says_otherwise():
    missing = public_names("specs") - set(our_specs.__all__)
    assert missing == {
        "TORCHX_CONTEXT_NAME",
        "TORCHX_HOME",
        "CapabilityKey",
        "app_metadata",
        "cases",
        "materialize_appdef",
    }


@pytest.mark.parametrize(
    ("ours", "their_name", "number"),
    [(our_specs, "specs", 5), (api, "schedulers.api", 1)],
)
def test_constants_have_the_same_values(ours, their_name, number):
    names = getattr(ours, "__all__", None) or [name for name in vars(ours) if name.isupper()]
    found = {name: getattr(ours, name) for name in names if isinstance(getattr(ours, name), (str, int))}
    their = theirs(f"torchx.{their_name}")
    assert found == {name: getattr(their, name) for name in found}
    assert len(found) == number


def parameters(function):
    """Return name, kind and default of each parameter."""
    # From Python 3.14 on annotations are evaluated late, where `list` is the method of that name: 4 is Format.STRING.
    texts = {"annotation_format": 4} if sys.version_info >= (3, 14) else {}
    return [(one.name, one.kind, one.default) for one in inspect.signature(function, **texts).parameters.values()]


@pytest.mark.parametrize("name", SAME)
def test_a_method_of_the_runner_takes_what_torchx_s_takes(name):
    wanted = parameters(getattr(theirs("torchx.runner.api").Runner, name))
    ours = parameters(getattr(Runner, name))
    assert ours[: len(wanted)] == wanted
    assert all(kind is inspect.Parameter.KEYWORD_ONLY for _, kind, _ in ours[len(wanted) :])


@pytest.mark.parametrize("name", OF_A_JOB)
def test_a_job_takes_what_torchx_s_runner_takes(name):
    wanted = [one for one in parameters(getattr(theirs("torchx.runner.api").Runner, name)) if one[0] != "app_handle"]
    ours = parameters(getattr(Job, name))
    assert ours[: len(wanted)] == wanted
    assert all(kind is inspect.Parameter.KEYWORD_ONLY for _, kind, _ in ours[len(wanted) :])


def test_other_methods_of_the_runner_are_on_the_page():
    methods = {name for name, one in vars(theirs("torchx.runner.api").Runner).items() if callable(one)}
    missing = {name for name in methods if not name.startswith("_")} - set(dir(Runner))
    assert {name for name in missing if not re.search(rf"`(Runner\.)?{name}\b", PAGE)} == set()


def test_a_pod_of_a_role_has_the_role_s_variables_alone():
    for specs, make in (
        (theirs(), theirs("torchx.schedulers.kubernetes_scheduler").role_to_pod),
        (our_specs, role_to_pod),
    ):
        pod: Any = make(
            "worker-0", specs.Role("worker", "img:1", env={"A": "1"}, resource=specs.Resource(1, 0, 64)), None
        )
        assert [(one.name, one.value) for one in pod.spec.containers[0].env] == [("A", "1")]


def test_the_instance_type_of_a_resource():
    assert instance_type_from_resource(our_specs.Resource(1, 0, 1, {INSTANCE_TYPE: "p4d"})) == "p4d"
    with pytest.warns(UserWarning, match="names no instance type"):
        assert instance_type_from_resource(our_specs.Resource(1, 0, 1)) is None
