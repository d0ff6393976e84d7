"""The command `stacks`: where all ranks of a job stand, and which of them holds up the others."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from ..settings.make_runner import make_runner
from .output import put, put_json, say

if TYPE_CHECKING:
    import argparse

    from ..diagnosis.stacks.conclusion import Conclusion
    from ..diagnosis.stacks.frames import Frame
    from ..diagnosis.stacks.take import ProcessStack, Take
    from ..settings.config import Settings

PAUSE_S = 2.0
"""Two takes so far apart tell a job that hangs from one that is slow."""


def _add_stacks(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("handle")
    parser.add_argument("--role", default="", help="the role; default: the first")
    parser.add_argument("--once", action="store_true", help="take the stacks once, without checking for progress")
    parser.add_argument(
        "--native", action="store_true", help="include frames of C and C++; pauses each rank for seconds"
    )
    parser.add_argument("--all", action="store_true", help="print the frames of every rank, not of one rank per group")
    parser.add_argument("--json", action="store_true", help="print JSON")


def _stacks(arguments: Any, settings: Settings) -> int:
    from ..diagnosis.stacks.conclusion import conclude
    from ..diagnosis.stacks.ended import error_texts
    from ..diagnosis.stacks.kept import keep_take
    from ..diagnosis.stacks.take import take_stacks

    with make_runner(settings) as runner:
        earlier = None
        take = take_stacks(runner, arguments.handle, role=arguments.role, native=arguments.native)
        if take.ranks and not arguments.once:
            earlier = take
            time.sleep(PAUSE_S)
            take = take_stacks(runner, arguments.handle, role=take.role, native=arguments.native)
        found = conclude(take, earlier, error_texts(runner, take))
    if take.ranks:
        take.pace = found.pace
        keep_take(take)
    if arguments.json:
        put_json(_as_data(take, found))
    else:
        _print(take, found, arguments.all)
    for who, why in take.not_read:
        say(f"not read: {who}: {why}")
    if take.other_roles:
        say(f"{take.role} only; --role takes another: {', '.join(take.other_roles)}")
    return 0


def _print(take: Take, found: Conclusion, every_rank: bool) -> None:
    from ..diagnosis.recorder.verdict import name_ranks

    put(found.sentence)
    for detail in found.details:
        put(f"  {detail}")
    if found.pace:
        put(f"  {found.pace_sentence}")
    for group in found.groups:
        where = f" {group.place.place}" if group.place and group.words.endswith(" at") else ""
        put(f"\n{name_ranks(group.ranks)}: {group.words}{where}")
        for rank in group.ranks if every_rank else group.ranks[:1]:
            stack = take.ranks.get(rank)
            if stack is not None:
                put(f"  rank {rank}, pid {stack.pid} on {stack.host}, {stack.way or 'not read'}")
            for frame in _frames(stack) if stack else group.frames:
                put(_line(frame, take))


def _frames(stack: ProcessStack) -> tuple[Frame, ...]:
    from ..diagnosis.stacks.frames import main_frames

    return main_frames(stack.threads)


def _line(frame: Frame, take: Take) -> str:
    line = f'    File "{frame.file}", line {frame.line}, in {frame.function}'
    source = take.sources.get(frame.file, {}).get(frame.line, "").strip()
    return f"{line}\n      {source}" if source else line


def _as_data(take: Take, found: Conclusion) -> dict[str, Any]:
    return {
        "handle": take.handle,
        "role": take.role,
        "at": take.at,
        "seconds": take.seconds,
        "world_size": take.world_size,
        "sentence": found.sentence,
        "culprits": list(found.culprits),
        "pace": found.pace,
        "details": list(found.details),
        "groups": [
            {
                "standing": group.standing.name,
                "ranks": list(group.ranks),
                "place": group.place.place if group.place else "",
                "function": group.function or (group.place.function if group.place else ""),
            }
            for group in found.groups
        ],
        "processes": [
            {
                "rank": stack.rank, "replica": stack.replica, "host": stack.host, "pid": stack.pid,
                "is_rank": stack.is_main, "name": stack.name, "state": stack.state, "waits_for": stack.waits_for,
                "way": stack.way, "tried": [list(item) for item in stack.tried],
                "threads": [
                    {
                        "name": thread.name,
                        "is_main": thread.is_main,
                        "frames": [{"function": f.function, "file": f.file, "line": f.line} for f in thread.frames],
                    }
                    for thread in stack.threads
                ],
            }
            for stack in take.processes
        ],
        "not_read": [{"what": what, "why": why} for what, why in take.not_read],
    }  # fmt: skip


COMMANDS = {"stacks": (_add_stacks, _stacks)}
