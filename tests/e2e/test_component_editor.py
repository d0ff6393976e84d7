"""A component's file is opened in the editor, corrected there, and can be launched: by keys, in a real terminal."""

import sys

import pytest

pytestmark = pytest.mark.slow

FAULTY = '''
from torchx_tui.specs import AppDef, Role

def job(msg) -> AppDef:
    """Say it.

    Args:
        msg: words
    """
    return AppDef("job", [Role("r", "", entrypoint="echo", args=[msg])])
'''

# An editor as any other: it reads the keyboard, prints, and writes the file.
EDITOR = """
import sys
from pathlib import Path

*options, name = sys.argv[1:]
print("EDITING", *options, Path(name).name, flush=True)
typed = input()
path = Path(name)
path.write_text(path.read_text().replace("msg)", typed + ")", 1))
"""


def test_fault_is_corrected_in_the_editor(terminal, tmp_path):
    (tmp_path / "jobs.py").write_text(FAULTY)
    # Known by its name: it is told the line as vi is.
    editor = tmp_path / "bin" / "vi"
    editor.parent.mkdir()
    editor.write_text(f"#!{sys.executable}\n{EDITOR}")
    editor.chmod(0o755)
    app = terminal(environ={"EDITOR": str(editor), "VISUAL": ""}, wait="No jobs yet")
    app.press("n", wait="jobs.py:job")
    app.press("jobs", wait="Missing type annotation for argument 'msg'")
    app.press("ctrl+e", wait=r"EDITING \+4 jobs\.py")
    # Clear a late answer of the terminal from the line.
    app.press(
        "ctrl+u",
        "msg: str",
        "enter",
        wait=lambda text: "Component" in text and "cannot be used" not in text and "enter fill the form" in text,
    )
    # The search is as it was, and the cursor on the same component.
    app.wait(r"1 of 12")
    app.press("enter", wait="msg is missing")
    # A key before the field has the focus would go elsewhere.
    app.wait("^▌msg")
    app.press("hello", wait="ready")
    app.press("ctrl+s", wait="Succeeded")
