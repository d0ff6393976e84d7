"""Components run by the interpreter of their project, with TorchX's names where TorchX is not."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from support.component_files import ComponentFile, make_environment

from torchx_tui.base.trust import UntrustedError, trust_folder
from torchx_tui.components.build import build_app, interpreter_of
from torchx_tui.components.finder import describe, find
from torchx_tui.components.image import DEFAULT_IMAGE
from torchx_tui.guest.interpreter import choose_interpreter, own_interpreter
from torchx_tui.specs.errors import ComponentLoadError

PATHS = 'def f() -> AppDef:\n    """Do."""\n    import sys\n    return AppDef(sys.prefix)\n'


@pytest.fixture(autouse=True)
def no_active_environment(monkeypatch):
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)
    monkeypatch.delenv("CONDA_PREFIX", raising=False)


def add_module(environment: Path, name: str, text: str) -> None:
    (packages,) = environment.glob("lib/python*/site-packages")
    (packages / f"{name}.py").write_text(text)


def fake_python(path: Path, text: str) -> str:
    path.write_text(text)
    path.chmod(0o755)
    return str(path)


def test_the_environment_of_the_project(tmp_path):
    """Only the project's has the library."""
    environment = make_environment(tmp_path / ".venv")
    add_module(environment, "theirs", "NAME = 'theirs'\n")
    (tmp_path / "jobs").mkdir()
    text = 'def f() -> AppDef:\n    """Do."""\n    import theirs\n    return AppDef(theirs.NAME)\n'
    file = ComponentFile(tmp_path / "jobs" / "train.py").write(text)
    interpreter = interpreter_of(find(file.name("f")))
    assert interpreter is not None
    assert interpreter.source == str(environment)
    assert build_app(file.name("f"), {}).name == "theirs"


def test_which_comes_first(tmp_path, monkeypatch):
    project = tmp_path / "project"
    (project / "jobs").mkdir(parents=True)
    file = project / "jobs" / "train.py"
    assert choose_interpreter(file).path == sys.executable
    for name in ("above", "conda", "active"):
        (tmp_path / name / "bin").mkdir(parents=True)
        fake_python(tmp_path / name / "bin" / "python", "#!/bin/sh\n")
    (tmp_path / "venv").symlink_to(tmp_path / "above")
    assert choose_interpreter(file).source == str(tmp_path / "venv")
    # A repository ends the search.
    (project / ".git").mkdir()
    assert choose_interpreter(file).path == sys.executable
    monkeypatch.setenv("CONDA_PREFIX", str(tmp_path / "conda"))
    assert choose_interpreter(file).source == "CONDA_PREFIX"
    monkeypatch.setenv("VIRTUAL_ENV", str(tmp_path / "active"))
    assert choose_interpreter(file).source == "VIRTUAL_ENV"
    assert choose_interpreter(file, "/opt/python").path == "/opt/python"
    # Our own environment, although it is the active one.
    monkeypatch.setenv("VIRTUAL_ENV", sys.prefix)
    assert choose_interpreter(file).path == sys.executable


def linked_environment(tmp_path: Path) -> tuple[ComponentFile, Path]:
    """Return a component below a folder with a link to an environment, whose Python notes that it ran."""
    environment = make_environment(tmp_path / "elsewhere")
    program = environment / "bin" / "python"
    program.unlink()
    fake_python(program, f'#!/bin/sh\ntouch {tmp_path / "ran"}\nexec {sys.executable} "$@"\n')
    (tmp_path / ".venv").symlink_to(environment)
    (tmp_path / "project").mkdir()
    return ComponentFile(tmp_path / "project" / "train.py").write(PATHS), tmp_path / "ran"


def test_a_linked_environment_runs_only_a_chosen_component(tmp_path):
    file, ran = linked_environment(tmp_path)
    describe(file.name("f"))
    assert not ran.exists()
    build_app(file.name("f"), {})
    assert ran.exists()


@pytest.fixture
def unprivileged():
    """Run a test as a user whom file modes hold for, also if root runs the tests."""
    user = os.geteuid()
    os.seteuid(user or 65534)
    yield
    os.seteuid(user)


def test_environment_that_may_not_be_entered_is_skipped(unprivileged):
    with TemporaryDirectory() as folder:
        environment = Path(folder, ".venv")
        (environment / "bin").mkdir(parents=True)
        (environment / "bin" / "python").touch(0o755)
        environment.chmod(0)
        chosen = choose_interpreter(Path(folder, "train.py"))
        environment.chmod(0o700)
    assert chosen == own_interpreter()


@pytest.mark.skipif(os.getuid() != 0, reason="only root gives files away")
@pytest.mark.parametrize("entry", [".venv", "elsewhere", "elsewhere/bin/python"])
def test_an_environment_of_another_user_is_refused(tmp_path, entry):
    file, ran = linked_environment(tmp_path)
    os.lchown(tmp_path / entry, 4242, 4242)
    with pytest.raises(ComponentLoadError) as caught:
        build_app(file.name("f"), {})
    assert f"{tmp_path / entry} belongs to the user 4242" in str(caught.value)
    assert "activate an environment, or set python of [components] in config.toml" in str(caught.value)
    assert not ran.exists()
    trust_folder(tmp_path)
    build_app(file.name("f"), {})
    assert ran.exists()


@pytest.mark.skipif(os.getuid() != 0, reason="only root gives files away")
@pytest.mark.parametrize("variable", ["VIRTUAL_ENV", "CONDA_PREFIX"])
def test_an_environment_that_the_user_activated_is_run(tmp_path, monkeypatch, variable):
    """Software of a cluster often belongs to an account of its own."""
    file, ran = linked_environment(tmp_path)
    os.lchown(tmp_path / "elsewhere", 4242, 4242)
    monkeypatch.setenv(variable, str(tmp_path / "elsewhere"))
    build_app(file.name("f"), {})
    assert ran.exists()


@pytest.mark.skipif(os.getuid() != 0, reason="only root gives files away")
def test_a_component_of_another_user_is_not_run(tmp_path):
    file = ComponentFile(tmp_path / "train.py").write(f"open({str(tmp_path / 'ran')!r}, 'w')\n{PATHS}")
    os.chown(file.path, 4242, 4242)
    assert describe(file.name("f")).summary == "Do."
    with pytest.raises(UntrustedError, match="belongs to the user 4242"):
        build_app(file.name("f"), {})
    assert not (tmp_path / "ran").exists()
    trust_folder(tmp_path)
    assert build_app(file.name("f"), {}).name == sys.prefix


# Says hello as another program would.
HELLO = f"""#!{sys.executable}
import json, os, sys
hello = {{"id": 0, "value": [[3, 9, 1], 0]}}
os.write(json.loads(sys.argv[2])["channel"], json.dumps(hello).encode() + b"\\n")
"""


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("#!/bin/sh\necho 'no such library' >&2; exit 127\n", "exit code 127"),
        ("#!/bin/sh\necho not python\n", "its process ended with exit code 0"),
        ("not a program", "cannot be started: Exec format error"),
        (HELLO, "is Python 3.9.1: components need 3.10 or newer"),
    ],
)
def test_an_interpreter_that_cannot_be_used(component_file, tmp_path, use_settings, text, reason):
    use_settings(python=fake_python(tmp_path / "python", text))
    with pytest.raises(ComponentLoadError) as caught:
        build_app(component_file.write(PATHS).name("f"), {})
    assert reason in str(caught.value)


def test_an_interpreter_that_is_not_there(component_file, use_settings):
    use_settings(python="/no/such/python")
    with pytest.raises(ComponentLoadError, match=r"\[components\] python of config\.toml\) cannot be started: No such"):
        build_app(component_file.write(PATHS).name("f"), {})


WRITTEN_FOR_TORCHX = '''
from typing import Dict, Optional

import torchx
import torchx.components.dist as dist
import torchx.specs as specs
from torchx import components
from torchx.components.structured_arg import StructuredJArgument, StructuredNameArgument
from torchx.components.utils import echo
from torchx.specs import AppDef, Role, macros
from torchx.specs.api import Resource, named_resources


def trainer(image: str, h: str = "gpu.small", env: Optional[Dict[str, str]] = None) -> specs.AppDef:
    """Train.

    Args:
        image: The image.
        h: The machine.
        env: The environment.
    """
    return specs.AppDef(
        name="trainer",
        roles=[
            specs.Role(
                name="worker",
                image=image,
                entrypoint="python",
                args=["-m", "train", "--out", macros.img_root],
                env=env or {},
                resource=specs.resource(h=h),
                mounts=specs.parse_mounts(["type=bind", "src=/data", "dst=/data"]),
                retry_policy=specs.RetryPolicy.APPLICATION,
            )
        ],
    )


def wrapped(j: str = "1x2") -> specs.AppDef:
    """Run torchrun."""
    app = dist.ddp(script="train.py", j=j, name="wrapped")
    app.roles[0].resource = named_resources["cpu.small"]
    return app


def structured(name: str, j: str, h: str) -> specs.AppDef:
    """Take arguments of several values."""
    made = StructuredJArgument.parse_from(h=h, j=j)
    return echo(msg=f"{StructuredNameArgument.parse_from(name, m='a.train')} {made}")


def greeting(msg: str) -> AppDef:
    """Say."""
    assert components.utils.echo is echo and isinstance(specs.named_resources["gpu.small"], Resource)
    return echo(msg=msg, image=torchx.IMAGE)
'''


def test_components_written_for_torchx_run_without_it(tmp_path, use_settings):
    environment = make_environment(tmp_path / "environment")
    use_settings(python=str(environment / "bin" / "python"))
    file = ComponentFile(tmp_path / "jobs.py").write(WRITTEN_FOR_TORCHX, header="")
    (role,) = build_app(file.name("trainer"), {"image": "busybox", "env": "A=b"}).roles
    assert (role.image, role.resource.gpu, role.env, role.mounts[0].dst_path) == ("busybox", 1, {"A": "b"}, "/data")
    assert role.args[-1] == "${img_root}"
    (role,) = build_app(file.name("wrapped"), {"j": "2x4"}).roles
    assert (role.num_replicas, role.resource.cpu) == (2, 1)
    assert "train.py" in " ".join(role.args)
    assert build_app(file.name("greeting"), {"msg": "hello"}).roles[0].args == ["hello"]
    given = {"name": "t5/", "j": "2", "h": "aws_p4d.24xlarge"}
    assert build_app(file.name("structured"), given).roles[0].args == ["t5/train 2x8"]


IMPORTS = """
import torchx
import torchx.specs
from torchx.components.component_test_base import ComponentTestCase
from torchx.components.dist import _TORCH_DEBUG_FLAGS, ddp
from torchx.components import utils
from torchx.runner import Runner, get_runner
from torchx.runner.config import dump, find_configs
from torchx.schedulers.docker_scheduler import LABEL_APP_ID, DockerScheduler
from torchx.schedulers.kubernetes_scheduler import KubernetesScheduler, app_to_resource
from torchx.schedulers.local_scheduler import LocalScheduler
from torchx.schedulers.slurm_scheduler import SlurmScheduler
from torchx.specs.builders import parse_mounts
from torchx.specs.finder import ComponentNotFoundException
from torchx.version import TORCHX_IMAGE
from torchx.workspace import Workspace, WorkspaceMixin
from torchx.workspace.dir_workspace import DirWorkspaceMixin
from torchx.workspace.docker_workspace import DockerWorkspaceMixin
"""


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("torchx.version.TORCHX_IMAGE", DEFAULT_IMAGE),
        ("TORCHX_IMAGE.endswith(':' + torchx.__version__)", True),
        ("torchx.specs.api.AppDef is AppDef", True),
        ("'LOGLEVEL' in _TORCH_DEBUG_FLAGS, 'CUDA_LAUNCH_BLOCKING' in _TORCH_DEBUG_FLAGS", (False, True)),
        ("get_runner('mine', cache_size=3).scheduler_names()[:2]", ["local_docker", "local_cwd"]),
        ("ComponentTestCase().validate(utils, 'echo')", None),
        ("LocalScheduler('mine').run_opts() is not None", True),
        ("LABEL_APP_ID", "torchx.pytorch.org/app-id"),
    ],
)
def test_names_of_torchx_work_without_it(tmp_path, bare_environment, expression, value):
    text = f'{IMPORTS}\ndef f() -> AppDef:\n    """Do."""\n    return AppDef(repr(({expression})))\n'
    file = ComponentFile(tmp_path / "jobs.py").write(text)
    assert build_app(file.name("f"), {}).name == repr(value)


@pytest.fixture
def bare_environment(tmp_path, use_settings):
    """Run components by a Python without any package."""
    environment = make_environment(tmp_path / "environment")
    use_settings(python=str(environment / "bin" / "python"))


def test_missing_module_of_torchx_is_named_once(tmp_path, bare_environment):
    file = ComponentFile(tmp_path / "jobs.py").write(f"import torchx.components.base\n{PATHS}")
    with pytest.raises(ComponentLoadError) as caught:
        build_app(file.name("f"), {})
    assert str(caught.value).count("It is part of TorchX") == 1
    assert "torchx-tui has torchx.components.component_test_base, torchx.components.dist, " in str(caught.value)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("from torchx.specs import overlays", "cannot import name 'overlays' from 'torchx.specs'"),
        ("import torchx.tracker", "No module named 'torchx.tracker'. It is part of TorchX, which is not installed for"),
        ("from torchx.specs import no_such_name", "It is part of TorchX, which is not installed for"),
    ],
)
def test_what_torchx_has_beyond_ours_is_said_to_be_missing(tmp_path, use_settings, text, reason):
    environment = make_environment(tmp_path / "environment")
    use_settings(python=str(environment / "bin" / "python"))
    file = ComponentFile(tmp_path / "jobs.py").write(f"{text}\n{PATHS}")
    with pytest.raises(ComponentLoadError) as caught:
        build_app(file.name("f"), {})
    assert reason in str(caught.value)


def test_a_torchx_that_is_there_is_used(tmp_path, use_settings):
    environment = make_environment(tmp_path / "environment")
    add_module(environment, "torchx", "NAME = 'the real torchx'\n")
    use_settings(python=str(environment / "bin" / "python"))
    text = 'def f() -> AppDef:\n    """Do."""\n    import torchx\n    return AppDef(torchx.NAME)\n'
    assert build_app(ComponentFile(tmp_path / "jobs.py").write(text).name("f"), {}).name == "the real torchx"


def test_hostile_files_beside_a_component_are_not_run(tmp_path, monkeypatch):
    """Files named like modules that the guest needs are imported by nothing but the component itself."""
    for name in ("sitecustomize", "usercustomize", "json", "typing", "docker", "conftest", "yaml", "select", "enum"):
        (tmp_path / f"{name}.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'a').write('{name} ')\n")
    monkeypatch.chdir(tmp_path)
    assert build_app(ComponentFile(tmp_path / "jobs.py").write(PATHS).name("f"), {}).name == sys.prefix
    assert not (tmp_path / "ran").exists()
