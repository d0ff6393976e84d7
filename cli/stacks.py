"""The command stacks: the stacks of all ranks of a job, and which rank holds up the others."""

from __future__ import annotations

import dataclasses
import time
from typing import TYPE_CHECKING, Any

from ..settings.make_runner import make_runner
from .output import put, put_json, say

if TYPE_CHECKING:
    from ..diagnosis.stacks.conclusion import Conclusion
    from ..diagnosis.stacks.frames import Frame
    from ..diagnosis.stacks.take import Take
    from ..settings.config import Settings

PAUSE_S = 2.0
"""The time between two snapshots, which tells a job that hangs from a slow one."""
_PROCESS_KEYS = ("rank", "replica", "host", "pid", "name", "state", "waits_for", "way", "tried")


def stacks(arguments: Any, settings: Settings) -> int:
    from ..diagnosis.stacks.conclusion import conclude
    from ..diagnosis.stacks.ended import error_texts
    from ..diagnosis.stacks.kept import keep_take
    from ..diagnosis.stacks.take import take_stacks

    with make_runner(settings) as runner:
        earlier = None
        take = take_stacks(runner, arguments.handle, role=arguments.role, native=arguments.native)
        # Reading native frames stops each rank for seconds: once is enough.
        if take.ranks and not (arguments.once or arguments.native):
            earlier = take
            time.sleep(PAUSE_S)
            take = take_stacks(runner, arguments.handle, role=take.role)
        found = conclude(take, earlier, error_texts(runner, take))
    if take.ranks:
        take.pace = found.pace
        keep_take(take)
    if arguments.json:
        put_json(_as_json(take, found))
    else:
        _print(take, found, arguments.all)
    for name, reason in take.not_read:
        say(f"not read: {name}: {reason}")
    if take.other_roles:
        say(f"{take.role} only; --role takes another: {', '.join(take.other_roles)}")
    return 0


def _print(take: Take, found: Conclusion, every_rank: bool) -> None:
    from ..diagnosis.recorder.verdict import name_ranks
    from ..diagnosis.stacks.frames import main_frames

    for line in (found.sentence, *(f"  {detail}" for detail in (*found.details, found.pace_sentence) if detail)):
        put(line)
    for group in found.groups:
        where = f" {group.place.place}" if group.place and group.words.endswith(" at") else ""
        put(f"\n{name_ranks(group.ranks)}: {group.words}{where}")
        for rank in group.ranks if every_rank else group.ranks[:1]:
            frames = group.frames
            if stack := take.ranks.get(rank):
                put(f"  rank {rank}, pid {stack.pid} on {stack.host}, {stack.way or 'not read'}")
                frames = main_frames(stack.threads)
            for frame in frames:
                _print_frame(frame, take)


def _print_frame(frame: Frame, take: Take) -> None:
    put(f'    File "{frame.file}", line {frame.line}, in {frame.function}')
    if source := take.sources.get(frame.file, {}).get(frame.line, "").strip():
        put(f"      {source}")


def _as_json(take: Take, found: Conclusion) -> dict[str, Any]:
    return {
        **{name: getattr(take, name) for name in ("handle", "role", "at", "seconds", "world_size")},
        **{name: getattr(found, name) for name in ("sentence", "culprits", "pace", "details")},
        "groups": [
            {
                "standing": group.standing.name,
                "ranks": group.ranks,
                "place": group.place.place if group.place else "",
                "function": group.function or (group.place.function if group.place else ""),
            }
            for group in found.groups
        ],
        "processes": [
            {
                **{name: getattr(stack, name) for name in _PROCESS_KEYS},
                "is_rank": stack.is_main,
                "threads": list(map(dataclasses.asdict, stack.threads)),
            }
            for stack in take.processes
        ],
        "not_read": [{"what": name, "why": reason} for name, reason in take.not_read],
    }
