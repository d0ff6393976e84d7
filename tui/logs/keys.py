"""The keys of a log: as in less and vim where those have one."""

from __future__ import annotations

from textual.binding import Binding, BindingType

LOG_BINDINGS: list[BindingType] = [
    Binding("f,G,end", "follow", "Follow", id="logs.follow", key_display="f G", show=False),
    Binding("g,home", "start", "First line", id="logs.start", key_display="g", show=False),
    Binding("j,down", "scroll(1)", "Down", id="logs.down", key_display="j", show=False),
    Binding("k,up", "scroll(-1)", "Up, and pause", id="logs.up", key_display="k", show=False),
    Binding("ctrl+d", "page(0.5)", "Half a page down", id="logs.half_down", show=False),
    Binding("ctrl+u", "page(-0.5)", "Half a page up", id="logs.half_up", show=False),
    Binding("pagedown", "page(1)", "A page down", id="logs.page_down", show=False),
    Binding("pageup", "page(-1)", "A page up", id="logs.page_up", show=False),
    Binding("right", "side(1)", "Right", id="logs.right", show=False),
    Binding("left", "side(-1)", "Left", id="logs.left", show=False),
    Binding("w", "wrap", "Wrap long lines", id="logs.wrap", show=False),
    Binding("t", "times", "Times: off, clock, milliseconds, since the start", id="logs.times", show=False),
    Binding("o", "stream", "stdout, stderr, combined", id="logs.stream", show=False),
    Binding("less_than_sign", "neighbour(-1)", "Previous replica", id="logs.previous", key_display="<", show=False),
    Binding("greater_than_sign", "neighbour(1)", "Next replica", id="logs.next", key_display=">", show=False),
    Binding("a", "merged", "All replicas merged", id="logs.merged", show=False),
    Binding("number_sign", "choose", "Choose a replica", id="logs.choose", key_display="#", show=False),
    Binding("v", "select", "Select lines", id="logs.select", show=False),
    Binding("y", "copy", "Copy the selected lines, or this one", id="logs.copy", show=False),
    Binding("S", "save", "Save to a file", id="logs.save", show=False),
    Binding("ctrl+g", "ask('jump')", "Go to a line or a time", id="logs.jump", show=False),
    Binding("T", "since", "Only the last 1m, 10m, 1h, or all", id="logs.since", show=False),
    Binding("m", "plain", "Plain view in a pager", id="logs.plain", show=False),
    Binding("slash", "ask('search')", "Search", id="logs.search", key_display="/", show=False),
    Binding("n", "match(1)", "Next match", id="logs.match", show=False),
    Binding("N", "match(-1)", "Previous match", id="logs.match_back", show=False),
    Binding("ampersand", "ask('filter')", "Keep lines, &! drop them", id="logs.filter", key_display="&", show=False),
    Binding("e", "error(1)", "Next error", id="logs.error", show=False),
    Binding("E", "error(-1)", "Previous error", id="logs.error_back", show=False),
    Binding("escape", "leave", "Leave the selection, then the search", id="logs.leave", show=False),
    *(
        Binding(str(number), f"replica({number})", f"Replica {number}", id=f"logs.replica_{number}", show=False)
        for number in range(10)
    ),
]
