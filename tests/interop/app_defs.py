"""AppDefs made at random as plain data, which either package's specs make into the same app."""

from hypothesis import strategies as st

WORDS = ["a", "--x=1", "a b", "", "é", "$HOME", "new\nline", "'\""]
MACROS = ["${app_id}", "$app_id-${replica_id}", "${img_root}/x", "${rank0_env}", "$$x", "${nothing}", "$", "${"]
VARIABLES = ["A", "B", "LOGLEVEL", "TORCHX_RANK0_HOST", "TORCHX_IMAGE", "CUDA_VISIBLE_DEVICES"]
MOUNTS = [
    ("BindMount", "/a", "/b", False), ("BindMount", "/c", "/d", True), ("VolumeMount", "models", "/models", False),
    ("VolumeMount", "v", "/w", True), ("DeviceMount", "/dev/fuse", "/dev/fuse", "rwm"),
    ("DeviceMount", "/dev/null", "/dev/x", "r"),
]  # fmt: skip
DEVICES = ["vpc.amazonaws.com/efa", "aws.amazon.com/neurondevice", "example.com/a"]

TEXTS = st.sampled_from([*WORDS, *MACROS])
RESOURCES = st.fixed_dictionaries(
    {"cpu": st.sampled_from([-1, 0, 1, 0.5, 7, 1.3337, 96]), "gpu": st.sampled_from([-1, 0, 0, 1, 2, 8])},
    optional={
        "memMB": st.sampled_from([-1, 0, 1, 1024, 1025, 1_048_576]),
        "devices": st.dictionaries(st.sampled_from(DEVICES), st.integers(0, 3), max_size=2),
        "capabilities": st.sampled_from([{"node.kubernetes.io/instance-type": "p4d"}, {"x": 1}]),
        "tags": st.just({"b": 2}),
    },
)
ROLE = {
    "image": st.sampled_from(["img:1", "busybox", "sha256:" + "a" * 64, "registry.example.com:5000/team/image:1.2"]),
    "args": st.lists(TEXTS, max_size=3),
    "env": st.dictionaries(st.sampled_from(VARIABLES), TEXTS, max_size=2),
    "num_replicas": st.sampled_from([1, 2, 3, 12]),
    "min_replicas": st.sampled_from([None, 1, 2, 5]),
    "max_retries": st.sampled_from([0, 1, 3]),
    "retry_policy": st.sampled_from(["APPLICATION", "REPLICA"]),
    "resource": RESOURCES,
    "port_map": st.dictionaries(st.sampled_from(["c10d", "http"]), st.sampled_from([80, 29500]), max_size=2),
    "metadata": st.dictionaries(st.sampled_from("ab"), TEXTS | st.lists(TEXTS, max_size=2), max_size=1),
    "mounts": st.lists(st.sampled_from(MOUNTS), max_size=3, unique=True),
}


def apps(app_names, role_names, entrypoints, **more):
    """Return apps of one to three roles.

    Args:
        app_names: The names that an app may have.
        role_names: Those of roles.
        entrypoints: What roles may run.
        more: Strategies for further fields of roles, or other ones for the usual fields.
    """
    needed = {"name": st.sampled_from(role_names), "entrypoint": st.sampled_from(entrypoints)}
    role = st.fixed_dictionaries(needed, optional={**ROLE, **more})
    roles = st.lists(role, min_size=1, max_size=3, unique_by=lambda made: str(made["name"]))
    return st.fixed_dictionaries(
        {"name": st.sampled_from(app_names), "roles": roles}, optional={"metadata": st.just({"team": "x"})}
    )


def one_app(*names, app="job", **role):
    """Return an app of roles of these names, which are else alike."""
    return {"name": app, "roles": [{"name": name, "entrypoint": "e", **role} for name in names or ("r",)]}
