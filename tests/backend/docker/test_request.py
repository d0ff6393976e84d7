"""The request: what is created, what is refused before anything is, and the text for people."""

import shlex
import subprocess
from typing import Any

import pytest
import yaml
from support.tables import tables

from torchx_tui import __version__
from torchx_tui.backends.docker import labels
from torchx_tui.backends.docker.app_def import read_app_def
from torchx_tui.backends.docker.preflight import image_names
from torchx_tui.backends.docker.scheduler import DockerScheduler
from torchx_tui.backends.docker_engine.client import Engine
from torchx_tui.backends.shared.secrets import MASK
from torchx_tui.base.files import user_name
from torchx_tui.specs.errors import AppDefError
from torchx_tui.specs.mounts import BindMount, DeviceMount, VolumeMount
from torchx_tui.specs.named_resources_aws import EFA_DEVICE, NEURON_DEVICE
from torchx_tui.specs.resources import Resource
from torchx_tui.specs.roles import AppDef, Role

table = tables(__file__)


def job(*roles, name="job", **cfg):
    return DockerScheduler("mine").submit_dryrun(AppDef(name, list(roles)), cfg).request


def role(name="worker", **changes):
    changes.setdefault("entrypoint", "sh")
    changes.setdefault("args", ["-c", "exit 0"])
    changes.setdefault("resource", Resource(cpu=1, gpu=0, memMB=64))
    return Role(name, "busybox:local", **changes)


def test_labels_tell_of_the_app_and_the_replica():
    made = job(role("a"), role("b", num_replicas=2))
    first, _, last = (one.kwargs["labels"] for one in made.containers)
    # Containers of earlier releases have these as well.
    assert last == {
        "torchx.pytorch.org/version": __version__,
        "torchx.pytorch.org/app-id": made.app_id,
        "torchx.pytorch.org/role-name": "b",
        "torchx.pytorch.org/replica-id": "1",
        "torchx-tui/app-name": "job",
        "torchx-tui/session": "mine",
        "torchx-tui/user": user_name(),
        "torchx-tui/replicas": "3",
        "torchx-tui/role-index": "1",
    }
    # Once an app: the engine sends labels with every list.
    assert first.keys() - last.keys() == {"torchx-tui/app-def"}


def kept_app_def(made, notes) -> Any:
    """Return the AppDef that the labels of a job's containers keep."""
    return read_app_def([{"Labels": one.kwargs["labels"]} for one in made.containers], notes)


def test_the_app_def_comes_back_from_its_label():
    mounts = [BindMount("/a", "/b", True), VolumeMount("v", "/c"), DeviceMount("/dev/fuse", "/dev/fuse")]
    fields = {"env": {"A": "${app_id}"}, "port_map": {"tb": 6006}, "max_retries": 2, "metadata": {"x": [1, "y"]}}
    app, notes = AppDef("job", [role(mounts=mounts, **fields)], metadata={"team": "z"}), []
    assert kept_app_def(DockerScheduler("mine").submit_dryrun(app, {}).request, notes) == app
    assert notes == []


def test_what_a_launch_adds_is_not_kept():
    kept = kept_app_def(job(role(env={"TORCHX_JOB_ID": "x", "A": "1"})), [])
    assert kept.roles[0].env == {"A": "1"}


def test_a_long_app_def_is_left_out_and_said_to_be():
    made, notes = job(role(env={"LONG": "x" * 40_000})), []
    assert labels.APP_DEF not in made.containers[0].kwargs["labels"]
    assert kept_app_def(made, notes) is None
    (note,) = notes
    assert "39 KB" in note
    assert "32 KB" in note


def test_a_damaged_app_def_costs_that_alone():
    notes = []
    assert read_app_def([{"Labels": {labels.APP_DEF: "{"}}], notes) is None
    assert "cannot be read" in notes[0]


def test_ports_are_published_at_free_ones_of_this_machine():
    made = job(role(port_map={"tb": 6006, "c10d": 29500}, num_replicas=2))
    for one in made.containers:
        assert one.kwargs["ports"] == {"6006/tcp": ("127.0.0.1", None), "29500/tcp": ("127.0.0.1", None)}
    assert "ports" not in job(role()).containers[0].kwargs
    assert job(role(port_map={"a": 1, "b": 65_535})).containers[0].kwargs["ports"].keys() == {"1/tcp", "65535/tcp"}


@table("refused", "name roles words")
def test_what_cannot_be_containers_is_refused(name, roles, words):
    with pytest.raises(AppDefError, match=words):
        job(*(role(**fields) for fields in roles), name=name)


def test_the_text_is_yaml_with_the_commands_and_no_secrets():
    secret = "do not show"
    made = job(role(env={"HF_TOKEN": secret, "A": "b"}, num_replicas=2), env={"DB_PASSWORD": secret})
    text = str(made)
    assert secret not in text
    data = yaml.safe_load(text)
    assert data["app_id"] == made.app_id
    assert data["containers"][0]["environment"]["HF_TOKEN"] == MASK
    lines = data["docker_run"].splitlines()
    assert len(lines) == 2
    assert all(line.startswith("docker run --detach --name") for line in lines)


def test_the_text_says_all_that_a_container_is_made_with():
    given = role(
        env={"A": "x y"},
        resource=Resource(cpu=2, gpu=1, memMB=64),
        max_retries=3,
        port_map={"tb": 6006},
        mounts=[BindMount("/a", "/b", True), VolumeMount("v", "/c"), DeviceMount("/dev/fuse", "/dev/fuse", "r")],
    )
    made = job(given, privileged=True, env={"B": "c"})
    (container,) = yaml.safe_load(str(made))["containers"]
    name = f"{made.app_id}-worker-0"
    assert container.pop("labels")["torchx-tui/app-def"].endswith(" bytes of JSON>")
    assert container == {
        "image": "busybox:local",
        "command": ["sh", "-c", "exit 0"],
        "name": name,
        "environment": {"A": "x y", "B": "c", "TORCHX_IMAGE": "busybox:local", "TORCHX_RANK0_HOST": name},
        "hostname": name,
        "privileged": True,
        "network": "torchx",
        "mounts": [
            {"Target": "/b", "Source": "/a", "Type": "bind", "ReadOnly": True},
            {"Target": "/c", "Source": "v", "Type": "volume", "ReadOnly": False},
        ],
        "devices": ["/dev/fuse:/dev/fuse:r"],
        "ports": {"6006/tcp": ["127.0.0.1", None]},
        "restart_policy": {"Name": "on-failure", "MaximumRetryCount": 3},
        "mem_limit": "64m",
        "shm_size": "64m",
        "nano_cpus": 2_000_000_000,
        "device_requests": [
            {"Driver": "", "Count": 1, "DeviceIDs": [], "Capabilities": [["compute", "utility"]], "Options": {}}
        ],
    }


def test_the_command_makes_the_same_container(docker_engine, tmp_path):
    made = job(
        role(
            args=["-c", "echo 'a  b' \"$A\"; sleep 1"],
            env={"A": "x y"},
            max_retries=3,
            port_map={"tb": 6006},
            mounts=[BindMount(str(tmp_path), "/b", True), DeviceMount("/dev/null", "/dev/nothing", "rw")],
        )
    )
    one = made.containers[0]
    (line,) = yaml.safe_load(str(made))["docker_run"].splitlines()
    api = Engine().client().api
    # Without the network, which another test may be making; the name is taken once.
    kwargs: Any = {**one.kwargs, "network": None, "name": f"{one.kwargs['name']}-sdk"}
    by_sdk: Any = Engine().client().containers.create(one.image, one.command, **kwargs).id
    arguments = shlex.split(line)
    arguments[1:3] = ["create"]
    arguments[0] = "/usr/bin/docker"
    place = arguments.index("--network")
    del arguments[place : place + 2]
    done = subprocess.run(arguments, capture_output=True, text=True, check=False)
    try:
        assert done.returncode == 0, done.stderr
        theirs, ours = api.inspect_container(done.stdout.strip().splitlines()[-1]), api.inspect_container(by_sdk)
        for name in ("Cmd", "Image", "Hostname", "Entrypoint"):
            assert theirs["Config"][name] == ours["Config"][name], name
        assert sorted(theirs["Config"]["Env"]) == sorted(ours["Config"]["Env"])
        for name in (
            "Memory",
            "ShmSize",
            "NanoCpus",
            "RestartPolicy",
            "PortBindings",
            "Devices",
            "Mounts",
            "Privileged",
        ):
            assert theirs["HostConfig"][name] == ours["HostConfig"][name], name
    finally:
        api.remove_container(by_sdk, force=True)
        api.remove_container(one.kwargs["name"], force=True)


def test_what_is_not_asked_for_is_not_limited():
    names = ("mem_limit", "shm_size", "nano_cpus", "device_requests")
    for resource, limits in (
        (Resource(cpu=-1, gpu=-1, memMB=-1), {}),
        (Resource(cpu=0, gpu=0, memMB=0), {"mem_limit": "0m", "shm_size": "0m", "nano_cpus": 0}),
    ):
        kwargs = job(role(resource=resource)).containers[0].kwargs
        assert {name: kwargs[name] for name in names if name in kwargs} == limits


def test_named_devices_are_files():
    devices = {EFA_DEVICE: 2, "odd": 1, NEURON_DEVICE: 1}
    kwargs = job(role(resource=Resource(1, 0, 64, devices=devices))).containers[0].kwargs
    files = ("/dev/infiniband/uverbs0", "/dev/infiniband/uverbs1", "/dev/neuron0")
    assert kwargs["devices"] == [f"{file}:{file}:rwm" for file in files]


def test_run_options_are_torchxs_and_pull():
    options = {name: option.default for name, option in DockerScheduler("mine").run_opts()}
    assert options.items() >= {"copy_env": None, "env": None, "privileged": False, "pull": True}.items()


@table("images", "asked here")
def test_what_an_image_can_be_asked_for_by(asked, here):
    image = {"Id": "sha256:ff", "RepoTags": ["busybox:1"], "RepoDigests": ["busybox@sha256:aa"]}
    assert (asked in image_names(image)) is here
    assert list(image_names({"Id": "sha256:ff", "RepoTags": None, "RepoDigests": None})) == ["sha256:ff"]
