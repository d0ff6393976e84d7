"""What TorchX's own Docker scheduler would create, and what ours would: equal field by field, but for a list."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import pytest
from interop.docker_apps import APPS, Made

import torchx_tui.specs as our_specs
from torchx_tui.backends.docker import labels
from torchx_tui.backends.docker.scheduler import DockerScheduler
from torchx_tui.backends.journal import Journal
from torchx_tui.backends.runner import Runner
from torchx_tui.specs import AppDef, AppDefError, Role

# What our requests have and TorchX's do not.
ADDED_LABELS = {
    labels.APP_DEF,
    labels.APP_NAME,
    labels.SESSION,
    labels.USER,
    labels.REPLICAS,
    labels.ROLE_INDEX,
}
ADDED_KWARGS = {"ports"}
# What has another value: whose version it is.
OTHER_LABELS = {labels.VERSION}

Request = Callable[[Callable[[Any], Made]], Any]


@pytest.fixture
def their_specs(torchx: str) -> Any:
    return importlib.import_module("torchx.specs")


@pytest.fixture
def theirs(torchx: str, their_specs: Any, monkeypatch: pytest.MonkeyPatch) -> Request:
    """Return what makes TorchX's request for an app."""
    module: Any = importlib.import_module("torchx.schedulers.docker_scheduler")
    monkeypatch.setattr(module, "make_unique", lambda name: f"{name}-wq4xkz7dn2bcd")

    def request(make: Callable[[Any], Made]) -> Any:
        app, cfg = make(their_specs)
        return module.create_scheduler("torchx").submit_dryrun(app, cfg).request

    return request


@pytest.fixture
def ours(monkeypatch: pytest.MonkeyPatch) -> Request:
    """Return what makes our request for an app."""
    monkeypatch.setattr("torchx_tui.backends.docker.scheduler.make_unique", lambda name: f"{name}-wq4xkz7dn2bcd")

    def request(make: Callable[[Any], Made]) -> Any:
        app, cfg = make(our_specs)
        return DockerScheduler("torchx").submit_dryrun(app, cfg).request

    return request


@pytest.mark.parametrize("make", APPS.values(), ids=APPS.keys())
@pytest.mark.filterwarnings("ignore")
def test_requests_are_equal(
    make: Callable[[Any], Made], theirs: Request, ours: Request, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("COPIED_A", "COPIED_B", "COPIED_C"):
        monkeypatch.setenv(name, "from here")
    expected, got = theirs(make), ours(make)
    assert got.app_id == expected.app_id
    assert len(got.containers) == len(expected.containers)
    for mine, other in zip(got.containers, expected.containers, strict=True):
        assert (mine.image, mine.command) == (other.image, other.command)
        assert mine.kwargs.keys() - ADDED_KWARGS == other.kwargs.keys()
        for name, value in other.kwargs.items():
            if name != "labels":
                assert mine.kwargs[name] == value, name
        kept = {name: value for name, value in mine.kwargs["labels"].items() if name not in ADDED_LABELS | OTHER_LABELS}
        assert kept == {name: value for name, value in other.kwargs["labels"].items() if name not in OTHER_LABELS}


def test_there_are_enough_apps() -> None:
    assert len(APPS) >= 30


def test_the_handle_in_the_environment_is_torchxs(torchx: str, their_specs: Any, tmp_path: Any) -> None:
    their_runner: Any = importlib.import_module("torchx.runner").get_runner()
    app, _ = APPS["plain"](their_specs)
    expected = their_runner.dryrun(app, "local_docker", {}).request.containers[0]
    our_app, _ = APPS["plain"](our_specs)
    got = Runner(journal=Journal(tmp_path)).dryrun(our_app, "local_docker", {}).request.containers[0]

    def handle(container: Any) -> str:
        app_id = container.kwargs["labels"][labels.APP_ID]
        return container.kwargs["environment"]["TORCHX_JOB_ID"].replace(app_id, "ID")

    assert handle(got) == handle(expected) == "local_docker://torchx/ID"
    assert got.kwargs["environment"].keys() == expected.kwargs["environment"].keys()


class TestMended:
    """Where TorchX's request is at fault, ours differs, and in nothing else."""

    def test_macros_in_the_entrypoint(self, theirs: Request, ours: Request) -> None:
        def make(specs: Any) -> Made:
            return specs.AppDef("job", [specs.Role("r", "i", entrypoint="/bin/${replica_id}")]), {}

        assert theirs(make).containers[0].command == ["/bin/${replica_id}"]
        assert ours(make).containers[0].command == ["/bin/0"]

    def test_the_first_host_is_the_first_containers_name(self, theirs: Request, ours: Request) -> None:
        def make(specs: Any) -> Made:
            # The last 30 characters of the id begin with a sign, which a container's name cannot.
            return specs.AppDef("x_________________", [specs.Role("r", "i", entrypoint="e")]), {}

        for request, agree in ((theirs, False), (ours, True)):
            first = request(make).containers[0].kwargs
            assert (first["environment"]["TORCHX_RANK0_HOST"] == first["name"]) is agree

    def test_host_names_are_no_longer_than_the_kernel_takes(self, theirs: Request, ours: Request) -> None:
        def make(specs: Any) -> Made:
            return specs.AppDef("n" * 40, [specs.Role("r" * 40, "i", entrypoint="e", num_replicas=101)]), {}

        expected, got = theirs(make).containers, ours(make).containers
        assert len(expected[100].kwargs["hostname"]) == 65
        assert len(got[100].kwargs["hostname"]) == 63
        assert [one.kwargs["name"] for one in got] == [one.kwargs["name"] for one in expected]
        assert len({one.kwargs["hostname"] for one in got}) == 101

    @pytest.mark.parametrize("name", ["a/b", "a b", "", "ü"])
    def test_names_that_the_engine_refuses(self, ours: Request, name: str) -> None:
        with pytest.raises(AppDefError, match="containers are named after it"):
            ours(lambda _: (AppDef(name, [Role("r", "i", entrypoint="e")]), {}))

    def test_roles_whose_containers_would_have_one_name(self, theirs: Request, ours: Request) -> None:
        def make(specs: Any) -> Made:
            return specs.AppDef("job", [specs.Role("r" * 30 + end, "i", entrypoint="e") for end in "ab"]), {}

        assert len({one.kwargs["name"] for one in theirs(make).containers}) == 1
        with pytest.raises(AppDefError, match="would have containers of one name"):
            ours(make)
