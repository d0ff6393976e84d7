"""The command `stacks`: the stacks of all ranks of a job, and the rank that blocks the others."""

from __future__ import annotations

import dataclasses
import time
from typing import TYPE_CHECKING, Any

from ..base.validation import JsonObject
from ..settings.make_runner import make_runner
from .output import put, put_json, say

if TYPE_CHECKING:
    from ..diagnosis.frames import Frame
    from ..diagnosis.stacks.conclusion import Conclusion
    from ..diagnosis.stacks.snapshot import StackSnapshot
    from ..settings.config import Settings

_PROCESS_KEYS = ("rank", "replica", "host", "pid", "name", "state", "waits_for", "way", "tried")


def stacks(arguments: Any, settings: Settings) -> int:
    from ..diagnosis.stacks import take
    from ..diagnosis.stacks.text import describe_unread

    with make_runner(settings) as runner:
        snapshot, found = take.take_stacks(runner, arguments.handle, role=arguments.role, native=arguments.native)
        # Reading native frames stops each rank for seconds: once is enough.
        if snapshot.ranks and not (arguments.once or arguments.native):
            time.sleep(take.PAUSE_S)
            snapshot, found = take.take_stacks(runner, arguments.handle, role=snapshot.role, earlier=snapshot)
    if arguments.json:
        put_json(_as_json(snapshot, found))
    else:
        _print(snapshot, found, arguments.all)
    for name, reason in describe_unread(snapshot):
        say(f"not read: {name}: {reason}")
    if snapshot.other_roles:
        say(f"{snapshot.role} only; --role takes another: {', '.join(snapshot.other_roles)}")
    return 0


def _print(snapshot: StackSnapshot, found: Conclusion, every_rank: bool) -> None:
    from ..diagnosis.frames import main_frames
    from ..diagnosis.ranks import name_ranks
    from ..diagnosis.stacks.text import describe_group

    for line in (found.sentence, *(f"  {detail}" for detail in (*found.details, found.pace_sentence) if detail)):
        put(line)
    for group in found.groups:
        put(f"\n{name_ranks(group.ranks)}: {describe_group(group)}")
        for rank in group.ranks if every_rank else group.ranks[:1]:
            frames = group.frames
            if stack := snapshot.ranks.get(rank):
                put(f"  rank {rank}, pid {stack.pid} on {stack.host}, {stack.way or 'not read'}")
                frames = main_frames(stack.threads)
            for frame in frames:
                _print_frame(frame, snapshot)


def _print_frame(frame: Frame, snapshot: StackSnapshot) -> None:
    put(f'    File "{frame.file}", line {frame.line}, in {frame.function}')
    if source := snapshot.sources.get(frame.file, {}).get(frame.line, "").strip():
        put(f"      {source}")


def _as_json(snapshot: StackSnapshot, found: Conclusion) -> JsonObject:
    from ..diagnosis.stacks.text import describe_unread

    return {
        **{name: getattr(snapshot, name) for name in ("handle", "role", "at", "seconds", "world_size")},
        **{name: getattr(found, name) for name in ("sentence", "pace", "details")},
        "culprits": found.blocking,
        "groups": [
            {
                "standing": group.activity.name,
                "ranks": group.ranks,
                "place": group.frame.location if group.frame else "",
                "function": group.function or (group.frame.function if group.frame else ""),
            }
            for group in found.groups
        ],
        "processes": [
            {
                **{name: getattr(stack, name) for name in _PROCESS_KEYS},
                "is_rank": stack.is_main,
                "threads": list(map(dataclasses.asdict, stack.threads)),
            }
            for stack in snapshot.processes
        ],
        "not_read": [{"what": name, "why": reason} for name, reason in describe_unread(snapshot)],
    }
