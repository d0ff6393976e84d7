"""The texts of the Stacks screen: groups, frames with their sources, children, snapshots."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ...diagnosis.frames import Frame, child_frame, main_frames
from ...diagnosis.ranks import list_ranks
from ...diagnosis.stacks.conclusion import Conclusion
from ...diagnosis.stacks.groups import RankGroup
from ...diagnosis.stacks.snapshot import ProcessStack, StackSnapshot
from ...diagnosis.stacks.text import describe_activity, describe_reading, describe_unread
from ...logs.text.sanitize import plain
from ..format import count, cut
from ..ui.glyphs import Glyphs
from ..ui.palette import Text

# Innermost frames that are shown of the group to compare with.
_MAX_COMPARED = 8
_NARROW = 48


def short_path(path: str) -> str:
    """Return a file as people know it: ``train.py``, ``torch/…/distributed_c10d.py``."""
    parts = plain(path).split("/")
    for folder in ("site-packages", "dist-packages"):
        if folder in parts[:-2]:
            package = parts[parts.index(folder) + 1 :]
            return (
                package[0]
                if len(package) == 1
                else f"{package[0]}/…/{package[-1]}"
                if len(package) > 2
                else "/".join(package)
            )
    return parts[-1]


def group_text(group: RankGroup, is_blocking: bool, width: int, glyphs: Glyphs) -> Text:
    """Return a group in two rows: its ranks and what they do; the function and its line."""
    ranks = list_ranks(group.ranks)
    who = f"{count(len(group.ranks), 'rank'):>8}  "
    word = describe_activity(group) if group.wait else group.activity.value
    frame, room = group.frame, max(4, width - 4 - len(who) - len(word))
    called = group.function or (frame.function if frame else "")
    where = f"{short_path(frame.file)}:{frame.line}" if frame else group.kernel
    return Text.assemble(
        (" ! " if is_blocking else "   ", "$style-pending"),
        (who, "$style-text"),
        (f"{cut(ranks, room, glyphs.cut):<{room}} ", "$style-text"),
        (word, "$style-pending" if is_blocking else "$style-faint"),
        (f"\n    {cut(plain(called), 24, glyphs.cut)}", "$style-muted"),
        (f"  {where}", "$style-muted"),
    )


def alike_below(groups: Sequence[RankGroup]) -> int:
    """Return how many of the outermost frames all groups have in common."""
    stacks = [group.frames[::-1] for group in groups if group.frames]
    if len(stacks) < 2:
        return 0
    alike = 0
    for frames in zip(*stacks, strict=False):
        if any(frame != frames[0] for frame in frames):
            break
        alike += 1
    return alike


def frames_text(
    frames: Sequence[Frame], alike: int, ranks: int, glyphs: Glyphs, *, with_library: bool, width: int
) -> Text:
    """Return a stack, innermost first; the user's own is bright, the first frame unlike the others is marked.

    Args:
        frames: the stack.
        alike: how many of its outermost frames all ranks share.
        ranks: how many ranks that are.
        glyphs: the glyphs in use.
        with_library: whether frames of libraries are shown.
        width: the cells of a row.
    """
    text = Text()
    name_width = min(26, max(12, width // 3))
    text.append(f"  {'#':>2}  {'FUNCTION':<{name_width}} FILE:LINE", "$style-faint")
    first_alike = len(frames) - alike
    hidden = 0
    for number, frame in enumerate(frames):
        if alike and number == first_alike:
            words = f"the same on all {ranks}" if width < _NARROW else f"frames below are the same on all {ranks} ranks"
            text.append(f"\n      {glyphs.rule * 2} {words} {glyphs.rule * 2}", "$style-faint")
        if frame.is_library and not with_library:
            hidden += 1
            continue
        differs = alike and number == first_alike - 1
        style = "$style-faint" if frame.is_library else "bold $style-text"
        text.append(f"\n{glyphs.differs if differs else ' '} ", "$style-pending")
        text.append(f"{number:>2}  ", "$style-faint")
        text.append(f"{cut(plain(frame.function), name_width, glyphs.cut):<{name_width}} ", style)
        text.append(cut(f"{short_path(frame.file)}:{frame.line}", width - name_width - 7, glyphs.cut), style)
    if hidden:
        text.append(f"\n      {count(hidden, 'frame')} of libraries hidden", "$style-faint")
    return text


def source_text(snapshot: StackSnapshot, frames: Iterable[Frame], host: str, glyphs: Glyphs, width: int) -> Text:
    """Return the source lines around the innermost frame of the user's code; empty if they were not read."""
    frame = next((frame for frame in frames if not frame.is_library and frame.file in snapshot.sources), None)
    if frame is None:
        return Text()
    lines = snapshot.sources[frame.file]
    shown = [number for number in range(frame.line - 3, frame.line + 4) if number in lines]
    if frame.line not in shown:
        return Text()
    text = Text()
    head = f"{short_path(frame.file)}  {shown[0]} to {shown[-1]}, as on {host} now"
    text.append(head, "bold $style-text")
    for number in shown:
        is_here = number == frame.line
        text.append(
            f"\n{glyphs.focus_bar if is_here else ' '}{number:>5}  ", "$style-accent" if is_here else "$style-faint"
        )
        line = cut(plain(lines[number].expandtabs(4)), max(10, width - 9), glyphs.cut)
        text.append(line, "bold $style-text" if is_here else "$style-muted")
    return text


def compared_text(other: RankGroup, glyphs: Glyphs, width: int) -> Text:
    """Return the innermost frames of the group that most ranks are in."""
    text = Text()
    head = f"the {count(len(other.ranks), 'other')}" if len(other.ranks) > 1 else f"rank {other.ranks[0]}"
    text.append(f"Compared with {head}", "bold $style-text")
    if len(other.ranks) > 1:
        text.append(f"  shown: rank {other.ranks[0]}", "$style-faint")
    for number, frame in enumerate(other.frames[:_MAX_COMPARED]):
        style = "$style-faint" if frame.is_library else "$style-text"
        name = cut(plain(frame.function), 22, glyphs.cut)
        text.append(
            f"\n  {number:>2}  {name:<22} {cut(f'{short_path(frame.file)}:{frame.line}', width - 30, glyphs.cut)}",
            style,
        )
    return text


def threads_text(stack: ProcessStack, glyphs: Glyphs, width: int) -> Text:
    """Return every thread of a process but the main one, its innermost frame and its innermost of the user's own."""
    text = Text()
    for thread in stack.threads:
        if thread.is_main:
            continue
        text.append(f"\n\n{cut(plain(thread.name) or 'a thread', width, glyphs.cut)}", "bold $style-text")
        for number, frame in enumerate(thread.frames):
            style = "$style-faint" if frame.is_library else "$style-text"
            line = (
                f"{number:>2}  {cut(plain(frame.function), 24, glyphs.cut):<24} {short_path(frame.file)}:{frame.line}"
            )
            text.append(f"\n  {cut(line, width - 2, glyphs.cut)}", style)
    return text


def children_text(children: Sequence[ProcessStack], width: int, glyphs: Glyphs) -> Text:
    """Return what the children of a rank do, such as loader workers, a row each."""
    text = Text()
    for stack in children:
        frames = main_frames(stack.threads)
        own = child_frame(stack.threads) or (frames[0] if frames else None)
        is_held = stack.state == "D"
        if is_held:
            does = f"D, {stack.waits_for or 'held by the kernel'}"
        elif own is None:
            does = "not read" if stack.tried else stack.waits_for or "no Python"
        else:
            does = f"{plain(own.function)}  {short_path(own.file)}:{own.line}"
        text.append("\n" if text else "")
        text.append(" ! " if is_held else "   ", "$style-pending")
        text.append(f"{cut(stack.name, 16, glyphs.cut):<16} ", "$style-text")
        text.append(cut(does, max(6, width - 21), glyphs.cut), "$style-muted")
    return text


def finding_text(found: Conclusion) -> Text:
    """Return the conclusion, and its details in one line below."""
    return Text.assemble(
        ("! " if found.blocking else "", "$style-pending"),
        (plain(found.sentence), "bold $style-text"),
        (f"\n{plain('; '.join(found.details))}" if found.details else "", "$style-muted"),
    )


def how_text(snapshot: StackSnapshot, clock: str) -> Text:
    """Return when and how the snapshot was taken, and how long it took."""
    how = f"   {describe_reading(snapshot)}, {snapshot.seconds:.1f} s"
    dumps = f"   flight recorder of {count(len(snapshot.dumps), 'rank')}" if snapshot.dumps else ""
    return Text.assemble((clock, "$style-text"), (how, "$style-muted"), (dumps, "$style-muted"))


def unread_text(snapshot: StackSnapshot) -> Text:
    """Return what was not read, and why."""
    unread = describe_unread(snapshot)
    if not unread:
        return Text()
    who, why = unread[0]
    more = f" and {len(unread) - 1} more" if len(unread) > 1 else ""
    return Text(f"not read: {plain(who)}{more}, {plain(why)}", "$style-pending")
