"""What Docker and Kubernetes are asked for compared with TorchX's requests, for apps made at random."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from interop.app_defs import ROLE, apps, one_app
from interop.apps import DOCKER, made, pinned
from interop.oracle import Refused, cases, check_example, compare, each_difference, theirs
from interop.plain_data import built

import torchx_tui.specs as our_specs
from torchx_tui.backends.docker import labels as docker_labels
from torchx_tui.backends.docker import scheduler as docker_scheduler
from torchx_tui.backends.history.journal import Journal
from torchx_tui.backends.kubernetes import labels as kubernetes_labels
from torchx_tui.backends.kubernetes.volcano import manifest
from torchx_tui.backends.runner import Runner

pytestmark = [pytest.mark.usefixtures("torchx"), pytest.mark.filterwarnings("ignore")]

ADDED_LABELS = {
    docker_labels.APP_DEF, docker_labels.APP_NAME, docker_labels.SESSION, docker_labels.USER, docker_labels.REPLICAS,
    docker_labels.ROLE_INDEX,
}  # fmt: skip
APP_NAMES = ["job", "My_Job.v1", "n" * 40, "x_________________"]
ROLE_NAMES = ["trainer", "ps", "r-1", "R_x", "Lead_er.1", "r" * 45, "r" * 35 + "x"]
ENTRYPOINTS = ["sh", "/bin/sh", "bin/${replica_id}"]
ANY_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
DOCKER_CFGS = st.fixed_dictionaries(
    {},
    optional={
        "privileged": st.booleans(), "env": st.sampled_from([{}, {"A": "cfg", "C": "cfg"}]),
        "copy_env": st.sampled_from([["COPIED_*"], ["COPIED_A", "NO_SUCH"], []]),
    },
)  # fmt: skip
KUBERNETES_APPS = apps(
    APP_NAMES[:3],
    ROLE_NAMES[:5],
    ENTRYPOINTS,
    num_replicas=st.sampled_from([1, 1, 2, 3]),
    image=ANY_TEXT,
    args=ROLE["args"] | st.lists(ANY_TEXT, max_size=3),
    env=ROLE["env"] | st.dictionaries(ANY_TEXT, ANY_TEXT | st.just("[FIELD_PATH]status.podIP"), max_size=3),
    port_map=st.dictionaries(ANY_TEXT, st.integers(1, 65535), max_size=2),
    mounts=ROLE["mounts"]
    | st.lists(st.tuples(st.sampled_from(["BindMount", "VolumeMount"]), ANY_TEXT, ANY_TEXT, st.booleans()), max_size=3),
)
KUBERNETES_CFGS = st.fixed_dictionaries(
    {"service_account": st.sampled_from([None, "", "account"])},
    optional={
        "priority_class": st.sampled_from([None, "high"]),
        "reserved_millicpu": st.integers(0, 3000) | st.just(9000), "reserved_memmb": st.sampled_from([0, 1024, 3000]),
        "efa_device_count": st.sampled_from([None, 0, 1, 32]),
    },
)  # fmt: skip


@pytest.fixture
def containers(monkeypatch):
    """Return a function that makes the containers of an AppDef; `only_common` leaves out what only ours have."""
    module = theirs("torchx.schedulers.docker_scheduler")
    for one in (module, docker_scheduler):
        monkeypatch.setattr(one, "make_unique", pinned)
    for name in ("COPIED_A", "COPIED_B", "COPIED_C"):
        monkeypatch.setenv(name, "from here")
    schedulers = {
        theirs(): module.create_scheduler("torchx"),
        our_specs: docker_scheduler.DockerScheduler("torchx"),
    }

    def request(specs, app, cfg, only_common=True):
        job = schedulers[specs].submit_dryrun(app, cfg).request
        found = []
        for one in job.containers:
            kwargs = {**one.kwargs, "environment": dict(sorted(one.kwargs["environment"].items()))}
            left_out = {docker_labels.VERSION, *(ADDED_LABELS if only_common else ())}
            kwargs["labels"] = {name: text for name, text in kwargs["labels"].items() if name not in left_out}
            if only_common:
                kwargs.pop("ports", None)
            found.append({"image": one.image, "command": one.command, **dict(sorted(kwargs.items()))})
        return [job.app_id, *found]

    return request


@pytest.mark.parametrize("name", DOCKER)
def test_containers_are_equal(containers, name):
    compare("docker requests", lambda specs: containers(specs, *made(specs, DOCKER[name])), case=name)


@given(apps(APP_NAMES, ROLE_NAMES, ENTRYPOINTS), DOCKER_CFGS)
@cases(1000)
def test_docker(containers, app, cfg):
    def explain(their, our):
        if isinstance(our, Refused):
            short = [role["name"][:30] for role in app["roles"]]
            return "roles of one name" if len(set(short)) < len(short) else None
        return last_undone(undoing_docker(their, our), their, our)

    compare("docker requests", lambda specs: containers(specs, built(specs, app), cfg), explain, (app, cfg))


def last_undone(undoing, their, our):
    """Return the last difference that had to be undone for both to be equal."""
    return next((name for name in undoing if repr(their) == repr(our)), None)


def undoing_docker(their, our):
    """Undo in TorchX's containers each known difference, and name it."""
    pairs = list(zip(their[1:], our[1:], strict=True))
    for one, _ in pairs:
        one["command"][0] = one["command"][0].replace("${replica_id}", one["labels"][docker_labels.REPLICA_ID])
    yield "macros in the entrypoint"
    for one, _ in pairs:
        one["environment"]["TORCHX_RANK0_HOST"] = their[1]["name"]
    yield "the first host"
    for one, other in pairs:
        if len(one["hostname"]) > 63 >= len(other["hostname"]):
            one["hostname"] = other["hostname"]
    yield "long host names"


@each_difference("docker requests")
def test_each_difference_of_docker_is_there(containers, difference):
    def names(specs):
        return {
            "container": lambda *names, **fields: containers(
                specs, built(specs, one_app(*names, **fields)), {}, only_common=False
            )[-1]
        }

    check_example(difference, names)


def test_host_names_stay_apart_where_they_are_shortened(containers):
    app = one_app("r" * 40, app="n" * 40, num_replicas=101)
    names, others = (
        [(one["name"], one["hostname"]) for one in containers(specs, built(specs, app), {})[1:]]
        for specs in (our_specs, theirs())
    )
    assert [name for name, _ in names] == [name for name, _ in others]
    assert len({host for _, host in names}) == 101


def test_the_handle_in_the_environment_is_torchxs(tmp_path):
    environments = []
    for specs, runner in (
        (theirs(), theirs("torchx.runner").get_runner()),
        (our_specs, Runner(journal=Journal(tmp_path))),
    ):
        app, cfg = made(specs, DOCKER["plain"])
        (container,) = runner.dryrun(app, "local_docker", cfg).request.containers
        app_id = container.kwargs["labels"][docker_labels.APP_ID]
        environment = container.kwargs["environment"]
        assert environment["TORCHX_JOB_ID"] == f"local_docker://torchx/{app_id}"
        environments.append(environment.keys())
    assert environments[0] == environments[1]


@pytest.fixture
def job(monkeypatch):
    """Return a function that makes the job of an app, less the label of the package's version."""
    module = theirs("torchx.schedulers.kubernetes_scheduler")
    for one in (module, manifest):
        monkeypatch.setattr(one, "make_unique", pinned)

    def request(specs, app, cfg):
        if specs is our_specs:
            return in_order(manifest.app_to_resource(built(specs, app), "default", **cfg))
        return in_order(module.sanitize_for_serialization(module.app_to_resource(built(specs, app), "default", **cfg)))

    return request


def in_order(value):
    """Return plain data with the keys of mappings in one order, less the label of the package's version."""
    if isinstance(value, dict):
        return {key: in_order(value[key]) for key in sorted(value) if key != kubernetes_labels.VERSION}
    return [in_order(item) for item in value] if isinstance(value, list) else value


def pods(job):
    return [task["template"] for task in job["spec"]["tasks"]]


@given(KUBERNETES_APPS, KUBERNETES_CFGS)
@cases(1000)
def test_kubernetes(job, app, cfg):
    def explain(their, our):
        if isinstance(their, Refused) or isinstance(our, Refused):
            return None
        return last_undone(undoing_kubernetes(their), their, our)

    compare("kubernetes manifests", lambda specs: job(specs, app, cfg), explain, (app, cfg))


def undoing_kubernetes(their):
    """Undo in TorchX's job each known difference, and name it."""
    for pod in pods(their):
        command = pod["spec"]["containers"][0]["command"]
        command[0] = command[0].replace("${replica_id}", pod["metadata"]["labels"][kubernetes_labels.REPLICA_ID])
    yield "macros in the entrypoint"
    for pod in pods(their):
        container = pod["spec"]["containers"][0]
        container["command"] = [text.replace("VC_R-1_0", "VC_R_1_0") for text in container["command"]]
        for variable in container["env"]:
            if "value" in variable:
                variable["value"] = variable["value"].replace("VC_R-1_0", "VC_R_1_0")
    yield "the first host"
    for pod in pods(their):
        texts = pod["metadata"]["labels"]
        texts.update({name: text.strip("._-") for name, text in texts.items()})
    yield "ends of labels"


@each_difference("kubernetes manifests")
def test_each_difference_of_kubernetes_is_there(job, difference):
    def names(specs):
        def pod(*names, **fields):
            return pods(job(specs, one_app(*names, **fields), {"service_account": None}))[-1]

        return {"pod": pod}

    check_example(difference, names)
