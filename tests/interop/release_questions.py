"""What a release of TorchX is asked, made at random: the arguments of the operations of releases.py."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from interop.app_defs import DEVICES, TEXTS, apps
from interop.builtin_calls import calls

KINDS = {"s": "str", "log_dir": "str", "i": "int", "f": "float", "b": "bool", "t": "list", "d": "dict"}
DECLARED: list[list[Any]] = [[name, kind, None, False] for name, kind in KINDS.items()]
MORE: list[list[Any]] = [
    ["need", "str", None, True], ["n", "int", 3, False], ["w", "list", ["a"], False], ["e", "dict", {"A": "1"}, False],
    ["y", "bool", True, False], ["z", "int", "wrong", False],
]  # fmt: skip
OPTIONS = st.lists(st.sampled_from([*DECLARED, *MORE]), max_size=4, unique_by=lambda one: str(one[0]))
VALUES = st.sampled_from([None, True, 1, 0.5, "x", ["a"], [1], {"k": "v"}, {"k": 1}])
CFGS = st.dictionaries(st.sampled_from([*KINDS, "logDir", "unknown", "need"]), VALUES, max_size=3)
WORDS = ["a", "1", "2.5", "true", "NO", "yes", "x:1,y:2", "a;b", "a,b", "'q,r'", "", "-3", "é", " x "]
PAIRS = st.builds("{}={}".format, st.sampled_from([*KINDS, "logDir", "unknown", ""]), st.sampled_from(WORDS))
TEXT = st.builds(lambda mark, pairs: mark.join(pairs), st.sampled_from(",;"), st.lists(PAIRS, max_size=4))
MACROS = st.fixed_dictionaries(
    {
        "img_root": st.sampled_from(["", "/i"]),
        "app_id": st.just("id"),
        "replica_id": st.just("3"),
        "rank0_env": st.sampled_from(["", "HOST"]),
    },
    optional={"base_img_root": st.just("/b")},
)
ROLE = st.fixed_dictionaries(
    {"name": st.just("r"), "args": st.lists(TEXTS | st.just("${base_img_root}"), max_size=3)},
    optional={
        "env": st.dictionaries(st.sampled_from(["A", "${app_id}"]), TEXTS, max_size=2),
        "metadata": st.dictionaries(
            st.sampled_from(["a", "$app_id"]),
            TEXTS | st.lists(TEXTS, max_size=2) | st.just({"x": {"y": "${app_id}"}}),
            max_size=2,
        ),
    },
)
MOUNT_OPTIONS = [
    "type=bind", "type=volume", "type=device", "type=nfs", "src=/a", "source=v", "dst=/b", "target=/c",
    "destination=/d", "readonly", "read_only", "readonly=false", "perm=r", "perm=x", "size=1", "src=",
]  # fmt: skip
MOUNTS = st.one_of(
    st.lists(st.sampled_from(MOUNT_OPTIONS), max_size=5),
    st.builds(lambda kind, more: [kind, "src=/a", "dst=/b", *more], st.sampled_from(MOUNT_OPTIONS[:3]),
              st.lists(st.sampled_from(MOUNT_OPTIONS), max_size=2)),
)  # fmt: skip
LETTERS = st.text(st.sampled_from("ab:/.@-_ é"), max_size=8)
RESOURCES = st.fixed_dictionaries(
    {},
    optional={
        "cpu": st.sampled_from([0, 1, 4]), "gpu": st.sampled_from([0, 2]), "memMB": st.sampled_from([0, 512]),
        "h": st.sampled_from(["gpu.small", "GPU.small", "aws_t3.medium", "cpu.nano", "none_such", ""]),
    },
)  # fmt: skip
NAMED = st.sampled_from([
    "gpu.small", "gpu.medium", "gpu.large", "gpu.xlarge", "cpu.nano", "cpu.micro", "cpu.small", "cpu.medium",
    "cpu.large", "cpu.xlarge", "aws_t3.medium", "aws_p3.2xlarge", "aws_p4d.24xlarge", "aws_p4de.24xlarge",
    "aws_g5.48xlarge", "aws_trn1.2xlarge", "aws_trn1.32xlarge", "aws_p5.48xlarge", "aws_p5e.48xlarge",
    "aws_p5en.48xlarge", "aws_g6e.xlarge", "aws_inf2.48xlarge", "aws_g4dn.metal", "NULL", "MISSING", "CPU.small",
    "Aws_T3.Medium", "none", "",
])  # fmt: skip
ERRORS = st.sampled_from([
    "<NONE>", "plain", '{"message": "flat", "errorCode": 3, "timestamp": 1}', "{", "",
    '{"message": {"message": "m", "errorCode": 1, "extraInfo": {"timestamp": 12}}}',
    '{"message": {"message": "long ' + "word " * 30 + '"}}',
])  # fmt: skip
STATUSES = st.fixed_dictionaries({
    "state": st.integers(0, 7), "num_restarts": st.integers(-1, 3), "msg": st.sampled_from(["", "said", "<NONE>"]),
    "structured_error_msg": ERRORS, "ui_url": st.sampled_from([None, "http://x"]),
    "roles": st.lists(
        st.tuples(st.sampled_from(["trainer", "ps"]), st.lists(st.tuples(st.integers(0, 7), ERRORS), max_size=2)),
        max_size=2,
    ),
})  # fmt: skip
FEW = {
    "num_replicas": st.sampled_from([1, 1, 2]),
    "resource": st.fixed_dictionaries(
        {"cpu": st.sampled_from([-1, 0, 0.5, 7]), "gpu": st.sampled_from([0, 2])},
        optional={"devices": st.dictionaries(st.sampled_from(DEVICES), st.integers(0, 2), max_size=2)},
    ),
}
NAMES = ["trainer", "ps", "R_x"]
DOCKER = st.tuples(
    apps(["job", "My_Job.v1"], NAMES, ["sh"], FEW),
    st.fixed_dictionaries({}, optional={"privileged": st.booleans(), "env": st.just({"A": "cfg"})}),
)
KUBERNETES = st.tuples(
    apps(["job", "My_Job"], NAMES, ["sh"], FEW),
    st.fixed_dictionaries(
        {"service_account": st.sampled_from([None, "a"])}, optional={"priority_class": st.just("high")}
    ),
)
# Of each operation: what it is asked, and how many cases.
STRATEGIES: dict[str, tuple[st.SearchStrategy[Any], int]] = {
    "resolve": (st.tuples(OPTIONS, CFGS), 500),
    "read": (st.tuples(st.just(DECLARED), TEXT), 500),
    "help": (st.tuples(OPTIONS), 200),
    "macros": (st.tuples(MACROS, ROLE), 400),
    "mounts": (st.tuples(MOUNTS), 500),
    "handle": (st.tuples(st.one_of(LETTERS, st.builds("{}://{}/{}".format, LETTERS, LETTERS, LETTERS))), 500),
    "resource": (st.tuples(RESOURCES), 200),
    "named": (st.tuples(NAMED), 60),
    "status": (st.tuples(STATUSES), 300),
    "docker": (DOCKER, 250),
    "kubernetes": (KUBERNETES, 250),
    "component": (calls(), 250),
}
