"""The table of differences from TorchX, and the page that is made from it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from interop.differences import DIFFERENCES
from interop.differences_page import compatibility_page, rounded_down
from support import oracle_counts
from support.waiting import PATIENCE

# Held against TorchX on processes of its own, which take seconds each: no case is made up.
LOCAL_JOBS = "local jobs"
DOCS = Path(__file__).parents[2] / "docs" / "reference"


def test_the_page_lists_every_difference() -> None:
    page = (DOCS / "compatibility.md").read_text(encoding="utf-8")
    assert page == compatibility_page(), "run: python docs/reference/compatibility.py"
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
    tests = str(Path(__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-c", script, tests], capture_output=True, text=True, check=False, timeout=PATIENCE
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) == len(compatibility_page())


def test_the_counts_of_workers_are_added(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(oracle_counts, "COUNTS", {})
    oracle_counts.count("runopts")
    worker = {"runopts": {"cases": 5, "differed": 2, "entries": {"quotes": 2}}}
    oracle_counts.OracleCounts().pytest_testnodedown(SimpleNamespace(workeroutput={"oracle_counts": worker}), None)
    assert oracle_counts.COUNTS == {"runopts": {"cases": 6, "differed": 2, "entries": {"quotes": 2}}}
    # A worker that crashed hands nothing over.
    oracle_counts.OracleCounts().pytest_testnodedown(SimpleNamespace(), "crashed")
    assert oracle_counts.COUNTS["runopts"]["cases"] == 6


def test_every_area_was_counted() -> None:
    counted = oracle_counts.read_counted()["areas"]
    for area in {entry.area for entry in DIFFERENCES} - {LOCAL_JOBS}:
        assert counted[area]["cases"] >= 800, area
        assert 0 < counted[area]["differed"] < counted[area]["cases"]


def test_counts_are_written_when_every_area_was_tried(tmp_path: Path) -> None:
    path = tmp_path / "counted.json"
    path.write_text('{"inputs": "", "areas": {"macros": {}, "runopts": {}}}')
    runopts = {"runopts": {"cases": 5, "differed": 2, "entries": {"quotes": 2}}}
    assert "macros was not tried" in oracle_counts.write(runopts, path)
    assert set(oracle_counts.read_counted(path)["areas"]["runopts"]) == set()
    counts = {**runopts, "macros": {"cases": 1, "differed": 0, "entries": {}}}
    assert "COMMIT" in oracle_counts.write(counts, path)
    assert oracle_counts.read_counted(path) == {
        "inputs": oracle_counts.hash_of_inputs(),
        "areas": {
            "macros": {"cases": 1, "differed": 0, "entries": 0},
            "runopts": {"cases": 5, "differed": 2, "entries": 1},
        },
    }
    assert "as it was" in oracle_counts.write(counts, path)


def test_the_hash_tells_whether_an_input_changed(tmp_path: Path) -> None:
    for pattern in oracle_counts.INPUTS:
        path = tmp_path / pattern.replace("*", "made")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x = 1\n")
    pinned = tmp_path / "pyproject.toml"
    pinned.write_text('version = 1\ninterop = ["torchx-nightly==2026.1.1"]\n')
    hashes = [oracle_counts.hash_of_inputs(tmp_path)]
    for path, text in (
        (tmp_path / "specs" / "made.py", "x = 2\n"),
        (tmp_path / "specs" / "more.py", ""),
        (pinned, 'version = 1\ninterop = ["torchx-nightly==2026.1.2"]\n'),
    ):
        path.write_text(text)
        hashes.append(oracle_counts.hash_of_inputs(tmp_path))
    assert len(set(hashes)) == 4
    pinned.write_text(pinned.read_text().replace("version = 1", "version = 2"))
    assert oracle_counts.hash_of_inputs(tmp_path) == hashes[-1]
    (tmp_path / "backends" / "torchxconfig.py").unlink()
    with pytest.raises(FileNotFoundError, match="torchxconfig"):
        oracle_counts.hash_of_inputs(tmp_path)


@pytest.mark.parametrize(("number", "shown"), [(0, 0), (7, 7), (842, 840), (1391, 1300), (50_312, 50_000)])
def test_counts_are_rounded_down(number: int, shown: int) -> None:
    assert rounded_down(number) == shown
