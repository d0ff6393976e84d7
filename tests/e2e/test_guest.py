"""By keys alone: components for TorchX, of a project whose environment has neither TorchX nor torchx-tui."""

import re
import subprocess
import sys

import pytest
from actions import fill, open_form, submit, wait_top

pytestmark = pytest.mark.slow

PROJECT = '''
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


def hang() -> specs.AppDef:
    """Hang."""
    print("before it hangs")
    while True:
        pass
'''


@pytest.fixture
def project(tmp_path):
    folder = tmp_path / "project"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder / ".venv")], check=True)
    (packages,) = (folder / ".venv").glob("lib/python*/site-packages")
    (packages / "words_of_the_project.py").write_text("HELLO = 'hello'\n")
    (folder / "jobs.py").write_text(PROJECT)
    # None of these is asked for by the component.
    for name in ("torchx", "docker", "sitecustomize", "conftest"):
        (tmp_path / f"{name}.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'a').write('{name} ')\n")
    return folder


def test_a_component_for_torchx_is_launched_and_launched_again(terminal, project, tmp_path):
    app = terminal(cwd=project)
    app.wait("No jobs yet")
    open_form(app, "jobs.py:greet")
    app.wait("component run by")
    fill(app, {"name": "Ada"})
    submit(app)
    wait_top(app, "Succeeded")
    app.press("l")
    app.wait(r"hello Ada from greet-")
    app.press("escape")
    app.wait("STATE")
    app.press("r")
    app.wait(lambda text: len(re.findall(r"✓ Succeeded\s+greet-", text)) == 2)
    assert not (tmp_path / "ran").exists()


def test_a_component_that_hangs_holds_up_no_key(terminal, project):
    app = terminal(cwd=project)
    app.wait("No jobs yet")
    open_form(app, "jobs.py:hang")
    app.wait("the component runs: no answer")
    app.wait("it did not return")
    app.wait("before it")
    app.press("escape")
    app.wait("Component")
    app.press("ctrl+q")
    app.process.wait()
