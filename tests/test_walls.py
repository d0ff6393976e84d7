"""The walls between the rooms: who may import whom, and what the first paint may load."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
ROOMS = (
    "base", "specs", "guest", "components", "logs", "backends",
    "diagnosis", "settings", "notify", "doctor", "tui", "cli",
)  # fmt: skip


def product_files() -> list[Path]:
    """List the files of the product."""
    return [path for room in ROOMS for path in (ROOT / room).rglob("*.py")]


def test_import_contracts_hold():
    """The contracts in pyproject.toml, as `make lint` checks them."""
    result = subprocess.run(
        [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr


def loaded_by(statement: str) -> set[str]:
    """Return the modules that a fresh interpreter has after a statement."""
    code = f"{statement}\nimport sys\nprint('\\n'.join(sys.modules))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd="/")
    return set(result.stdout.split())


@pytest.mark.parametrize("room", ["specs", "components", "backends.api", "backends.runner", "logs.text.sanitize"])
def test_no_screen_library_below_tui(room):
    loaded = loaded_by(f"import torchx_tui.{room}")
    assert not {"textual", "rich"} & {name.partition(".")[0] for name in loaded}


def test_the_app_loads_nothing_that_costs():
    loaded = loaded_by("import torchx_tui.tui.app, torchx_tui.tui.jobs.screen")
    roots = {name.partition(".")[0] for name in loaded}
    assert not {"docker", "kubernetes", "yaml", "psutil", "fsspec", "torch"} & roots
    assert "torchx_tui.backends.local.scheduler" not in loaded


def test_the_supervisor_stands_alone():
    """It is started by path with -I -S: nothing but the standard library is importable then."""
    supervisor = ROOT / "backends" / "local" / "supervisor.py"
    code = f"import runpy; runpy.run_path({str(supervisor)!r}, run_name='supervisor')"
    result = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr


def test_no_handler_calls_that_of_its_base():
    """Textual calls the handlers of all bases itself: such a call would make it run twice."""
    doubled = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in (ROOT / "tui").rglob("*.py")
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if "super().on_" in line and "super().on_event" not in line
    ]
    assert not doubled


def test_paths_are_checked_without_errors():
    """`Path.exists` and its siblings raise for folders that may not be entered: `base/files.py` has what does not."""
    raising = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in product_files()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in ("exists", "is_dir", "is_file")
        and not (node.args or node.keywords)
        # An entry of a folder, of which the system has told what it is.
        and not (isinstance(node.func.value, ast.Name) and node.func.value.id == "entry")
    ]
    assert not raising


def test_kube_names_nothing_of_volcano():
    found = [
        f"{path.name}: {word}"
        for path in (ROOT / "backends" / "kube").glob("*.py")
        for word in re.findall(r"(?i)volcano|\bqueues?\b|\btasks?\b", path.read_text())
    ]
    assert found == []
