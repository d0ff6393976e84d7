"""What TorchX's own Docker scheduler would create, and what ours would: equal field by field, but for a list."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import pytest
from interop.docker_apps import APPS, Made
from interop.release_0_7 import ADDED_LABELS
from interop.releases import pinned

import torchx_tui.specs as our_specs
from torchx_tui.backends.docker import labels
from torchx_tui.backends.docker.scheduler import DockerScheduler
from torchx_tui.backends.history.journal import Journal
from torchx_tui.backends.runner import Runner

ADDED_KWARGS = {"ports"}
# The labels that are only ours, and whose version it is, which is another value.
OTHER_LABELS = {*ADDED_LABELS, labels.VERSION}

Request = Callable[[Callable[[Any], Made]], Any]


@pytest.fixture
def their_specs(torchx: str) -> Any:
    return importlib.import_module("torchx.specs")


@pytest.fixture
def theirs(torchx: str, their_specs: Any, monkeypatch: pytest.MonkeyPatch) -> Request:
    """Return what makes TorchX's request for an app."""
    module: Any = importlib.import_module("torchx.schedulers.docker_scheduler")
    monkeypatch.setattr(module, "make_unique", pinned)

    def request(make: Callable[[Any], Made]) -> Any:
        app, cfg = make(their_specs)
        return module.create_scheduler("torchx").submit_dryrun(app, cfg).request

    return request


@pytest.fixture
def ours(monkeypatch: pytest.MonkeyPatch) -> Request:
    """Return what makes our request for an app."""
    monkeypatch.setattr("torchx_tui.backends.docker.scheduler.make_unique", pinned)

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
        kept = {name: value for name, value in mine.kwargs["labels"].items() if name not in OTHER_LABELS}
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


def test_host_names_stay_apart_where_they_are_shortened(theirs: Request, ours: Request) -> None:
    def make(specs: Any) -> Made:
        return specs.AppDef("n" * 40, [specs.Role("r" * 40, "i", entrypoint="e", num_replicas=101)]), {}

    expected, got = theirs(make).containers, ours(make).containers
    assert [one.kwargs["name"] for one in got] == [one.kwargs["name"] for one in expected]
    assert len({one.kwargs["hostname"] for one in got}) == 101
