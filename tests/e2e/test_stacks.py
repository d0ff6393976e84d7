"""From a key to where all ranks stand, by a terminal: on every backend, with and without what reads stacks."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
import sysconfig
import time
from importlib.util import find_spec
from pathlib import Path

import pytest
from actions import cancel_top, wait_top
from support.component_files import ComponentFile
from support.docker_registry import free_port
from support.kubernetes_cluster import in_namespace
from support.shell import shell
from support.terminal import COMMAND
from support.waiting import TORCH_PATIENCE

from torchx_tui.backends.shared.insight import HOOK

pytestmark = pytest.mark.slow

PROGRAMS = Path(sys.executable).parent
SETPRIV = shutil.which("setpriv")
PY_SPY = shutil.which("py-spy", path=f"{PROGRAMS}:{os.environ['PATH']}")
needs_pyspy = pytest.mark.skipif(PY_SPY is None, reason="needs py-spy: pip install py-spy")
needs_torch = pytest.mark.skipif(find_spec("torch") is None, reason="needs torch: pip install torch")

# Rank 1 does something else than the others.
PLAIN = """
import os, time

def waits_for_all():
    time.sleep(3600)

def reads_shard():
    time.sleep(3600)

print("begun", flush=True)
reads_shard() if os.environ["RANK"] == "1" else waits_for_all()
"""
# Rank 1 never comes to the second of the collectives.
HANG = """
import os, time
import torch, torch.distributed as dist
dist.init_process_group("gloo")
dist.all_reduce(torch.ones(4))
print("begun", flush=True)
if dist.get_rank() == 1:
    time.sleep(3600)
dist.all_reduce(torch.ones(4))
"""
COMPONENT = '''
def ranks() -> AppDef:
    """Run ranks, of which one is elsewhere.
    """
    env = {{"RANK": macros.replica_id, "WORLD_SIZE": "4", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "{port}"}}
    resource = Resource(cpu=1, gpu=0, memMB=1000)
    return AppDef("ranks", [Role(
        "trainer", {image!r}, entrypoint={python!r}, args={args!r}, num_replicas=4, env={{**env, **{env!r}}},
        mounts={mounts}, resource=resource,
    )])
'''
# Seconds after which stacks without the expected ranks are read again.
READ_AGAIN_S = 5.0
HEADER = "from torchx_tui.specs import AppDef, BindMount, Resource, Role, macros\n"


@pytest.fixture
def launch(tmp_path):
    """Give what launches four ranks from a shell; returns their handle."""
    launched = []

    def start(scheduler, *options, code=PLAIN, image="", python=sys.executable, env=None, mounts="[]", before=()):
        args = ["-c", code]
        if not image:
            (tmp_path / "train.py").write_text(code)
            python, *args = [*before, python, str(tmp_path / "train.py")]
        text = COMPONENT.format(
            image=image or str(tmp_path), python=python, args=args, env=env or {}, mounts=mounts, port=free_port()
        )
        file = ComponentFile(tmp_path / "jobs.py").write(text, HEADER)
        ended = shell("run", "-s", scheduler, *options, "--detach", file.name("ranks"), cwd=tmp_path)
        handle = ended.stdout.strip().splitlines()[-1] if ended.stdout.strip() else ""
        assert handle.startswith(f"{scheduler}://"), ended.stderr
        launched.append(handle)
        return handle

    yield start
    for handle in launched:
        shell("delete", handle)


def stacks(terminal, arguments=None, name="ranks", **environ):
    """Open the dashboard on a job that runs, and press the key; return the terminal."""
    app = terminal(arguments=arguments, environ={"PATH": f"{PROGRAMS}:{os.environ['PATH']}", **environ})
    # A cluster lists the jobs of other tests as well, the newest first.
    app.wait("STATE")
    app.press("/", name, "enter", wait=rf"Running +{name}\b")
    app.wait("begun", TORCH_PATIENCE)
    app.press("b", wait=r"groups?\b")
    return app


def wait_for_snapshot(app, *patterns: str) -> None:
    """Wait until a snapshot shows all of these; read again where ranks were not there yet, or answered too late."""
    asked = time.monotonic()

    def shows(text: str) -> bool:
        nonlocal asked
        if all(re.search(pattern, " ".join(text.split())) for pattern in patterns):
            return True
        is_taking = "reading again" in text or "Reading the stacks" in text
        if not is_taking and time.monotonic() - asked > READ_AGAIN_S:
            app.press("R")
            asked = time.monotonic()
        return False

    app.wait(shows, TORCH_PATIENCE)


def check_groups(app, way: str, sentence: str = "") -> None:
    """Check that rank 1 is named, with where it is, and how it was read."""
    wait_for_snapshot(app, sentence, f"{way}, 4 of 4 ranks", "1 rank 1 sleeps", "3 ranks 0, 2-3")
    app.press("escape", wait="STATE")


@needs_torch
def test_without_py_spy_the_worker_server_answers(terminal, launch, tmp_path):
    """Also where the user has a sitecustomize of their own."""
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "sitecustomize.py").write_text("import sys\nsys.mine = True\n")
    code = f"import sys; assert sys.mine\n{HANG}"
    launch("local_cwd", code=code, env={"PYTHONPATH": str(tmp_path / "mine")})
    bare = tmp_path / "bin"
    bare.mkdir()
    (bare / "python3").symlink_to(sys.executable)
    app = stacks(terminal, PATH=f"{bare}:/usr/bin:/bin")
    check_groups(app, "worker server", "rank 1 has not reached all_reduce #")


@needs_pyspy
@pytest.mark.skipif(os.geteuid() != 0 or not SETPRIV, reason="needs root and setpriv, to give rights up")
def test_without_the_right_to_trace(terminal, launch):
    """What the kernel refuses is said, with what would help; the job is left alone. One's own ranks need no right."""
    rightless = [SETPRIV, "--bounding-set=-all", "--inh-caps=-all"]
    launch("local_cwd", code=PLAIN.replace("import os, time", "import os, time\nos.setgid(65534)\nos.setuid(65534)"))
    app = stacks(terminal, [*rightless, COMMAND])
    words = "not read: rank 0 and 3 more, py-spy: not allowed: the process belongs to user 65534: run as that user"
    wait_for_snapshot(app, words)
    app.press("escape", wait=r"Running +ranks\b.* +local +4/4")
    cancel_top(app)
    launch("local_cwd", before=rightless)
    wait_top(app, "Running")
    app.press("g", wait="begun", patience=TORCH_PATIENCE)
    app.press("b")
    check_groups(app, "py-spy")


@needs_pyspy
def test_docker(terminal, launch, docker_engine):
    """With py-spy in the container, and without: then it says what to install."""
    mounts = f"[BindMount({PY_SPY!r}, '/usr/bin/py-spy', read_only=True)]"
    launch("local_docker", image="python:local", python="python3", mounts=mounts)
    app = stacks(terminal)
    check_groups(app, "py-spy")
    cancel_top(app)
    launch("local_docker", image="python:local", python="python3")
    wait_top(app, "Running")
    app.press("g", wait="begun", patience=TORCH_PATIENCE)
    app.press("b")
    wait_for_snapshot(app, "not read: rank 0 and 3 more, py-spy: not in the image")


@needs_torch
def test_docker_with_the_hook_mounted(terminal, launch, docker_engine):
    """As docs/hangs.md has it for images without py-spy: a mount and two variables of the user's own."""
    if sys.version_info[:2] != _version_of("/usr/bin/python3"):
        pytest.skip("python:local has another Python than torch here was made for")
    site = Path(sysconfig.get_path("platlib"))
    libraries = f"/usr/lib/{platform.machine()}-linux-gnu"
    mounts = {str(HOOK): "/hook", str(site): "/site", libraries: "/libraries"}
    texts = [f"BindMount({source!r}, {target!r}, read_only=True)" for source, target in mounts.items()]
    env = {"PYTHONPATH": "/hook:/site", "LD_LIBRARY_PATH": "/libraries", "TORCHX_TUI_INSIGHT": "/tmp"}
    env["MASTER_ADDR"] = "${app_id}-trainer-0"
    launch("local_docker", code=HANG, image="python:local", python="python3", mounts=f"[{', '.join(texts)}]", env=env)
    app = stacks(terminal)
    check_groups(app, "worker server", "rank 1 has not reached all_reduce #")


def _version_of(python):
    told = subprocess.run([python, "-c", "import sys; print(*sys.version_info[:2])"], capture_output=True, text=True)
    return tuple(map(int, told.stdout.split()))


@needs_pyspy
def test_kubernetes(terminal, launch, kubernetes_cluster, tmp_path):
    """By the exec protocol, in pods that have py-spy from their node."""
    path = in_namespace(kubernetes_cluster.kubeconfig, kubernetes_cluster.namespace, tmp_path / "kubeconfig")
    mounts = f"[BindMount({PY_SPY!r}, '/usr/bin/py-spy', read_only=True)]"
    options = ("-cfg", f"queue=default,namespace={kubernetes_cluster.namespace},reserved_millicpu=1000")
    launch("kubernetes", *options, image="python:local", python="python3", mounts=mounts)
    app = stacks(terminal, KUBECONFIG=path)
    check_groups(app, "py-spy")


@needs_torch
def test_slurm(terminal, launch, slurm_cluster):
    """By one step for each node."""
    launch("slurm", code=HANG)
    app = stacks(terminal)
    check_groups(app, "worker server", "rank 1 has not reached all_reduce #")
