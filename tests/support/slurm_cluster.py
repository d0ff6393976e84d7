"""Slurm clusters for tests: one that all share, and one that a test module has for itself, to stop and to fill."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .services import HOW, NoServiceError, free_slot, run_script
from .waiting import wait_until

# Read before any test changes the environment.
_GIVEN = os.environ.get("SLURM_CONF", "")
_RELEASE = os.environ.get("SLURM_RELEASE", "22.05")
_NAME = "torchx-tui-slurm" if _RELEASE == "22.05" else f"torchx-tui-slurm-{_RELEASE}"
_FOLDER = Path(os.environ.get("SLURM_TEST_DIR") or Path(tempfile.gettempdir(), _NAME))
_PROGRAMS = "/usr/sbin:/usr/bin"
if _RELEASE != "22.05":
    # slurm-packages.sh unpacks a newer release. Its commands come before those that are installed.
    _PROGRAMS = f"{os.environ.get('SLURM_TEST_CACHE') or '/var/cache/torchx-tui-tests/slurm'}/{_RELEASE}/bin"
    os.environ["PATH"] = f"{_PROGRAMS}{os.pathsep}{os.environ['PATH']}"


def shared_slurm() -> str:
    """Return the path of the settings of the cluster that was given, else of the one that runs for tests.

    Raises:
        NoServiceError: none runs.
    """
    if not _GIVEN and not (_FOLDER / "run" / "slurmctld.pid").exists():
        raise NoServiceError(f"{HOW.format('a cluster')}, or set SLURM_CONF to that of one that runs")
    return _GIVEN or str(_FOLDER / "etc" / "slurm.conf")


HAS_MEMORY_LIMITS = Path("/sys/fs/cgroup/memory/memory.limit_in_bytes").exists()
"""Whether Slurm can enforce memory limits here: its version of the tests does so without systemd by cgroup v1 only."""
# Each cluster of a test's own takes one: 20 ports.
_SLOTS = range(8)


def _ports(slot: int) -> range:
    first = 27300 + 20 * slot
    return range(first, first + 20)


class OwnSlurm:
    """A cluster that a test fills, drains and stops as it likes.

    Args:
        folder: where its state is kept.
        slot: which of the ports are its own.
        settings: further lines of slurm.conf.
        gpus: of each node, such as ``gpu:a100:2``; they are counted only.
    """

    def __init__(self, folder: Path, slot: int, settings: str, gpus: str = "") -> None:
        self._folder = folder
        self._environ = {
            "SLURM_TEST_DIR": str(folder),
            "SLURM_TEST_PORT": str(_ports(slot).start),
            "SLURM_TEST_SETTINGS": settings,
            "SLURM_TEST_GPUS": gpus,
        }
        self.settings = str(folder / "etc" / "slurm.conf")

    def start(self) -> None:
        """Start what of it does not run."""
        run_script("slurm-up.sh", self._environ)

    def stop(self, program: str) -> None:
        """End a program of it, such as slurmctld, slurmdbd or slurmd-n3, and wait for its end.

        It is told to end: a controller that is killed forgets what it did last, and starts jobs anew.
        """
        pid = int((self._folder / "run" / f"{program}.pid").read_text())
        os.kill(pid, signal.SIGTERM)
        wait_until(lambda: not Path(f"/proc/{pid}/exe").exists(), f"the end of {program}")

    def purge(self) -> None:
        """Stop it and remove everything of it."""
        run_script("slurm-down.sh", self._environ, "--purge")

    def run(self, *command: str, **more: str) -> str:
        """Run one of Slurm's commands there; return what it prints.

        Args:
            command: the command.
            more: further variables of its environment.
        """
        env = {**os.environ, "SLURM_CONF": self.settings, **more}
        ended = subprocess.run(command, env=env, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
        assert ended.returncode == 0, f"{command}: {ended.stderr}"
        return ended.stdout.strip()


@contextmanager
def private_slurm(settings: str = "", gpus: str = "") -> Iterator[OwnSlurm]:
    """Give a cluster of one's own, started; it is removed afterwards.

    Raises:
        NoServiceError: none can be started.
    """
    if os.geteuid() != 0 or shutil.which("slurmctld", path=_PROGRAMS) is None:
        raise NoServiceError(HOW.format("a cluster"))
    with free_slot(str(Path(tempfile.gettempdir(), "torchx-tui-slurm-own")), _SLOTS, _ports) as slot:
        # A socket's path has at most 107 characters: none of pytest's long folders.
        folder = Path(tempfile.mkdtemp(prefix="txs-"))
        # Other users ask it, too.
        folder.chmod(0o755)
        cluster = OwnSlurm(folder, slot, settings, gpus)
        try:
            cluster.start()
            yield cluster
        finally:
            cluster.purge()
