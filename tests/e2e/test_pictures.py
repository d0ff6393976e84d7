"""The README's pictures: its story can be played as it is told, and no picture is missing."""

import re
import subprocess
import sys
from pathlib import Path

from support.waiting import PATIENCE

PROJECT = Path(__file__).parents[2]


def test_the_story_of_the_readme_is_drawn_from_a_run(tmp_path):
    script = PROJECT / "docs" / "images" / "pictures.py"
    ended = subprocess.run(
        [sys.executable, script, tmp_path], cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert ended.returncode == 0, ended.stderr
    drawn = {path.name for path in tmp_path.glob("*.svg")}
    assert drawn == {"launch.svg", "why.svg", "relaunch.svg", "mended.svg"}
    shown = set(re.findall(r"\]\(docs/(\w+\.svg)\)", (PROJECT / "README.md").read_text()))
    assert shown == drawn | {"jobs.svg"}
    assert shown == {path.name for path in (PROJECT / "docs" / "images").glob("*.svg")}
    why = (tmp_path / "why.svg").read_text().replace("&#160;", " ")
    assert "FloatingPointError" in why
