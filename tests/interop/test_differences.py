"""The table of differences from TorchX, and the page that is made from it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from interop.differences import DIFFERENCES
from interop.differences_page import compatibility_page

DOCS = Path(__file__).parents[2] / "docs"


def test_the_page_lists_every_difference() -> None:
    page = (DOCS / "compatibility.md").read_text(encoding="utf-8")
    assert page == compatibility_page(), "run: python docs/compatibility.py"
    for entry in DIFFERENCES:
        assert f"| {entry.name} |" in page
    assert f"| 0 | {len(DIFFERENCES)} |" in next(line for line in page.splitlines() if line.startswith("| all |"))


def test_no_difference_is_listed_twice_or_left_unexplained() -> None:
    assert len({(entry.area, entry.name) for entry in DIFFERENCES}) == len(DIFFERENCES)
    for entry in DIFFERENCES:
        assert all((entry.theirs, entry.ours, entry.why))
        assert entry.kind in ("upstream fault", "addition", "generation")


def test_the_page_is_made_without_torchx() -> None:
    script = (
        "import sys; sys.modules['torchx'] = None; sys.path.insert(0, sys.argv[1])\n"
        "from interop.differences_page import compatibility_page; print(len(compatibility_page()))"
    )
    tests = str(DOCS.parent / "tests")
    done = subprocess.run(
        [sys.executable, "-c", script, tests], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) == len(compatibility_page())
