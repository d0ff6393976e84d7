"""Jobs of Kubernetes that TorchX would create and ours: equal field by field, except where TorchX's are at fault."""

from typing import Any

import pytest
from interop.apps import KUBERNETES, made, pinned
from interop.oracle import theirs

import torchx_tui.specs as our_specs
from torchx_tui.backends.kube import overlay
from torchx_tui.backends.kube.api_server import ApiServer
from torchx_tui.backends.kube.objects import pods_path, sanitize_for_serialization
from torchx_tui.backends.kubernetes import labels
from torchx_tui.backends.kubernetes.lifecycle import validate
from torchx_tui.backends.kubernetes.request import KubernetesOpts, make_request
from torchx_tui.backends.kubernetes.volcano import manifest
from torchx_tui.backends.kubernetes.volcano.kind import VOLCANO
from torchx_tui.specs.errors import AppDefError
from torchx_tui.specs.roles import RetryPolicy

pytestmark = pytest.mark.filterwarnings("ignore")

MODULE = "torchx.schedulers.kubernetes_scheduler"


@pytest.fixture
def job(torchx, monkeypatch):
    """Return a function that makes the job of an app, with either package's specs."""
    module = theirs(MODULE)
    for one in (module, manifest):
        monkeypatch.setattr(one, "make_unique", pinned)

    def make(specs, app, cfg=None):
        app_def, own = made(specs, app) if isinstance(app, dict) else (app, {})
        arguments: dict[str, Any] = {"service_account": None, **own, **(cfg or {})}
        if specs is our_specs:
            return manifest.app_to_resource(app_def, "default", **arguments)
        return module.sanitize_for_serialization(module.app_to_resource(app_def, "default", **arguments))

    return make


def templates(job):
    return [task["template"] for task in job["spec"]["tasks"]]


def assert_equal(got, expected):
    """Compare two jobs part by part, without the label of the package's version."""
    for template in (*templates(got), *templates(expected)):
        template["metadata"]["labels"].pop(labels.VERSION, None)
    for mine, other in zip(got["spec"]["tasks"], expected["spec"]["tasks"], strict=True):
        assert mine == other
    assert got == expected


@pytest.mark.parametrize("name", KUBERNETES)
def test_jobs_are_equal(job, name):
    assert_equal(job(our_specs, KUBERNETES[name]), job(theirs(), KUBERNETES[name]))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("overlay.json", '{"V1Pod": {"spec": {"tolerations": [{"key": "$$x"}]}}}'),
        ("overlay.yaml", "spec:\n  volumes: !!python/tuple\n  - {name: dshm, emptyDir: {}}\n  hostNetwork: true\n"),
    ],
)
def test_overlays_in_files(job, tmp_path, name, text):
    path = tmp_path / name
    path.write_text(text)
    app = {"roles": [{"num_replicas": 2, "metadata": {"kubernetes": f"file://{path}"}}]}
    assert_equal(job(our_specs, app), job(theirs(), app))


def test_run_options_are_torchxs(torchx):
    def declared(options):
        return {name: (option.opt_type, option.default, option.help) for name, option in options}

    got = declared(KubernetesOpts.as_runopts())
    wanted = declared(theirs(MODULE).KubernetesScheduler("torchx")._run_opts())
    assert (got.pop("kind")[1], got.pop("context")[1]) == ("auto", None)
    # A Job needs no queue.
    assert got.pop("queue")[2].startswith(wanted.pop("queue")[2])
    assert got == {name: wanted[name] for name in got}
    assert len(got) == 7


def test_what_is_added_to_the_request(job):
    app, _ = made(theirs(), KUBERNETES["several roles"])
    scheduler = theirs(MODULE).create_scheduler("torchx")
    their = scheduler.submit_dryrun(app, {"queue": "q", "namespace": "team", "validate_spec": False}).request
    app, _ = made(our_specs, KUBERNETES["several roles"])
    got = make_request(app, "torchx", KubernetesOpts(queue="q", namespace="team"), VOLCANO)
    metadata = got.resource["metadata"]
    assert metadata.pop("namespace") == "team"
    assert {name.partition("/")[0] for name in metadata.pop("annotations")} == {"torchx-tui"}
    assert_equal(got.resource, theirs(MODULE).sanitize_for_serialization(their.resource))
    assert got.images_to_push == their.images_to_push


def test_an_overlay_that_torchx_sets_is_read(torchx):
    module = theirs("torchx.specs.overlays")
    role = theirs().Role(name="r", image="i")
    for spec in ({module.PUT("volumes"): [], "tolerations": [{"a": 1}]}, {"tolerations": [{"b": 2}]}):
        module.set_overlay(role, "kubernetes", "V1Pod", {"spec": spec})
    ours = our_specs.Role(name="r", image="i", metadata=role.metadata)
    expected = {overlay.PUT("volumes"): [], "tolerations": [{"a": 1}, {"b": 2}]}
    assert overlay.get_overlay(ours, "kubernetes", "V1Pod") == {"spec": expected}


# Where TorchX's job is at fault: an overlay's spec, the field that differs, and its values in the pods of two replicas.
MENDED = {
    "keys where nothing was": (
        {"affinity": {"__put__:nodeAffinity": {"a": 1}}}, "affinity", [{}] * 2, [{"nodeAffinity": {"a": 1}}] * 2,
    ),
    "macros": ({"hostname": "h-${replica_id}"}, "hostname", ["h-${replica_id}"] * 2, ["h-0", "h-1"]),
    "a field that the package does not know": ({"ofNextYear": {"a": 1}}, "ofNextYear", [None] * 2, [{"a": 1}] * 2),
}  # fmt: skip


@pytest.mark.parametrize("name", MENDED)
def test_an_overlay_is_mended_and_nothing_else(job, name):
    spec, field, *values = MENDED[name]
    app = {"roles": [{"num_replicas": 2, "metadata": {"kubernetes": {"spec": spec}}}]}
    jobs = [job(specs, app) for specs in (theirs(), our_specs)]
    assert [[pod["spec"].pop(field, None) for pod in templates(one)] for one in jobs] == values
    assert_equal(*jobs)


def test_nodes_are_chosen_by_any_label_and_nothing_else_differs(job):
    kept = {"node.kubernetes.io/instance-type": "b"}
    capabilities = {"topology.kubernetes.io/zone": "a", **kept}
    app = {"roles": [{"resource": {"cpu": 1, "gpu": 0, "capabilities": capabilities}}]}
    got = job(our_specs, app)
    assert templates(got)[0]["spec"]["nodeSelector"] == capabilities
    templates(got)[0]["spec"]["nodeSelector"] = kept
    assert_equal(got, job(theirs(), app))


@pytest.mark.parametrize("name", ["Ünder", "_x_", "a" * 62 + "-b"])
def test_labels_end_with_letters(job, name):
    app = {"roles": [{"name": name}]}
    their, our = (
        templates(job(specs, app))[0]["metadata"]["labels"][labels.ROLE_NAME] for specs in (theirs(), our_specs)
    )
    assert our == their.strip("._-") != their


class TestServer:
    """A real server accepts all of them."""

    def test_every_job_passes_its_dry_run(self, kubernetes_cluster):
        server, path = ApiServer(), pods_path(kubernetes_cluster.namespace)
        refused = []
        for name, app in KUBERNETES.items():
            app_def, cfg = made(our_specs, app)
            opts = KubernetesOpts(queue="default", namespace=kubernetes_cluster.namespace, **cfg)
            try:
                request = make_request(app_def, "torchx", opts, VOLCANO)
            except AppDefError:
                refused.append(name)
                continue
            # Accounts, claims and classes that are not there are another matter.
            dry = {"dryRun": "All"}
            server.request("POST", VOLCANO.path(opts.namespace), params=dry, body=request.resource)
            first = templates(request.resource)[0]
            spec = {key: value for key, value in first["spec"].items() if key != "serviceAccountName"}
            pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {**first["metadata"], "name": "x"}, "spec": spec}
            server.request("POST", path, params=dry, body=sanitize_for_serialization(pod))
        assert refused == ["a long name"]
        assert server.request("GET", path)["items"] == []

    @pytest.mark.parametrize("policy", list(RetryPolicy))
    def test_every_retry_policy(self, kubernetes_cluster, policy):
        roles = [
            our_specs.Role(name, "i", entrypoint="e", max_retries=1, retry_policy=policy, num_replicas=2)
            for name in ("a", "b")
        ]
        opts = KubernetesOpts(queue="default", namespace=kubernetes_cluster.namespace)
        validate(ApiServer(), VOLCANO, make_request(our_specs.AppDef("job", roles), "torchx", opts, VOLCANO).resource)
