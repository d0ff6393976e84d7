"""The glyphs that stand for states, rules and cuts, in Unicode and in ASCII."""

from __future__ import annotations

from dataclasses import dataclass

from ...specs.status import AppState


@dataclass(frozen=True)
class Glyphs:
    """One set of glyphs; every glyph is one cell wide, the radio glyphs are three."""

    submitted: str
    pending: str
    running: str
    succeeded: str
    failed: str
    cancelled: str
    unknown: str
    mark: str
    rule: str
    focused_rule: str
    bar_out: str
    bar_err: str
    quote: str
    focus_bar: str
    cut: str
    descending: str
    ascending: str
    path: str
    radio_on: str
    radio_off: str
    ok: str
    bad: str
    differs: str
    none: str

    def state(self, state: AppState) -> str:
        """Return the glyph of ``state``; what was not submitted yet has Submitted's."""
        return {
            AppState.UNSUBMITTED: self.submitted,
            AppState.SUBMITTED: self.submitted,
            AppState.PENDING: self.pending,
            AppState.RUNNING: self.running,
            AppState.SUCCEEDED: self.succeeded,
            AppState.FAILED: self.failed,
            AppState.CANCELLED: self.cancelled,
        }.get(state, self.unknown)


UNICODE = Glyphs(
    submitted="·",
    pending="○",
    running="●",
    succeeded="✓",
    failed="✗",
    cancelled="–",
    unknown="?",
    mark="◆",
    rule="─",
    focused_rule="━",
    bar_out="│",
    bar_err="┆",
    quote="▎",
    focus_bar="▌",
    cut="…",
    descending="↓",
    ascending="↑",
    path="›",
    radio_on="(●)",
    radio_off="( )",
    ok="✓",
    bad="✗",
    differs="≠",
    none="–",
)

# N stands for new: Submitted and Succeeded cannot share a letter.
ASCII = Glyphs(
    submitted="N",
    pending="P",
    running="R",
    succeeded="S",
    failed="F",
    cancelled="C",
    unknown="?",
    mark="*",
    rule="-",
    focused_rule="=",
    bar_out="|",
    bar_err=":",
    quote="|",
    focus_bar=">",
    cut="~",
    descending="v",
    ascending="^",
    path=">",
    radio_on="(*)",
    radio_off="( )",
    ok="+",
    bad="!",
    differs="#",
    none="-",
)
