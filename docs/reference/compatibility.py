"""Writes docs/reference/compatibility.md, what differs from TorchX: ``python docs/reference/compatibility.py``."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))

from interop.differences_page import compatibility_page

if __name__ == "__main__":
    Path(__file__).with_suffix(".md").write_text(compatibility_page(), encoding="utf-8")
