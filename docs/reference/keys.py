"""Writes docs/reference/keys.md, the keys and their names: ``python docs/reference/keys.py``."""

from pathlib import Path

from torchx_tui.tui.keymap import keys_page

if __name__ == "__main__":
    Path(__file__).with_suffix(".md").write_text(keys_page(), encoding="utf-8")
