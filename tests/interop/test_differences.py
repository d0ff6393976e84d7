"""The list of differences from TorchX, and the counts of compared cases."""

from types import SimpleNamespace

import pytest
from interop.differences import DIFFERENCES
from support import oracle_counts

RUNOPTS = {"runopts": {"cases": 5, "differed": 2, "entries": {"quotes": 2}}}


def test_an_entry_is_listed_once_and_complete():
    assert len({(entry.area, entry.name) for entry in DIFFERENCES}) == len(DIFFERENCES)
    for entry in DIFFERENCES:
        assert all((entry.theirs, entry.ours, entry.why)), entry.name
        assert entry.kind in ("upstream fault", "addition", "generation"), entry.name
        # Local jobs are compared without examples, see test_local_jobs.py.
        assert len(entry.gives) == 2 or entry.area == "local jobs", entry.name


def test_counts_of_workers_are_added(monkeypatch):
    monkeypatch.setattr(oracle_counts, "COUNTS", {})
    oracle_counts.count("runopts")
    counts = oracle_counts.OracleCounts()
    counts.pytest_testnodedown(SimpleNamespace(workeroutput={"oracle_counts": RUNOPTS}), None)
    counts.pytest_testnodedown(SimpleNamespace(), "crashed")  # without counts
    assert oracle_counts.COUNTS == {"runopts": {"cases": 6, "differed": 2, "entries": {"quotes": 2}}}


@pytest.mark.parametrize("area", sorted({entry.area for entry in DIFFERENCES} - {"local jobs"}))
def test_an_area_was_counted(area):
    counted = oracle_counts.read_counted()["areas"][area]
    assert counted["cases"] >= 800
    assert 0 < counted["differed"] < counted["cases"]


def test_counts_are_written_when_every_area_was_tried(tmp_path):
    path = tmp_path / "counted.json"
    path.write_text(before := '{"inputs": "", "areas": {"macros": {}, "runopts": {}}}')
    assert "macros was not tried" in oracle_counts.write(RUNOPTS, path)
    assert path.read_text() == before
    counts = {**RUNOPTS, "macros": {"cases": 1, "differed": 0, "entries": {}}}
    assert "COMMIT" in oracle_counts.write(counts, path)
    assert oracle_counts.read_counted(path) == {
        "inputs": oracle_counts.hash_of_inputs(),
        "areas": {
            "macros": {"cases": 1, "differed": 0, "entries": 0},
            "runopts": {"cases": 5, "differed": 2, "entries": 1},
        },
    }
    assert "as it was" in oracle_counts.write(counts, path)


def test_the_hash_changes_with_each_input(tmp_path):
    for pattern in oracle_counts.INPUTS:
        path = tmp_path / pattern.replace("*", "made")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x = 1\n")
    hashes = []
    for name, text in (
        ("pyproject.toml", 'version = 1\ninterop = ["torchx-nightly==2026.1.1"]\n'),
        ("specs/made.py", "x = 2\n"),
        ("specs/more.py", ""),
        ("pyproject.toml", 'version = 1\ninterop = ["torchx-nightly==2026.1.2"]\n'),
        ("pyproject.toml", 'version = 2\ninterop = ["torchx-nightly==2026.1.2"]\n'),
    ):
        (tmp_path / name).write_text(text)
        hashes.append(oracle_counts.hash_of_inputs(tmp_path))
    assert len(set(hashes)) == 4
    assert hashes[-1] == hashes[-2]  # what else pyproject.toml says does not count
    (tmp_path / "backends/torchxconfig.py").unlink()
    with pytest.raises(FileNotFoundError, match="torchxconfig"):
        oracle_counts.hash_of_inputs(tmp_path)
