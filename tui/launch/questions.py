"""The questions before a sweep is launched, and before a folder of another user is trusted."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import wrap
from typing import TYPE_CHECKING

from ...logs.text.sanitize import plain
from ..format import count, cut
from ..ui.dialog import MOST_LISTED, TEXT_WIDTH, AskDialog
from ..ui.glyphs import Glyphs
from ..ui.palette import Text

if TYPE_CHECKING:
    from ...base.trust import UntrustedError
    from .plan import LaunchPlan


def sweep_dialog(plans: Sequence[LaunchPlan], glyphs: Glyphs) -> AskDialog:
    """Return the question before several jobs are launched."""
    body = [Text(cut(plain(plans[0].name), TEXT_WIDTH, glyphs.cut), "bold $style-text"), Text()]
    body += [
        Text(cut(f"{number:>4}  {plain(plan.label)}", TEXT_WIDTH, glyphs.cut), "$style-text")
        for number, plan in enumerate(plans[:MOST_LISTED], 1)
    ]
    if len(plans) > MOST_LISTED:
        body.append(Text(f"      and {len(plans) - MOST_LISTED} more", "$style-faint"))
    body += [Text(), Text("They share a group, which the table can show and filter.", "$style-muted"), Text()]
    jobs = count(len(plans), "job")
    return AskDialog(f"Launch {jobs}?", body, {"": "Back to the form", "ctrl+s": f"Launch {jobs}"}, len(plans))


def trust_dialog(error: UntrustedError) -> AskDialog:
    """Return the question whether the folder of a refused file is trusted."""
    paragraphs = (
        (f"{error.reason}. Its code runs with your permissions.", "$style-text"),
        (f"If you trust it, everything in {error.folder} is trusted from now on.", "$style-muted"),
    )
    body = []
    for text, style in paragraphs:
        body += [*(Text(line, style) for line in wrap(plain(text), TEXT_WIDTH)), Text()]
    return AskDialog("Trust this folder?", body, {"": "Back", "y": "Trust"})
