"""By keys alone: components for TorchX, of a project whose environment has neither TorchX nor torchx-tui."""

import subprocess
import sys

import pytest
from actions import fill, open_form, submit, wait_top

pytestmark = pytest.mark.slow

PROJECT = '''
import time

import words_of_the_project

import torchx.components.utils as utils
import torchx.specs as specs
from torchx.components import dist


def greet(name: str = "world", h: str = "cpu.small") -> specs.AppDef:
    """Say hello.

    Args:
        name: Whom to greet.
        h: The machine.
    """
    return specs.AppDef(
        name="greet",
        roles=[
            specs.Role(
                name="greeter",
                image="",
                entrypoint="sh",
                args=["-c", f"echo {words_of_the_project.HELLO} {name} from {specs.macros.app_id}"],
                resource=specs.named_resources[h],
            )
        ],
    )


def spread(script: str = "main.py") -> specs.AppDef:
    """Train with torchrun, as TorchX's own component does."""
    return dist.ddp("--steps", "3", script=script, image="", name="spread", j="1x2")


def hang() -> specs.AppDef:
    """Hang."""
    print("before it hangs")
    time.sleep(3600)
'''


@pytest.fixture
def project(tmp_path):
    folder = tmp_path / "project"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder / ".venv")], check=True)
    (packages,) = (folder / ".venv").glob("lib/python*/site-packages")
    (packages / "words_of_the_project.py").write_text("HELLO = 'hello'\n")
    (packages / "acme_jobs.py").write_text(PROJECT.replace("say hello", "say hello of acme"))
    (packages / "acme-1.0.dist-info").mkdir()
    (packages / "acme-1.0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: acme\nVersion: 1.0\n")
    (packages / "acme-1.0.dist-info" / "entry_points.txt").write_text("[torchx.components]\nacme = acme_jobs\n")
    (folder / "jobs.py").write_text(PROJECT)
    torchrun = folder / "torchrun"
    torchrun.write_text('#!/bin/sh\nfor arg in "$@"; do echo "$arg"; done\n')
    torchrun.chmod(0o755)
    # None of these is asked for by the component.
    for name in ("torchx", "docker", "sitecustomize", "conftest"):
        (tmp_path / f"{name}.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'a').write('{name} ')\n")
    return folder


def test_components_for_torchx_are_launched_and_launched_again(terminal, project, tmp_path):
    app = terminal(cwd=project, wait="No jobs yet")
    for component, values, printed in (
        ("jobs.py:greet", {"name": "Ada"}, r"hello Ada from greet-"),
        ("jobs.py:spread", {}, r"nproc_per_node[\s\S]*main\.py[\s\S]*--steps"),
        ("acme.greet", {"name": "Bob"}, r"hello Bob from greet-"),
    ):
        open_form(app, component)
        app.press("ctrl+d", wait="component run by")
        fill(app, values)
        submit(app)
        wait_top(app, "Succeeded")
        before = app.text().count("✓ Succeeded")
        app.press("r", wait=lambda text, count=before + 1: text.count("✓ Succeeded") == count)
        app.press("l", wait=printed)
        app.press("escape", wait="STATE")
    assert not (tmp_path / "ran").exists()


def test_a_component_that_hangs_holds_up_no_key(terminal, project):
    app = terminal(cwd=project, wait="No jobs yet")
    open_form(app, "jobs.py:hang")
    app.press("ctrl+d", wait="the component is running: no answer")
    app.wait("it did not return")
    app.wait("before it")
    app.press("escape", wait="Component")
    app.press("ctrl+q")
    assert app.wait_for_end() == 0
