"""Command lines of the builtin components, made at random."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

NUMBERS = ["0", "1", "3"]
HOSTS = ["gpu.small", "aws_p4d.24xlarge", "GPU.SMALL", "cpu.nano", "no-such"]
PAIRS = ["A=1", "A=1,LOGLEVEL=INFO", "A='x,y'"]
MOUNTS = [
    "type=bind,src=/a,dst=/b,readonly",
    "type=volume,src=v,dst=/c",
    "type=device,src=/dev/x",
    "type=bind,src=/a",
    "size=1",
]
NAMES = ["n", "/", "exp/run", "exp/", "/run", "a/b/c", ""]
TOPOLOGIES = ["1x2", "2x4", "1:4x8", "2:1x2", "8", "2", "0x2", "2x", "x", "1x2x3", "４"]
HOST = {"cpu": NUMBERS, "gpu": NUMBERS, "memMB": [*NUMBERS, "4096"], "h": HOSTS}
IMAGE = {"image": ["img:1", ""]}
TORCHRUN: dict[str, list[str]] = {
    "script": ["train.py", "a/b.train.py", "", "dir/"], "m": ["a.b.main", "main", ""], **IMAGE, "name": NAMES,
    "h": HOSTS, "j": TOPOLOGIES, "env": PAIRS, "metadata": ["k=v", "k=v,k2=v2"], "max_retries": NUMBERS,
    "mounts": MOUNTS, "debug": ["true", "False"],
}  # fmt: skip
DIST = {
    **TORCHRUN, **HOST, "rdzv_port": ["1", "29501"], "rdzv_backend": ["static", "c10d", "a b"],
    "rdzv_conf": ["timeout=600", "a=1,b=2"], "tee": NUMBERS,
}  # fmt: skip
ARGUMENTS: dict[str, dict[str, list[str]]] = {
    "utils.echo": {"msg": ["hi", "a b", "$X"], **IMAGE, "num_replicas": NUMBERS},
    "utils.touch": {"file": ["/tmp/x", "a b"], **IMAGE},
    "utils.sh": {
        **IMAGE, "num_replicas": NUMBERS, **HOST, "env": PAIRS, "max_retries": NUMBERS, "mounts": MOUNTS,
        "entrypoint": ["bash", ""],
    },
    "utils.python": {
        "m": ["a.b", ""], "c": ["print(1)"], "script": ["s.py", ""], **IMAGE, "name": NAMES, **HOST,
        "num_replicas": NUMBERS, "mounts": MOUNTS,
    },
    "utils.binary": {"entrypoint": ["/bin/ls", ""], "name": NAMES, "num_replicas": NUMBERS, **HOST},
    "utils.copy": {"src": ["/a", "s3://b/c"], "dst": ["/d"], **IMAGE, "mounts": MOUNTS},
    "utils.booth": {"x1": ["1", "2.5"], "x2": ["-3"], "trial_idx": NUMBERS, "tracker_base": ["/t"], **IMAGE},
    "dist.torchrun": DIST, "dist.ddp": DIST, "dist.spmd": TORCHRUN,
}  # fmt: skip
NEEDED = {
    "utils.touch": ["file"],
    "utils.binary": ["entrypoint"],
    "utils.copy": ["src", "dst"],
    "utils.booth": ["x1", "x2"],
}
NEEDED |= {"dist.torchrun": ["script"], "dist.ddp": ["script"], "dist.spmd": ["m"], "utils.python": ["c"]}
TAKES_A_REST = ["utils.sh", "utils.python", "utils.binary", "dist.torchrun", "dist.ddp", "dist.spmd"]
RESTS = [[], ["ls", "-l"], ["--", "--flag", "a b"], ["echo", "$HOME", ";", "'q'", "é", ""]]


@st.composite
def calls(draw: Any) -> tuple[str, list[str]]:
    """Draw a component and a command line: what it needs nearly always, a few others, and the rest."""
    name = draw(st.sampled_from(sorted(ARGUMENTS)))
    chosen = draw(st.lists(st.sampled_from(sorted(ARGUMENTS[name])), max_size=4, unique=True))
    needed = [one for one in NEEDED.get(name, []) if one not in chosen and draw(st.integers(0, 9))]
    argv = [f"--{one}={draw(st.sampled_from(ARGUMENTS[name][one]))}" for one in [*needed, *chosen]]
    return name, [*argv, *(draw(st.sampled_from(RESTS)) if name in TAKES_A_REST else [])]
