"""Which tests of a room run which lines of it, and how long they take; kept until a file changes."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Collection, Iterable
from pathlib import Path

import coverage
import pytest
from hypothesis import HealthCheck, Phase, settings

from . import sandbox

ROOT = Path(__file__).parent.parent.parent
KEPT = ROOT / ".venv" / "mutants"
_LIMIT = 1800.0
_SUBPROCESS = "import coverage; coverage.process_startup()"
_SETTINGS = """[run]
data_file = {data}
parallel = true
sigterm = true
patch = _exit
source = {sources}
context = ${{PYTEST_CURRENT_TEST-}}
"""


class Recording:
    """What is known of a room's tests.

    Attributes:
        seconds: of each test.
        failed: tests that fail without any change, here.
        modules: what they import that is not ours, in order.
    """

    def __init__(self, parts: Iterable[dict]) -> None:
        self.seconds: dict[str, float] = {}
        self.failed: list[str] = []
        self.modules: list[str] = []
        self._lines: dict[str, dict[int, set[str]]] = {}
        for part in parts:
            self.seconds |= part["seconds"]
            self.failed += part["failed"]
            self.modules += [name for name in part["modules"] if name not in self.modules]
            for test, files in part["lines"].items():
                for file, lines in files.items():
                    for line in lines:
                        self._lines.setdefault(file, {}).setdefault(line, set()).add(test)

    def reaching(self, file: str, lines: Collection[int] | None = None) -> set[str]:
        """Return the tests that run any of these lines, by default any line of a file's functions."""
        by_line = self._lines.get(file, {})
        found = set().union(*(by_line.get(line, ()) for line in (by_line if lines is None else lines)))
        # A test file's shared fixtures run before its first test, for all of them.
        shared = {test for test in found if test.endswith("::*")}
        found |= {test for test in self.seconds for one in shared if test.startswith(one[:-1])}
        return found & self.seconds.keys()


def recorded(sources: list[Path], tests: list[Path], own: Path) -> Recording:
    """Return the recording of a room, made anew for test files that have changed."""
    common = [
        *ROOT.glob("*/*.py"),
        *ROOT.glob("backends/*/*.py"),
        *ROOT.glob("logs/*/*.py"),
        *ROOT.glob("tui/*/*.py"),
        *ROOT.glob("tests/**/*.py"),
    ]
    common = sorted(path for path in set(common) if not path.name.startswith("test_") and path.parent.name != "mutants")
    base = _digest([Path(__file__), *common, *sources])
    KEPT.mkdir(parents=True, exist_ok=True)
    places = {path: KEPT / f"{_digest([path], base)}.json" for path in tests}
    if missing := [path for path, place in places.items() if not place.exists()]:
        _record(sources, {path: places[path] for path in missing}, own)
    return Recording(json.loads(place.read_text()) for place in places.values() if place.exists())


def _digest(files: Iterable[Path], start: str = "") -> str:
    found = hashlib.sha256(start.encode())
    for path in files:
        found.update(str(path).encode() + path.read_bytes())
    return found.hexdigest()[:20]


def _record(sources: list[Path], places: dict[Path, Path], own: Path) -> None:
    began, data = time.monotonic(), Path(tempfile.mkdtemp(dir=KEPT))
    report = KEPT / "record.log"
    print(f"Recording {len(places)} test files; their output is in {report.relative_to(ROOT)}", flush=True)

    def work() -> int:
        settings, follow = own / "coverage.ini", own / "follow"
        text = _SETTINGS.format(data=data / "lines", sources=",".join(sorted({str(path.parent) for path in sources})))
        settings.write_text(text)
        follow.mkdir()
        (follow / "sitecustomize.py").write_text(_SUBPROCESS)
        os.environ.update(COVERAGE_PROCESS_START=str(settings), PYTHONPATH=str(follow), COVERAGE_CORE="ctrace")
        watch = coverage.Coverage(config_file=str(settings), data_suffix=True)
        watch.start()
        watcher = _Watcher(watch)
        run_pytest(own, [str(path) for path in places], watcher, report)
        watch.stop()
        watch.save()
        (data / "run.json").write_text(json.dumps([watcher.seconds, watcher.failed, _foreign_modules()]))
        return 0

    os.waitpid(sandbox.start(work, own, limit=_LIMIT, writable=[KEPT]), 0)
    if not (data / "run.json").exists():
        sys.exit(f"The tests could not be run: see {report}")
    seconds, failed, modules = json.loads((data / "run.json").read_text())
    lines = _lines_by_test(data)
    shutil.rmtree(data)
    for path, place in places.items():
        start = f"{path.relative_to(ROOT)}::"
        of_file = {test: value for test, value in seconds.items() if test.startswith(start) and test not in failed}
        part = {
            "seconds": of_file,
            "failed": [test for test in failed if test.startswith(start)],
            "modules": modules,
            "lines": {test: found for test, found in lines.items() if test.startswith(start)},
        }
        place.write_text(json.dumps(part))
    print(f"Recorded {len(seconds)} tests in {time.monotonic() - began:.0f} s", flush=True)


def _lines_by_test(folder: Path) -> dict[str, dict[str, list[int]]]:
    found: dict[str, dict[str, list[int]]] = {}
    for path in folder.glob("lines.*"):
        data = coverage.CoverageData(str(path))
        try:
            data.read()
        except coverage.exceptions.DataError:
            continue  # of a process that a test killed as it wrote
        for file in data.measured_files():
            name = str(Path(file).relative_to(ROOT))
            for line, contexts in data.contexts_by_lineno(file).items():
                for context in contexts:
                    # That of a process of its own is `PYTEST_CURRENT_TEST`, which ends with the phase.
                    test = re.sub(r" \((setup|call|teardown)\)$", "", context)
                    found.setdefault(test, {}).setdefault(name, []).append(line)
    return found


def _foreign_modules() -> list[str]:
    modules = [(name, getattr(module, "__file__", None) or "") for name, module in list(sys.modules.items())]
    return [name for name, file in modules if file and not _is_ours(Path(file))]


def _is_ours(file: Path) -> bool:
    return (ROOT in file.parents and ROOT / ".venv" not in file.parents) or KEPT in file.parents


class _Watcher:
    """Tells the coverage which test runs, and takes its time."""

    def __init__(self, watch: coverage.Coverage) -> None:
        self._watch = watch
        self.seconds: dict[str, float] = {}
        self.failed: list[str] = []

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item):
        self._watch.switch_context(item.nodeid)
        began = time.monotonic()
        result = yield
        self.seconds[item.nodeid] = round(time.monotonic() - began, 4)
        self._watch.switch_context("")
        return result

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef, request):
        if fixturedef.scope == "function":
            return (yield)
        test = os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" (")[0]
        self._watch.switch_context(f"{test.partition('::')[0]}::*")
        try:
            return (yield)
        finally:
            self._watch.switch_context(test)

    def pytest_runtest_logreport(self, report):
        if report.failed and report.nodeid not in self.failed:
            self.failed.append(report.nodeid)


def run_pytest(own: Path, arguments: list[str], plugin: object, report: Path | None) -> int:
    """Run tests in this process, which ends afterwards; nothing of a home or a cache outside of ``own`` is used."""
    output = os.open(report or os.devnull, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.chdir(ROOT)
    os.environ.update({name: value for name, value in _services(own).items() if not os.environ.get(name)})
    tempfile.tempdir = None
    (own / "home").mkdir()
    prefix = KEPT / "compiled"
    prefix.mkdir(exist_ok=True, parents=True)
    os.environ.update(
        HOME=str(own / "home"),
        TMPDIR=str(own),
        HYPOTHESIS_STORAGE_DIRECTORY=str(own / "hypothesis"),
        PYTHONPYCACHEPREFIX=str(prefix),
    )
    sys.pycache_prefix = str(prefix)
    options = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-o", "timeout=0", "--hypothesis-seed=0"]
    # A failing example is not made small: that it fails is enough.
    settings.register_profile(
        "mutants", deadline=None, suppress_health_check=[HealthCheck.too_slow], phases=[Phase.explicit, Phase.generate]
    )
    options += ["--hypothesis-profile=mutants", f"--snapshot-report={own / 'pictures.html'}"]
    return int(pytest.main([*options, *arguments], plugins=[plugin]))


def _services(own: Path) -> dict[str, str]:
    """Return how the services that run for tests are found from where there is another home and another /tmp."""
    folder = Path(tempfile.gettempdir())
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    found = {
        "DOCKER_TEST_SOCK": str(folder / "torchx-tui-docker.sock"),
        "KUBERNETES_TEST_CACHE": str(Path(cache, "torchx-tui-tests", "kubernetes")),
    }
    kubernetes, slurm = folder / "torchx-tui-kubernetes", folder / "torchx-tui-slurm"
    if (kubernetes / "run" / "kubelet.pid").exists():
        # Its processes, which have other numbers in here, are not looked for beside this copy.
        copy = own / "cluster" / "pki" / "admin.kubeconfig"
        copy.parent.mkdir(parents=True)
        shutil.copyfile(kubernetes / "pki" / copy.name, copy)
        found["KUBERNETES_TEST_KUBECONFIG"] = str(copy)
    if (slurm / "run" / "slurmctld.pid").exists():
        found["SLURM_CONF"] = str(slurm / "etc" / "slurm.conf")
    return found
