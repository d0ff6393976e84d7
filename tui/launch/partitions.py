"""Partitions with room for what is in the form: free nodes, limits, and when the backend would start it."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING

from rich.text import Text

from ...backends.abilities import SuggestsPartitions
from ...base.errors import describe_error
from ...logs.text.sanitize import plain
from ..format import clock, cut, duration
from ..ui.palette import STYLES
from .messages import PartitionsFound

if TYPE_CHECKING:
    from textual.timer import Timer

    from ...backends.runner import Runner
    from .form_editor import FormEditor
    from .plan import LaunchPlan

# So long nobody has typed (s) before estimates are asked for: each is a run of the backend's scheduler.
_PAUSE_S = 1.5


class PartitionQuery:
    """Asks while somebody looks at the partitions, once for each state of the form: it costs the backend.

    Where they stand beside the form all the time, it waits until nobody has typed for a moment.

    Args:
        editor: the editor of the form.
    """

    def __init__(self, editor: FormEditor) -> None:
        self._editor = editor
        self._asked = -1
        self._waiting: Timer | None = None

    def update(self) -> None:
        """Ask if they are shown, and the form has changed since the last question."""
        if self._waiting is not None:
            self._waiting.stop()
        if self._editor.preview.tab == "partitions":
            if self._asked != self._editor.dry_run.generation:
                self._editor.preview.show_partitions(None)
            self._ask_now()
        elif self._editor.preview.has_panel:
            self._waiting = self._editor.set_timer(_PAUSE_S, self._ask_now)

    def _ask_now(self) -> None:
        editor, model = self._editor, self._editor.model
        generation = editor.dry_run.generation
        if model is None or model.errors() or self._asked == generation:
            return
        self._asked = generation
        work = partial(self._ask, generation, model.plan())
        editor.run_worker(work, thread=True, group="partitions", exclusive=True, exit_on_error=False)

    def _ask(self, generation: int, plan: LaunchPlan) -> None:
        dashboard = self._editor.dashboard
        found = find_partitions(dashboard.runner, plan)
        if generation == self._editor.dry_run.generation:
            dashboard.post_to(self._editor.preview, found)


def find_partitions(runner: Runner, plan: LaunchPlan) -> PartitionsFound:
    """Return where there is room for a launch; it may take seconds."""
    at = time.time()
    try:
        app = plan.app()
        scheduler = runner.scheduler(plan.scheduler)
        partitions = scheduler.partitions(app, plan.cfg) if isinstance(scheduler, SuggestsPartitions) else []
    except Exception as error:
        return PartitionsFound([], describe_error(error), at)
    return PartitionsFound(partitions, "", at)


def partitions_text(found: PartitionsFound | None, *, is_narrow: bool = False) -> Text:
    """Return partitions with their free nodes and GPUs, limits, and when the launch would start there.

    Args:
        found: the answer; None while there is none.
        is_narrow: say only how long it is until a start.
    """
    if found is None:
        return Text("Asking the backend for its estimates", STYLES.faint)
    if found.error:
        return Text(plain(found.error), STYLES.removed)
    text = Text(end="", no_wrap=True)
    text.append(f"{'PARTITION':<13}{'NODES':>7}{'GPUS':>8}  {'LIMIT':<7} STARTS\n", STYLES.faint)
    for partition in found.partitions:
        gpus = f"{partition.gpus_free}/{partition.gpus}" if partition.gpus else "-"
        limit = duration(partition.limit) if partition.limit is not None else "none"
        text.append(f"{cut(plain(partition.name), 12, '~'):<13}", STYLES.text)
        text.append(f"{f'{partition.free}/{partition.nodes}':>7}{gpus:>8}  {limit:<7} ", STYLES.muted)
        if partition.fault:
            text.append(f"{plain(partition.fault)}\n", STYLES.pending)
        else:
            words = start_words(partition.start, found.at) if partition.start else ""
            text.append(f"{words.rpartition('  ')[2] if is_narrow else words}\n", STYLES.text)
    asked = f"free of all; asked {clock(found.at, found.at)}"
    text.append(f"\n{asked}{'' if is_narrow else ', with the request as it stands'}", STYLES.faint)
    return text


def start_words(at: float, now: float) -> str:
    """Return when something starts: now, or the time of day or date, and how long that is from now."""
    return "now" if at - now < 60 else f"{clock(at, now)}  in {duration(at - now)}"
