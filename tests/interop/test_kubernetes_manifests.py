"""What the Kubernetes scheduler of TorchX would create, and what ours would: equal field by field, but where mended."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from interop.docker_apps import Made
from interop.kubernetes_apps import APPS
from interop.oracle import cases
from interop.releases import pinned
from support.kubernetes_cluster import KubernetesCluster

import torchx_tui.specs as our_specs
from torchx_tui.backends.kubernetes import labels
from torchx_tui.backends.kubernetes.api_server import ApiServer
from torchx_tui.backends.kubernetes.jobs import pods_path
from torchx_tui.backends.kubernetes.lifecycle import validate
from torchx_tui.backends.kubernetes.request import manifest, overlay
from torchx_tui.backends.kubernetes.request.app_def import roles_of
from torchx_tui.backends.kubernetes.request.manifest import sanitize_for_serialization
from torchx_tui.backends.kubernetes.request.request import KubernetesOpts, make_request
from torchx_tui.specs import AppDefError, RetryPolicy

Job = dict[str, Any]
Manifest = Callable[[Callable[[Any], Made]], Job]


@pytest.fixture
def their_module(torchx: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    module: Any = importlib.import_module("torchx.schedulers.kubernetes_scheduler")
    monkeypatch.setattr(module, "make_unique", pinned)
    return module


@pytest.fixture
def theirs(their_module: Any) -> Manifest:
    """Return what makes TorchX's job of an app."""
    their_specs = importlib.import_module("torchx.specs")

    def make_manifest(make: Callable[[Any], Made]) -> Job:
        app, cfg = make(their_specs)
        made = their_module.app_to_resource(app, "default", **{"service_account": None, **cfg})
        return their_module.sanitize_for_serialization(made)

    return make_manifest


@pytest.fixture
def ours(monkeypatch: pytest.MonkeyPatch) -> Manifest:
    """Return what makes our job of an app."""
    monkeypatch.setattr(manifest, "make_unique", pinned)

    def make_manifest(make: Callable[[Any], Made]) -> Job:
        app, cfg = make(our_specs)
        given: dict[str, Any] = {"service_account": None, **cfg}
        return manifest.app_to_resource(app, "default", **given)

    return make_manifest


def templates(job: Job) -> list[Job]:
    return [task["template"] for task in job["spec"]["tasks"]]


def less_version(job: Job) -> Job:
    for template in templates(job):
        template["metadata"]["labels"].pop(labels.VERSION)
    return job


def assert_equal(got: Job, expected: Job) -> None:
    """Compare two jobs, and name the first field that differs."""
    got, expected = less_version(got), less_version(expected)
    assert {**got["spec"], "tasks": None} == {**expected["spec"], "tasks": None}
    assert len(got["spec"]["tasks"]) == len(expected["spec"]["tasks"])
    for mine, other in zip(got["spec"]["tasks"], expected["spec"]["tasks"], strict=True):
        for part in ("metadata", "spec"):
            assert mine["template"][part] == other["template"][part], (mine["name"], part)
        assert mine == other
    assert got == expected


@pytest.mark.parametrize("make", APPS.values(), ids=APPS.keys())
@pytest.mark.filterwarnings("ignore")
def test_jobs_are_equal(make: Callable[[Any], Made], theirs: Manifest, ours: Manifest) -> None:
    assert_equal(ours(make), theirs(make))


# What cannot be told from a job, or does not have to be.
NOT_REBUILT = {
    "variables of TorchX set by the role",  # a launch sets them
    "elastic, all needed",  # as good as not elastic
    "elastic, more needed than there are",
}


@pytest.mark.parametrize("name", [name for name in APPS if name not in NOT_REBUILT])
@pytest.mark.filterwarnings("ignore")
def test_jobs_of_torchx_are_launched_again_as_they_were(name: str, theirs: Manifest, ours: Manifest) -> None:
    job = theirs(APPS[name])
    notes: list[str] = []
    app, cfg = APPS[name](our_specs)
    app.roles = roles_of(job, notes)
    # The number of devices that it gave stands in the job.
    given = {key: value for key, value in cfg.items() if key != "efa_device_count"}
    assert_equal(ours(lambda specs: (app, given)), job)
    assert notes == []


def test_there_are_enough_apps() -> None:
    assert len(APPS) >= 60


@pytest.mark.parametrize("name", ["overlay.yaml", "overlay.json"])
@pytest.mark.filterwarnings("ignore")
def test_overlays_in_files(name: str, theirs: Manifest, ours: Manifest, tmp_path: Path) -> None:
    path = tmp_path / name
    text = '{"V1Pod": {"spec": {"tolerations": [{"key": "$$x"}]}}}'
    if name.endswith("yaml"):
        text = "spec:\n  volumes: !!python/tuple\n  - {name: dshm, emptyDir: {}}\n  hostNetwork: true\n"
    path.write_text(text)

    def make(specs: Any) -> Made:
        metadata = {"kubernetes": f"file://{path}"}
        return specs.AppDef("job", [specs.Role("r", image="i", entrypoint="e", num_replicas=2, metadata=metadata)]), {}

    assert_equal(ours(make), theirs(make))


names = st.from_regex(r"[A-Za-z][A-Za-z0-9_.]{0,20}[A-Za-z0-9]", fullmatch=True).filter(str.isascii)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
resources = st.fixed_dictionaries(
    {
        "cpu": st.sampled_from([-1, 0, 1, 0.5, 7, 1.3337, 192]),
        "gpu": st.sampled_from([-1, 0, 1, 8]),
        "memMB": st.sampled_from([-1, 0, 1, 1024, 1025, 1_000_000]),
        "devices": st.dictionaries(st.sampled_from(["vpc.amazonaws.com/efa", "example.com/a"]), st.integers(0, 9)),
        "capabilities": st.dictionaries(st.sampled_from(["gpu_memory", "x"]), texts),
    }
)
mounts = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(["BindMount", "VolumeMount"]), texts, texts, st.booleans()),
        st.tuples(st.just("DeviceMount"), texts, texts, st.sampled_from(["r", "w", "m", "rw", "rwm"])),
    ),
    max_size=4,
)
roles = st.fixed_dictionaries(
    {
        "image": texts,
        "entrypoint": texts.filter(lambda text: "$" not in text),
        "args": st.lists(texts | st.sampled_from(["${app_id}", "${replica_id}", "$$", "${rank0_env}"]), max_size=4),
        "env": st.dictionaries(texts, texts | st.sampled_from(["${app_id}", "[FIELD_PATH]status.podIP"]), max_size=3),
        "num_replicas": st.integers(1, 4),
        "max_retries": st.integers(0, 3),
        "min_replicas": st.none() | st.integers(0, 5),
        "port_map": st.dictionaries(texts, st.integers(1, 65535), max_size=2),
        "resource": resources,
        "mounts": mounts,
        "retry_policy": st.sampled_from(["APPLICATION", "REPLICA"]),
    }
)
options = st.fixed_dictionaries(
    {
        "service_account": st.none() | texts,
        "priority_class": st.none() | texts,
        "reserved_millicpu": st.integers(0, 3000),
        "reserved_memmb": st.integers(0, 3000),
        "efa_device_count": st.none() | st.integers(0, 9),
    }
)


@given(app_name=names, made_roles=st.dictionaries(names, roles, min_size=1, max_size=3), cfg=options)
@cases(150)
@pytest.mark.filterwarnings("ignore")
def test_jobs_of_any_app_are_equal(
    app_name: str, made_roles: dict[str, Any], cfg: dict[str, Any], theirs: Manifest, ours: Manifest
) -> None:
    def make(specs: Any) -> Made:
        app = specs.AppDef(app_name, [])
        for name, fields in made_roles.items():
            changes = {
                **fields,
                "resource": specs.Resource(**fields["resource"]),
                "retry_policy": specs.RetryPolicy(fields["retry_policy"]),
                "mounts": [getattr(specs, kind)(*rest) for kind, *rest in fields["mounts"]],
            }
            app.roles.append(specs.Role(name=name, **changes))
        return app, cfg

    assert_equal(ours(make), theirs(make))


def test_run_options_are_torchxs(their_module: Any) -> None:
    def lines(opts: Any) -> list[str]:
        _, _, arguments = repr(opts).partition("required arguments:")
        return [line.strip() for line in arguments.splitlines() if line.strip() and "context" not in line.lower()]

    expected = lines(their_module.KubernetesScheduler("torchx")._run_opts())
    got = lines(KubernetesOpts.as_runopts())
    assert got == expected
    assert len(got) == 17


@pytest.mark.filterwarnings("ignore")
def test_what_is_added_to_the_request(their_module: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manifest, "make_unique", pinned)
    app, _ = APPS["several roles"](importlib.import_module("torchx.specs"))
    scheduler = their_module.create_scheduler("torchx")
    theirs = scheduler.submit_dryrun(app, {"queue": "q", "namespace": "team", "validate_spec": False}).request
    our_app, _ = APPS["several roles"](our_specs)
    got = make_request(our_app, "torchx", KubernetesOpts(queue="q", namespace="team"))
    metadata = got.resource["metadata"]
    assert metadata.pop("namespace") == "team"
    assert {name.partition("/")[0] for name in metadata.pop("annotations")} == {"torchx-tui"}
    assert_equal(got.resource, their_module.sanitize_for_serialization(theirs.resource))
    assert got.images_to_push == theirs.images_to_push


def test_overlays_that_either_sets_are_the_same_text(torchx: str) -> None:
    their_overlays: Any = importlib.import_module("torchx.specs.overlays")
    made = {}
    for module, specs in ((their_overlays, importlib.import_module("torchx.specs")), (overlay, our_specs)):
        one: Any = specs.Role(name="r", image="i")
        module.set_overlay(one, "kubernetes", "V1Pod", {"spec": {module.PUT("volumes"): [], "tolerations": [{"a": 1}]}})
        module.set_overlay(
            one,
            "kubernetes",
            "V1Pod",
            {"spec": {module.DEL("volumes"): None, "tolerations": [{"b": 2}], module.JOIN("x", on="n"): [{"n": 1}]}},
        )
        made[module.__name__] = one.metadata
    first, second = made.values()
    assert first == second


class TestMended:
    """Where TorchX's job is at fault, ours differs, and in nothing else."""

    def role(self, specs: Any, name: str = "r", **changes: Any) -> Any:
        return specs.Role(**{"name": name, "image": "i", "entrypoint": "e", **changes})

    def test_nodes_by_any_of_their_labels(self, theirs: Manifest, ours: Manifest) -> None:
        def make(specs: Any) -> Made:
            capabilities = {"topology.kubernetes.io/zone": "a", "node.kubernetes.io/instance-type": "b"}
            resource = specs.Resource(cpu=1, gpu=0, memMB=1, capabilities=capabilities)
            return specs.AppDef("job", [self.role(specs, resource=resource)]), {}

        expected, got = theirs(make), ours(make)
        assert templates(got)[0]["spec"]["nodeSelector"].pop("topology.kubernetes.io/zone") == "a"
        assert_equal(got, expected)

    @pytest.mark.parametrize("name", ["a-", "Ünder", "_x_", "a" * 62 + "-b"])
    def test_labels_that_the_server_refuses(self, theirs: Manifest, ours: Manifest, name: str) -> None:
        def make(specs: Any) -> Made:
            return specs.AppDef("job", [self.role(specs, name)]), {}

        values = [templates(job(make))[0]["metadata"]["labels"].pop(labels.ROLE_NAME) for job in (theirs, ours)]
        assert values[0][0] in "._" or values[0][-1] in "._-"
        assert values[1] == values[0].strip("._-")

    @pytest.mark.filterwarnings("ignore")
    def test_keys_of_an_overlay_where_nothing_was(self, theirs: Manifest, ours: Manifest) -> None:
        def make(specs: Any) -> Made:
            affinity = {"__put__:nodeAffinity": {"a": 1}}
            metadata = {"kubernetes": {"spec": {"affinity": affinity}}}
            return specs.AppDef("job", [self.role(specs, metadata=metadata)]), {}

        made = [templates(manifest(make))[0]["spec"].pop("affinity") for manifest in (theirs, ours)]
        assert made == [{}, {"nodeAffinity": {"a": 1}}]

    @pytest.mark.filterwarnings("ignore")
    def test_macros_in_an_overlay(self, theirs: Manifest, ours: Manifest) -> None:
        def make(specs: Any) -> Made:
            metadata = {"kubernetes": {"spec": {"hostname": "h-${replica_id}"}}}
            return specs.AppDef("job", [self.role(specs, num_replicas=2, metadata=metadata)]), {}

        expected, got = theirs(make), ours(make)
        assert [pod["spec"].pop("hostname") for pod in templates(expected)] == ["h-${replica_id}"] * 2
        assert [pod["spec"].pop("hostname") for pod in templates(got)] == ["h-0", "h-1"]
        assert_equal(got, expected)

    @pytest.mark.filterwarnings("ignore")
    def test_fields_that_the_package_does_not_know(self, theirs: Manifest, ours: Manifest) -> None:
        def make(specs: Any) -> Made:
            metadata = {"kubernetes": {"spec": {"fieldOfNextYear": {"a": 1}}}}
            return specs.AppDef("job", [self.role(specs, metadata=metadata)]), {}

        expected, got = theirs(make), ours(make)
        assert templates(got)[0]["spec"].pop("fieldOfNextYear") == {"a": 1}
        assert_equal(got, expected)


class TestServer:
    """A real server takes them all."""

    @pytest.mark.filterwarnings("ignore")
    def test_every_job_passes_its_dry_run(self, kubernetes_cluster: KubernetesCluster, ours: Manifest) -> None:
        server, path = ApiServer(), pods_path(kubernetes_cluster.namespace)
        accounts = path.replace("/pods", "/serviceaccounts")
        server.request("POST", accounts, body={"metadata": {"name": "account"}})
        refused = []
        for name, make in APPS.items():
            app, cfg = make(our_specs)
            opts = KubernetesOpts(queue="default", namespace=kubernetes_cluster.namespace, **cfg)
            try:
                request = make_request(app, "torchx", opts)
            except AppDefError:
                refused.append(name)
                continue
            validate(server, request.resource)
            first = templates(request.resource)[0]
            # Accounts and classes that are not there are another matter.
            spec = {key: value for key, value in first["spec"].items() if key != "serviceAccountName"}
            pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {**first["metadata"], "name": "x"}, "spec": spec}
            server.request("POST", path, params={"dryRun": "All"}, body=sanitize_for_serialization(pod))
        assert refused == ["a long name"]
        assert server.request("GET", path)["items"] == []

    @pytest.mark.parametrize("policy", list(RetryPolicy))
    def test_every_retry_policy(self, kubernetes_cluster: KubernetesCluster, policy: RetryPolicy) -> None:
        roles = [
            our_specs.Role(name, "i", entrypoint="e", max_retries=1, retry_policy=policy, num_replicas=2)
            for name in ("a", "b")
        ]
        opts = KubernetesOpts(queue="default", namespace=kubernetes_cluster.namespace)
        validate(ApiServer(), make_request(our_specs.AppDef("job", roles), "torchx", opts).resource)
