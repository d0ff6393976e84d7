"""The dry run through the scheduler: with a server and without one, with images that nodes cannot have."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from backend.kubernetes.apps import role
from kubernetes.client import ApiClient, Configuration
from support.scripted_server import ScriptedServer, scripted_server

from torchx_tui.backends.history.journal import Journal
from torchx_tui.backends.kubernetes.scheduler import KubernetesScheduler
from torchx_tui.backends.runner import Runner
from torchx_tui.specs import AppDef, BackendUnavailableError, InvalidRunConfigException, Role

DIGEST = "a" * 64


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with scripted_server() as made:
        yield made


@pytest.fixture
def scheduler(server: ScriptedServer) -> Iterator[KubernetesScheduler]:
    configuration = Configuration()
    configuration.host = server.url
    made = KubernetesScheduler("mine", ApiClient(configuration))
    yield made
    made.close()


def dry_run(scheduler: KubernetesScheduler, *roles: Role, **cfg: Any) -> Any:
    return scheduler.submit_dryrun(AppDef("job", list(roles) or [role()]), {"queue": "default", **cfg})


def test_the_server_is_asked_once_for_a_dry_run(server: ScriptedServer, scheduler: KubernetesScheduler) -> None:
    made = dry_run(scheduler, role(num_replicas=8))
    assert [(one.method, one.params) for one in server.asked] == [("POST", {"dryRun": "All"})]
    assert server.asked[0].body == made.request.resource


def test_the_server_is_not_asked_where_nobody_wants_it(server: ScriptedServer, scheduler: KubernetesScheduler) -> None:
    assert "kind: Job" in str(dry_run(scheduler, validate_spec=False))
    assert server.asked == []


def test_without_a_kubeconfig(tmp_path: Any) -> None:
    with Runner(journal=Journal(tmp_path)) as runner:
        app = AppDef("job", [role()])
        offline = runner.dryrun(app, "kubernetes", {"queue": "default", "validate_spec": False})
        assert "kind: Job" in str(offline)
        with pytest.raises(BackendUnavailableError, match=r"There is no kubeconfig.*validate_spec=false launches"):
            runner.dryrun(app, "kubernetes", {"queue": "default"})


def test_roles_without_resources_have_no_limits(tmp_path: Any) -> None:
    with Runner(journal=Journal(tmp_path)) as runner:
        app = AppDef("job", [Role("r", "i", entrypoint="e")])
        job = runner.dryrun(app, "kubernetes", {"queue": "default", "validate_spec": False}).request.resource
    resources = job["spec"]["tasks"][0]["template"]["spec"]["containers"][0]["resources"]
    assert resources == {"limits": {}, "requests": {}}


def test_images_of_the_local_engine(scheduler: KubernetesScheduler) -> None:
    app = AppDef("job", [role(image=f"sha256:{DIGEST}")])
    cfg: dict[str, Any] = {"queue": "default", "image_repo": "example.com/x"}
    job = scheduler.submit_dryrun(app, cfg).request
    assert job.images_to_push == {f"sha256:{DIGEST}": ("example.com/x", DIGEST)}
    pod = job.resource["spec"]["tasks"][0]["template"]["spec"]
    assert pod["containers"][0]["image"] == f"example.com/x:{DIGEST}"
    with pytest.raises(InvalidRunConfigException, match="set image_repo"):
        dry_run(scheduler, role(image=f"sha256:{DIGEST}"))


def test_the_journal_knows_the_id_before_the_launch(scheduler: KubernetesScheduler) -> None:
    made = dry_run(scheduler, namespace="team").request
    assert made.app_id == f"team:{made.resource['metadata']['name']}"
