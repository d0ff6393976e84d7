"""The pictures of the pages: the story of the README can be played, and no picture is missing or left over."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from support.waiting import PATIENCE

PROJECT = Path(__file__).parents[2]


@pytest.mark.slow
def test_the_story_of_the_readme_is_drawn_from_a_run(tmp_path):
    script = PROJECT / "docs" / "images" / "pictures.py"
    ended = subprocess.run(
        [sys.executable, script, tmp_path],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=8 * PATIENCE,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    drawn = {path.name for path in tmp_path.glob("*.svg")}
    assert drawn == {"story.svg", "why.svg", "relaunch.svg"}
    pages = [PROJECT / "README.md", *(PROJECT / "docs").glob("*.md")]
    shown = {name for page in pages for name in re.findall(r"\]\((?:docs/)?images/(\w+\.svg)\)", page.read_text())}
    assert shown == drawn | {"jobs.svg", "logs.svg", "metrics.svg"}
    assert shown == {path.name for path in (PROJECT / "docs" / "images").glob("*.svg")}
    why = (tmp_path / "why.svg").read_text().replace("&#160;", " ")
    assert "FloatingPointError" in why
    assert not re.search(r"<text [^>]*> ", why), "librsvg drops spaces at the start of a text"
    assert (tmp_path / "story.svg").stat().st_size < 500_000
