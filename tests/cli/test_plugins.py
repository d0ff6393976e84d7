"""The shell, the doctor and the form, with packages that are written for TorchX."""

from __future__ import annotations

import json
import threading
import time
from typing import Any

import pytest
from support.command import Command
from support.torchx_plugins import as_if_installed, has_torchx
from support.waiting import NEVER, PATIENCE, wait_until

from torchx_tui.backends.plugin import remote
from torchx_tui.backends.plugin.found import FoundScheduler


@pytest.fixture
def plugins(require, tmp_path, monkeypatch):
    require("interop", has_torchx(), "torchx-nightly is not installed: pip install 'torchx-tui[interop]'")
    monkeypatch.setenv("PROCESS_JOBS", str(tmp_path / "jobs"))
    with as_if_installed(tmp_path / "site", monkeypatch) as made:
        yield made


def findings(command: Command) -> list[tuple[str, str, str]]:
    return [(one["subject"], one["level"], one["what"]) for one in command("doctor", "--json").data]


def test_a_job_from_the_launch_to_its_end(command, plugins):
    plugins.process_jobs()
    options = command("runopts", "processes").out
    assert "folder=FOLDER (str)" in options
    assert "How nice the processes are." in options
    chosen = ("-s", "processes", "-cfg", "folder=x,nice=3")
    dry = command("dryrun", *chosen, "utils.echo", "--msg", "hi")
    assert dry.code == 0
    assert '"hi"' in dry.out
    assert "nobody asked for" not in dry.out + dry.err
    ran = command("run", *chosen, "utils.sh", "--num_replicas", "2", "sh", "-c", "echo one; exec sleep 3600")
    handle = ran.out.strip()
    assert handle.startswith("processes://torchx/sh-")
    assert "scheduled" not in ran.err
    listed = {one["handle"]: one for one in json.loads(command("list", "-s", "processes", "--json").out)}
    assert (listed[handle]["state"], listed[handle]["name"]) == ("RUNNING", "sh")
    (line,) = wait_until(lambda: command("log", handle + "/sh/1").out.splitlines(), "what it prints")
    assert line.endswith("one")
    assert command("cancel", handle).code == 0
    assert command("status", handle, "--json").data["state"] == "CANCELLED"
    assert command("delete", handle).code == 0
    assert json.loads(command("list", "-s", "processes", "--json").out) == []


def test_doctor_names_each_plugin_with_its_group(command, plugins):
    plugins.process_jobs()
    plugins.module("acme_components", "def train() -> 'AppDef':\n    '''Train.'''\n")
    plugins.distribution("acme-components", "torchx.components", acme="acme_components")
    plugins.module("acme_resources", "from torchx.specs import Resource\ndef big(): return Resource(1, 2, 3)")
    plugins.distribution("acme-resources", "torchx.named_resources", big="acme_resources:big", gone="acme_resources:x")
    told = findings(command)
    for what in (
        "scheduler processes: acme_process_jobs:create of acme-process-jobs (group torchx.schedulers)",
        "1 component of acme_components (group torchx.components)",
        "named resource big: acme_resources:big (group torchx.named_resources)",
    ):
        assert ("plugins", "ok", what) in told
    (gone,) = [what for subject, level, what in told if (subject, level) == ("plugins", "error")]
    assert gone.startswith("named resource gone (group torchx.named_resources): The named resource gone of acme_reso")
    assert "AttributeError" in gone
    assert ("processes", "ok") in {(subject, level) for subject, level, _ in told}


def test_doctor_says_why_one_is_broken_and_looks_at_the_others(command, plugins, monkeypatch):
    open_plugin = remote._open

    def open_soon(found: FoundScheduler, *rest: Any) -> Any:
        monkeypatch.setattr(remote, "LOAD_SECONDS", 1.0 if found.name.startswith("hangs") else NEVER)
        return open_plugin(found, *rest)

    monkeypatch.setattr(remote, "_open", open_soon)
    plugins.module("acme_raises", "raise RuntimeError('no licence')")
    plugins.module("acme_hangs", "import threading; threading.Event().wait()")
    points = {f"hangs{number}": "acme_hangs:create" for number in range(4)}
    plugins.distribution("acme", "torchx.schedulers", raises="acme_raises:create", **points)
    began, threads = time.monotonic(), threading.active_count()
    told = {subject: (level, what) for subject, level, what in findings(command)}
    assert told["raises"][0] == "error"
    assert "RuntimeError: no licence" in told["raises"][1]
    assert "acme_raises:create of acme" in told["raises"][1]
    for name in points:
        assert told[name][0] == "error"
        assert "importing acme_hangs:create of acme, or making its scheduler, does not end" in told[name][1]
    assert told["local_cwd"][0] != "error"
    assert time.monotonic() - began < len(points) * PATIENCE
    assert threading.active_count() - threads < 20


def test_a_broken_one_is_left_out_of_lists(command, plugins):
    plugins.process_jobs()
    plugins.module("acme_raises", "raise RuntimeError('no licence')")
    plugins.distribution("acme", "torchx.schedulers", raises="acme_raises:create")
    listed = command("list")
    assert listed.code == 0
    assert "raises is left out: " in listed.err
    assert "no licence" in listed.err
    options = command("runopts")
    assert "processes:" in options.out
    assert "raises is left out: " in options.err
