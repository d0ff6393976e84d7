"""The roles of an app whose AppDef no label keeps, as its containers tell of them."""

import pytest

from torchx_tui.backends.docker import labels
from torchx_tui.backends.docker.app_def import roles_of
from torchx_tui.specs.mounts import BindMount, DeviceMount, VolumeMount

OF_IMAGE = frozenset({"PATH=/bin", "CUDA_VERSION=12"})


def container(number, command, env=None, image="sha256:a"):
    told = {labels.APP_ID: "job-x1", labels.ROLE_NAME: "worker", labels.REPLICA_ID: str(number)}
    launched = ["TORCHX_RANK0_HOST=job-x1-worker-0", "TORCHX_IMAGE=i", "PATH=/bin"]
    config = {"Labels": told, "Cmd": command, "Env": [*(env or []), *launched], "Image": "i"}
    return {"Image": image, "Config": config, "HostConfig": {}}


def rebuilt(*containers):
    notes = []
    (role,) = roles_of(containers, lambda image: OF_IMAGE if image == "sha256:a" else (), notes)
    return role, notes


def test_a_command_is_repeated_literally():
    command = ["run", "--id=job-x1", "$HOME", "${app_id}"]
    role, notes = rebuilt(*(container(k, command, ["SHARD=${replica_id}"]) for k in range(2)))
    assert (role.entrypoint, role.num_replicas, notes) == ("run", 2, [])
    assert role.args == ["--id=job-x1", "$HOME", "$${app_id}"]
    assert role.env == {"SHARD": "$${replica_id}"}


def test_retries_are_those_of_the_restart_policy():
    told = container(0, ["run"])
    assert rebuilt(told)[0].max_retries == 0
    told["HostConfig"] = {"RestartPolicy": {"Name": "on-failure", "MaximumRetryCount": 3}}
    assert rebuilt(told)[0].max_retries == 3


def test_what_the_image_brings_is_not_the_roles():
    role, _ = rebuilt(container(0, ["run"], ["CUDA_VERSION=12", "MINE=1"]))
    assert role.env == {"MINE": "1"}
    role, _ = rebuilt(container(0, ["run"], ["CUDA_VERSION=11"]))
    assert role.env == {"CUDA_VERSION": "11"}
    role, _ = rebuilt(container(0, ["run"], image="sha256:gone"))
    assert role.env == {"PATH": "/bin"}


@pytest.mark.parametrize("other", [(["run", "b"], []), (["run"], []), (["run", "a"], ["A=1"])])
def test_first_replica_counts_where_they_differ(other):
    role, notes = rebuilt(container(0, ["run", "a"]), container(1, *other))
    assert (role.args, role.env) == (["a"], {})
    assert notes == ["worker: commands or variables of its replicas differ: those of the first are used for all"]


def test_mounts_come_back_as_they_were_asked_for():
    asked = [
        {"Type": "bind", "Source": "/a", "Target": "/b", "ReadOnly": True},
        {"Type": "volume", "Source": "data", "Target": "/c"},
        # A volume without a name, and what no mount of a role makes.
        {"Type": "volume", "Target": "/d"},
        {"Type": "tmpfs", "Target": "/e"},
    ]
    devices = [{"PathOnHost": "/dev/a", "PathInContainer": "/dev/b", "CgroupPermissions": ""}]
    host = {"Mounts": asked, "Devices": devices}
    (role,) = roles_of([{"Config": {}, "HostConfig": host}], lambda _: (), [])
    assert role.mounts == [
        BindMount("/a", "/b", read_only=True),
        VolumeMount("data", "/c"),
        VolumeMount("", "/d"),
        DeviceMount("/dev/a", "/dev/b"),
    ]


def test_half_a_container_is_no_error():
    notes = []
    bare = {"Config": {}, "HostConfig": None}
    (role,) = roles_of([bare, {**bare, "Config": {"Labels": None, "Cmd": None, "Env": None}}], lambda _: (), notes)
    assert (role.name, role.image, role.entrypoint, role.args, role.env) == ("", "", "", [], {})
    assert (role.num_replicas, role.max_retries, role.mounts, notes) == (2, 0, [], [])
    (role,) = roles_of([{**bare, "Config": {"Cmd": ["x", "x"], "Env": ["A=x"]}}], lambda _: (), notes)
    assert (role.entrypoint, role.args, role.env) == ("x", ["x"], {"A": "x"})


def test_a_variable_without_a_value_is_an_empty_one():
    role, _ = rebuilt(container(0, ["run"], ["BARE", "EMPTY=", "SIGN=a=b"]))
    assert role.env == {"BARE": "", "EMPTY": "", "SIGN": "a=b"}
