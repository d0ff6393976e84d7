"""The wheel holds every module and style sheet of the tree: a package left off the list is silently missing."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from support.waiting import PATIENCE

ROOT = Path(__file__).parent.parent
ROOMS = (
    "base",
    "specs",
    "guest",
    "components",
    "logs",
    "backends",
    "diagnosis",
    "settings",
    "notify",
    "doctor",
    "tui",
    "cli",
)


@pytest.mark.slow
def test_the_wheel_is_complete(tmp_path):
    # Built from a copy: setuptools leaves build/ behind, and another test may read the tree meanwhile.
    source = tmp_path / "source"
    tracked = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout.split("\0")  # fmt: skip
    for name in filter(None, tracked):
        if name.partition("/")[0] in (*ROOMS, "__init__.py", "pyproject.toml", "README.md", "LICENSE"):
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            (source / name).write_bytes((ROOT / name).read_bytes())
    subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(tmp_path), str(source)],
        check=True, capture_output=True, timeout=PATIENCE,
    )  # fmt: skip
    (wheel,) = tmp_path.glob("*.whl")
    packed = {name for name in zipfile.ZipFile(wheel).namelist() if name.startswith("torchx_tui/")}
    wanted = {
        f"torchx_tui/{path.relative_to(source)}"
        for room in ROOMS
        for path in (source / room).rglob("*")
        if path.suffix in (".py", ".tcss")
    } | {"torchx_tui/__init__.py"}
    assert len(wanted) > 50
    assert packed == wanted
