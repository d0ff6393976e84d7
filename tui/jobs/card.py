"""The card under the table: what the job at the cursor is, without a key."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from textual.containers import Horizontal
from textual.reactive import reactive
from textual.widget import Widget

from ...specs.status import MISSING, AppState, ReplicaState
from ..dashboard import OnDashboard
from ..format import cut, state_word
from ..rows import JobRow, backend_word
from ..ui.drawing import guard_render
from ..ui.job_cells import name_text, state_style, state_times_text
from ..ui.palette import Text
from ..ui.pane import Pane
from ..ui.theme import glyphs_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...backends.api import DescribeAppResponse
    from ...diagnosis.stacks.conclusion import Conclusion
    from ...specs.status import ReplicaStatus
    from ..messages import JobDescribed
    from ..ui.glyphs import Glyphs

LABEL_WIDTH = 12
# The facts and a chart need so many cells and rows of the screen.
_WIDTH_WITH_CHART, _ROWS_WITH_CHART = 90, 40
_FEWEST_POINTS = 2
# Replicas that are drawn in one line; more have rows.
_IN_A_LINE, _PER_ROW, _MOST_ROWS = 16, 25, 4


class JobCard(OnDashboard, Pane):
    """The job at the cursor: its state and why, then its facts; on a large screen a chart of its loss as well."""

    DEFAULT_CSS = """
    JobCard { height: 9; }
    JobCard.-large { height: 13; }
    JobCard #card-chart { width: 46; display: none; }
    JobCard.-large.-charted #card-chart { display: block; }
    """

    def __init__(self) -> None:
        self.body = CardBody()
        # A chart stands beside the facts where there is room.
        super().__init__("", Horizontal(self.body))
        self._job_name = ""
        self._handle = ""
        self._described: JobDescribed | None = None
        self._is_following = False

    def show(
        self, row: JobRow | None, described: DescribeAppResponse | None, now: float, found: Conclusion | None = None
    ) -> None:
        """Show a job, or nothing; of a stalled one what its last stacks mean."""
        self.set_class(row is not None, "-filled")
        if row is None or row.handle != self._handle:
            self._handle = row.handle if row else ""
            self.remove_class("-charted")
            self.body.slow = Text()
            if self._is_following:
                self.dashboard.feed.activities.leave(self, self._handle)
        if row is None:
            return
        self._job_name = row.name
        self._fit_title()
        self.body.facts = card_lines(row, described, glyphs_of(self.app), now, found)

    def follow(self, message: JobDescribed) -> None:
        """Read what the job at the cursor does, where there is room for its chart."""
        self._described = message
        if message.handle != self._handle or not self.has_class("-large"):
            return
        if not self._is_following:
            # Loaded when it is first needed: the first paint does not wait for it.
            from ..metrics.chart import ChartPane

            self._is_following = True
            self.query_one(Horizontal).mount(ChartPane(id="card-chart"))
        self.dashboard.feed.activities.follow(self, message.handle, message.described, message.logs)
        self.show_activity(message.handle)

    def show_activity(self, handle: str) -> None:
        """Draw the chart of a job, if it is the one shown."""
        from ...diagnosis.metrics.chart import Options, wants_log
        from ...diagnosis.progress.stalls import Kind
        from ...logs.text.sanitize import plain
        from ..metrics.chart import ChartPane

        activity = self.dashboard.feed.activity(handle)
        if activity is None or not self._is_following or handle != self._handle or not self.is_attached:
            return
        main, slow = activity.main, activity.observed(Kind.SLOW)
        self.body.slow = _fact("straggler", Text(f"! {plain(slow.sentence)}", "$style-pending")) if slow else Text()
        charted = main is not None and main.points >= _FEWEST_POINTS
        self.set_class(charted, "-charted")
        if main is not None and charted:
            self.query_one("#card-chart", ChartPane).show(main.name, [main], Options(log=wants_log(main)))

    def on_resize(self) -> None:
        """Cut the name for the new width; before the card is shown it has none."""
        is_large = self.size.width >= _WIDTH_WITH_CHART and self.app.size.height >= _ROWS_WITH_CHART
        self.set_class(is_large, "-large")
        if is_large and self._described is not None:
            self.follow(self._described)
        self._fit_title()

    def _fit_title(self) -> None:
        width = max(8, self.size.width - 8)
        self.rule.title = name_text(self._job_name, width, glyphs_of(self.app), bold=True)


class CardBody(Widget):
    """The lines of the card."""

    DEFAULT_CSS = "CardBody { width: 1fr; height: 1fr; padding: 0 1; text-wrap: nowrap; text-overflow: ellipsis; }"

    facts: reactive[tuple[Text, ...]] = reactive(())
    slow: reactive[Text] = reactive(Text)
    """Which replica is slower than the others, where one is."""

    @guard_render
    def render(self) -> Text:
        return Text("\n").join([*self.facts, *([self.slow] if self.slow else [])])


def card_lines(
    row: JobRow, described: DescribeAppResponse | None, glyphs: Glyphs, now: float, found: Conclusion | None = None
) -> tuple[Text, ...]:
    """Return the lines of the card: the state line, a blank one, then the facts."""
    head = state_times_text(row, glyphs, now)
    head.append(f"   {backend_word(row.scheduler, long=True)}", "$style-muted")
    lines = [head, _found_line(found) if found else _why_line(row)]
    facts: list[tuple[str, Text]] = []
    if row.component:
        component = Text(row.component, "$style-text", end="")
        component.append(f"  {row.arguments}", "$style-muted")
        facts.append(("component", component))
    if row.group:
        facts.append(("group", Text(row.group, "$style-text")))
    if described is not None:
        facts += _described_facts(described, glyphs)
    elif row.wanted:
        facts.append(("replicas", Text(f"{row.running}/{row.wanted}", "$style-text")))
    for label, value in facts[:6]:
        lines.append(_fact(label, value))
    return tuple(lines)


def _fact(label: str, value: Text) -> Text:
    return Text(f"{label:<{LABEL_WIDTH}}", "$style-faint", end="").append_text(value)


def _found_line(found: Conclusion) -> Text:
    from ...logs.text.sanitize import plain

    return Text(f"! {plain(found.sentence)}", "$style-pending")


def _why_line(row: JobRow) -> Text:
    # Of a job that goes on its notes count first, such as "unsupervised": the line is cut where it meets the edge.
    parts = (row.why, *row.notes) if row.is_final else (*row.notes, row.why)
    words = ", ".join(part for part in parts if part)
    return Text(words, "$style-muted")


def _described_facts(described: DescribeAppResponse, glyphs: Glyphs) -> list[tuple[str, Text]]:
    from ...logs.text.sanitize import plain

    facts: list[tuple[str, Text]] = []
    statuses = {status.role: status.replicas for status in described.roles_statuses}
    wanted = described.replica_counts
    for name in [*wanted][:2]:
        replicas = statuses.get(name, [])
        if len(replicas) > _IN_A_LINE:
            facts += _grid(replicas, glyphs)
            continue
        line = Text(f"{plain(name)}  ", "$style-text")
        for replica in replicas:
            line.append(glyphs.state(replica.state), state_style(replica.state))
        done = sum(r.state in (ReplicaState.RUNNING, ReplicaState.SUCCEEDED) for r in replicas)
        line.append(f"  {done}/{wanted[name]}", "$style-muted")
        facts.append(("replicas", line))
    if described.roles:
        role = described.roles[0]
        command = plain(" ".join([role.entrypoint, *role.args]).replace("\n", " "))
        if role.entrypoint != MISSING:
            facts.append(("command", Text(cut(command, 200, glyphs.cut), "$style-muted")))
        if role.resource.cpu > 0 or role.resource.gpu > 0:
            facts.append(("each", Text(_resource_words(role.resource), "$style-muted")))
    if described.log_dir:
        facts.append(("log dir", Text(plain(described.log_dir), "$style-muted")))
    return facts


def _grid(replicas: Sequence[ReplicaStatus], glyphs: Glyphs) -> list[tuple[str, Text]]:
    """Return rows of a sign for each of many replicas, such as an array's tasks, and the counts of their states.

    Of more than fit, those from the first on are shown that has not succeeded.
    """
    ordered = sorted(replicas, key=lambda replica: replica.id)
    rows = [ordered[start : start + _PER_ROW] for start in range(0, len(ordered), _PER_ROW)]
    first = next((n for n, row in enumerate(rows) if any(r.state is not ReplicaState.SUCCEEDED for r in row)), 0)
    start = max(0, min(first, len(rows) - _MOST_ROWS))
    counts = Counter(replica.state for replica in ordered)
    legend = [
        Text.assemble((glyphs.state(state), state_style(state)), (f" {number:,} {_count_word(state)}", "$style-muted"))
        for state, number in sorted(counts.items(), key=lambda item: item[0] is not ReplicaState.FAILED)
    ]
    facts = []
    for number, row in enumerate(rows[start : start + _MOST_ROWS]):
        line = Text(end="")
        for place, replica in enumerate(row):
            line.append(" " if place and place % 5 == 0 else "")
            line.append(glyphs.state(replica.state), state_style(replica.state))
        line.append(" " * (_PER_ROW + _PER_ROW // 5 + 1 - line.cell_len))
        line.append_text(Text("  ").join(legend[number : number + 1] if number < _MOST_ROWS - 1 else legend[number:]))
        facts.append((f"{row[0].id}-{row[-1].id}", line))
    return facts


def _count_word(state: AppState) -> str:
    return "done" if state is AppState.SUCCEEDED else state_word(state).lower()


def _resource_words(resource: object) -> str:
    cpu, gpu, memory = (getattr(resource, name) for name in ("cpu", "gpu", "memMB"))
    parts = []
    if cpu > 0:
        parts.append(f"{cpu} cpu")
    if gpu > 0:
        parts.append(f"{gpu} gpu")
    if memory > 0:
        parts.append(f"{memory / 1024:.1f} GB" if memory >= 1024 else f"{memory} MB")
    return "   ".join(parts)
