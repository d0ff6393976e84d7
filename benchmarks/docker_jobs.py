"""Docker: the list of 200 containers, the end of 8 replicas that ignore SIGTERM, a container that floods its log.

Beside one raw ``/containers/json`` call, and beside TorchX's own scheduler where that is installed. Budget: the list
takes at most 1.5 times the raw call. The engine is the one of ``DOCKER_HOST``, else one of its own is started.
"""

from __future__ import annotations

import http.client
import importlib
import json
import os
import shlex
import socket
import statistics
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from benchmarks._budget import judged, percentile
from benchmarks._sizes import scaled
from torchx_tui.backends.docker import labels
from torchx_tui.backends.docker.networks import NETWORK, ensure_network
from torchx_tui.backends.docker.scheduler import DockerScheduler
from torchx_tui.backends.history.journal import Journal
from torchx_tui.backends.runner import Runner
from torchx_tui.logs.lines.background import LogFollower
from torchx_tui.logs.lines.merge import MergedLog
from torchx_tui.specs.resources import Resource
from torchx_tui.specs.roles import AppDef, Role
from torchx_tui.specs.status import is_terminal
from torchx_tui.tui.watch.poller import RowMaker

SERVICES = Path(__file__).parent.parent / "tests" / "services"
APPS, REPLICAS = scaled(50, 2), 4
STUBBORN = scaled(8, 1)
GRACE_SECONDS = float(scaled(10, 1))
LINES_PER_SECOND, FLOOD_SECONDS = scaled(50_000, 1000), scaled(10, 1)
ROUNDS = scaled(15, 1)
PATIENCE_SECONDS = 180.0
_SCRIPT = "trap '' TERM; while :; do sleep 1; done"
# Prints numbered lines with the time at which they were due, at a steady rate.
_FLOOD = """
import sys, time
rate, seconds = float(sys.argv[1]), float(sys.argv[2])
out, began, done = sys.stdout.buffer, time.time(), 0
while (now := time.time() - began) < seconds:
    due = int(now * rate)
    out.write(b"".join(b"%.6f step %d loss 1.6120 lr 1.71e-05\\n" % (began + n / rate, n) for n in range(done, due)))
    out.flush()
    done = due
    time.sleep(0.01)
out.write(b"%.6f last of %d\\n" % (time.time(), done))
"""

Row = tuple[str, str]


@contextmanager
def engine(folder: Path) -> Iterator[None]:
    """Set ``DOCKER_HOST`` to an engine."""
    if os.environ.get("DOCKER_HOST"):
        yield
        return
    settings = {
        **os.environ,
        "DOCKER_TEST_DIR": str(folder / "engine"),
        "DOCKER_TEST_BRIDGE": "txtuibench",
        "DOCKER_TEST_NET": "172.19",
    }
    try:
        told = subprocess.run(
            [SERVICES / "docker-up.sh"], check=True, capture_output=True, text=True, env=settings
        ).stdout
        os.environ["DOCKER_HOST"] = shlex.split(told)[-1].partition("=")[2]
        yield
    finally:
        os.environ.pop("DOCKER_HOST", None)
        subprocess.run([SERVICES / "docker-down.sh", "--purge"], check=True, capture_output=True, env=settings)


def app(name: str, script: str, replicas: int) -> AppDef:
    """Return an app of shells."""
    role = Role("worker", "busybox:local", entrypoint="sh", args=["-c", script], num_replicas=replicas)
    role.resource = Resource(cpu=1, gpu=0, memMB=64)
    return AppDef(name, [role])


def create(scheduler: DockerScheduler) -> list[str]:
    """Create the containers of many apps without starting them; return their ids."""
    ensure_network(scheduler._engine, NETWORK)
    client, ids = scheduler._engine.client(), []
    for _ in range(APPS):
        for container in scheduler.submit_dryrun(app("listed", "true", REPLICAS), {"pull": False}).request.containers:
            ids.append(str(client.containers.create(container.image, container.command, **container.kwargs).id))
    return ids


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: str) -> None:
        super().__init__("docker")
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.connect(self._path)


def raw_list() -> list[Any]:
    """Ask for the containers of TorchX's label, without any library of Docker's."""
    connection = _UnixConnection(urlsplit(os.environ["DOCKER_HOST"]).path)
    filters = quote(json.dumps({"label": [labels.APP_ID]}))
    connection.request("GET", f"/containers/json?all=1&filters={filters}")
    try:
        return json.loads(connection.getresponse().read())
    finally:
        connection.close()


def median_seconds(act: Callable[[], object], rounds: int = ROUNDS) -> float:
    """Return the median of several runs, after one that is not counted."""
    act()
    taken = []
    for _ in range(rounds):
        began = time.perf_counter()
        act()
        taken.append(time.perf_counter() - began)
    return statistics.median(taken)


def list_rows(scheduler: DockerScheduler, runner: Runner, theirs: Any) -> list[Row]:
    """Time the list of all apps."""
    ids = create(scheduler)
    try:
        maker = RowMaker()
        raw = median_seconds(raw_list)
        ours = median_seconds(scheduler.list)

        def poll() -> None:
            apps = runner.list("local_docker")
            maker.make(apps, runner.journal.find_all(app.app_handle for app in apps))

        polled = median_seconds(poll)
        rows = [
            (f"{len(ids)} containers, one raw /containers/json", f"{raw * 1000:.0f} ms"),
            (f"{len(ids)} containers, list", f"{ours * 1000:.0f} ms"),
            (f"{len(ids)} containers, list / raw call", judged(ours / raw, 1.5, "x", digits=2)),
            (f"{len(ids)} containers, poll with rows", f"{polled * 1000:.0f} ms"),
        ]
        if theirs is not None:
            seconds = median_seconds(theirs.list, 3)
            rows.append((f"{len(ids)} containers, TorchX's list", f"{seconds * 1000:.0f} ms, {seconds / raw:.0f}x"))
        return rows
    finally:
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda item: scheduler._engine.client().api.remove_container(item, force=True), ids))


def seconds_to_end(scheduler: DockerScheduler, cancel: Callable[[str], object]) -> tuple[float, float]:
    """Launch stubborn replicas and cancel them; return the seconds until the call is back, and until all have ended."""
    app_id = scheduler.submit(app("stubborn", _SCRIPT, STUBBORN), {"pull": False})
    began = time.perf_counter()
    cancel(app_id)
    back = time.perf_counter() - began
    while True:
        described = scheduler.describe(app_id)
        if described is None or is_terminal(described.state):
            break
        if time.perf_counter() - began > PATIENCE_SECONDS:
            raise TimeoutError("the replicas did not end")
        time.sleep(0.05)
    ended = time.perf_counter() - began
    scheduler.delete(app_id)
    return back, ended


def cancel_rows(scheduler: DockerScheduler, theirs: Any) -> list[Row]:
    """Time the end of replicas that ignore SIGTERM."""
    schedulers = [("ours", scheduler.cancel), *([("TorchX's", theirs.cancel)] if theirs is not None else [])]
    rows = []
    for name, cancel in schedulers:
        back, ended = seconds_to_end(scheduler, cancel)
        label = f"cancel of {STUBBORN} that ignore SIGTERM, {GRACE_SECONDS:.0f} s grace, {name}"
        rows.append((label, f"back after {back:.2f} s, all ended after {ended:.1f} s"))
    return rows


def flood_rows(scheduler: DockerScheduler, runner: Runner) -> list[Row]:
    """Follow a container that floods its log, as the log pane does, and see how late its lines are."""
    made = app("flood", "", 1)
    made.roles[0].image, made.roles[0].entrypoint = "python:local", "python3"
    made.roles[0].args = ["-c", _FLOOD, str(LINES_PER_SECOND), str(FLOOD_SECONDS)]
    app_id = scheduler.submit(made, {"pull": False})
    log = MergedLog([runner.job(f"local_docker://torchx/{app_id}").replica_log("worker", 0)])
    changed = threading.Event()
    follower = LogFollower(log, changed.set, lambda: True)
    follower.start()
    late: list[float] = []
    last = b""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while b"last of" not in last and time.monotonic() < deadline:
        changed.wait(0.1)
        changed.clear()
        follower.acknowledge()
        bounds = follower.log.bounds()
        if bounds.end > bounds.first:
            last = follower.log.lines(bounds.end - 1, 1)[0].data
            late.append(time.time() - float(last.split()[0]))
    lines, wanted = follower.log.bounds().end, int(last.split()[-1]) + 1
    follower.close()
    follower.join(10)
    scheduler.delete(app_id)
    label = f"{LINES_PER_SECOND:,} lines/s for {FLOOD_SECONDS} s"
    return [
        (f"{label}: read, of those written", f"{lines:,} of {wanted:,}"),
        (f"{label}: age of the last line, p50 / max", f"{percentile(late, 0.5):.2f} / {max(late):.2f} s"),
    ]


def run() -> list[Row]:
    """Return the rows of the report."""
    with tempfile.TemporaryDirectory(prefix="txd-bench-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        os.environ["XDG_CACHE_HOME"] = str(folder / "cache")
        try:
            with engine(folder):
                return _rows(folder)
        except (OSError, subprocess.CalledProcessError) as error:
            return [("no Docker engine can be had here", str(error))]


def _rows(folder: Path) -> list[Row]:
    scheduler = DockerScheduler("torchx", grace_seconds=GRACE_SECONDS)
    runner = Runner(journal=Journal(folder / "journal"))
    try:
        theirs: Any = importlib.import_module("torchx.schedulers.docker_scheduler").create_scheduler("torchx")
    except ImportError:
        theirs = None
    try:
        return [
            *list_rows(scheduler, runner, theirs),
            *cancel_rows(scheduler, theirs),
            *flood_rows(scheduler, runner),
        ]
    finally:
        runner.close()
        scheduler.close()
