"""docs/reference/names.md is true: each public name of TorchX is here or named there, with the same value."""

from __future__ import annotations

import importlib
import inspect
import json
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from interop.oracle import theirs

import torchx_tui.components
import torchx_tui.specs
from torchx_tui.backends import api
from torchx_tui.backends.kubernetes.scheduler import role_to_pod
from torchx_tui.backends.runner import Runner
from torchx_tui.specs import TORCHX_HOME, CapabilityKey, Resource, Role, app_metadata, cases
from torchx_tui.specs.named_resources_aws import INSTANCE_TYPE, instance_type_from_resource

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "names.md").read_text(encoding="utf-8")
MODULES = [
    *("torchx.specs", "torchx.specs.builders", "torchx.specs.finder", "torchx.specs.file_linter"),
    *("torchx.specs.named_resources_aws", "torchx.specs.named_resources_generic"),
    *("torchx.workspace.api", "torchx.workspace.dir_workspace", "torchx.workspace.docker_workspace"),
    *("torchx.runner.api", "torchx.runner.config", "torchx.schedulers", "torchx.schedulers.api"),
    *("torchx.schedulers.ids", "torchx.schedulers.docker_scheduler", "torchx.schedulers.kubernetes_scheduler"),
]
# The page names one for all.
FACTORIES = re.compile(r"aws_[a-z0-9]+_\w+")


def public_names(module: str) -> list[str]:
    """Return what a module of TorchX says that it exports, else the functions and classes that it defines."""
    found = theirs(module)
    own = [
        name
        for name, value in vars(found).items()
        if not name.startswith("_")
        and (inspect.isfunction(value) or inspect.isclass(value))
        and value.__module__ == module
    ]
    return list(getattr(found, "__all__", own))


@pytest.mark.parametrize("module", MODULES)
def test_each_name_of_torchx_is_on_the_page(torchx: str, module: str) -> None:
    missing = [name for name in public_names(module) if not re.search(rf"\b{name}\b", PAGE)]
    assert [name for name in missing if not FACTORIES.fullmatch(name)] == []


def test_names_of_specs_are_here_unless_the_page_says_otherwise(torchx: str) -> None:
    here = {*torchx_tui.specs.__all__, *torchx_tui.components.__all__}
    assert set(public_names("torchx.specs")) - here == {"materialize_appdef"}


@pytest.mark.parametrize(("ours", "module"), [(torchx_tui.specs, "torchx.specs"), (api, "torchx.schedulers.api")])
def test_constants_have_the_same_values(torchx: str, ours: ModuleType, module: str) -> None:
    found = {name: getattr(ours, name) for name in ours.__all__ if isinstance(getattr(ours, name), (str, int))}
    assert len(found) in (1, 6)
    assert found == {name: getattr(theirs(module), name) for name in found}


SAME = ("run", "cancel", "delete", "list", "status", "wait", "log_lines", "close", "dryrun", "describe")


def parameters(function: Any) -> list[tuple[str, Any, Any]]:
    """Return name, kind and default of each parameter of TorchX's that ours has too, in order."""
    # From Python 3.14 on annotations are evaluated late, where `list` is the method of that name: 4 is Format.STRING.
    texts = {"annotation_format": 4} if sys.version_info >= (3, 14) else {}
    return [(one.name, one.kind, one.default) for one in inspect.signature(function, **texts).parameters.values()]


@pytest.mark.parametrize("name", SAME)
def test_methods_of_the_runner_take_what_torchx_s_take(torchx: str, name: str) -> None:
    wanted = parameters(getattr(theirs("torchx.runner.api").Runner, name))
    ours = parameters(getattr(Runner, name))
    assert ours[: len(wanted)] == wanted
    assert all(kind is inspect.Parameter.KEYWORD_ONLY for _, kind, _ in ours[len(wanted) :])


def test_methods_of_the_runner_that_are_not_here_are_named(torchx: str) -> None:
    methods = {name for name, one in vars(theirs("torchx.runner.api").Runner).items() if callable(one)}
    missing = {name for name in methods if not name.startswith("_")} - set(dir(Runner))
    assert all(re.search(rf"`(Runner\.)?{name}\b", PAGE) for name in missing), missing


def test_a_pod_of_a_role_has_the_role_s_variables_alone(torchx: str) -> None:
    def made(specs: Any, make: Any) -> Any:
        pod = make("worker-0", specs.Role("worker", "img:1", env={"A": "1"}, resource=specs.Resource(1, 0, 64)), None)
        return [(one.name, one.value) for one in pod.spec.containers[0].env]

    their_pod = made(theirs("torchx.specs"), theirs("torchx.schedulers.kubernetes_scheduler").role_to_pod)
    assert made(torchx_tui.specs, role_to_pod) == their_pod == [("A", "1")]


def test_small_names_do_what_torchx_s_do(torchx: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    their_specs = theirs("torchx.specs")
    for name in ("job_queue", "a", "image_repo_url", "_x"):
        assert cases.snake_to_camel(name) == their_specs.cases.snake_to_camel(name)
    for name in ("jobQueue", "a", "imageRepoURL", "EFACount2x"):
        assert cases.camel_to_snake(name) == their_specs.cases.camel_to_snake(name)
    keys = [name for name in vars(their_specs.app_metadata) if name.isupper()]
    assert {key: getattr(app_metadata, key) for key in keys} == {
        key: getattr(their_specs.app_metadata, key) for key in keys
    }
    monkeypatch.setenv("TORCHX_HOME", str(tmp_path / "home"))
    assert TORCHX_HOME("a", "b") == their_specs.TORCHX_HOME("a", "b") == tmp_path / "home" / "a" / "b"
    assert (tmp_path / "home" / "a" / "b").is_dir()


def test_capability_keys_read_and_refuse_alike(torchx: str) -> None:
    made = []
    for key_class, resource_class in (
        (CapabilityKey, Resource),
        (theirs("torchx.specs").CapabilityKey, theirs("torchx.specs").Resource),
    ):
        resource = resource_class(cpu=1, gpu=0, memMB=1)
        key = key_class("aws", "bandwidth", int)
        before = key.get(resource), key.get(resource, 3)
        key.set(resource, 400)
        after = key.get(resource), json.dumps(resource.capabilities)
        resource.capabilities[key.key] = True
        with pytest.raises(TypeError) as refused:
            key.get(resource)
        made.append((before, after, str(refused.value)))
    assert made[0] == made[1]


def test_the_instance_type_of_a_resource(torchx: str) -> None:
    assert instance_type_from_resource(Resource(1, 0, 1, {INSTANCE_TYPE: "p4d.24xlarge"})) == "p4d.24xlarge"
    with pytest.warns(UserWarning, match="names no instance type"):
        assert instance_type_from_resource(Resource(1, 0, 1)) is None


def test_a_copy_of_a_builtin_is_what_the_page_says(torchx: str) -> None:
    module = importlib.import_module("torchx_tui.components")
    assert module.get_builtin_source("utils.echo").count("def echo(") == 1


def test_a_role_can_be_made_as_the_page_says() -> None:
    assert Role("r", "i", min_replicas=1).min_replicas == 1
