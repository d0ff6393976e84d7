"""The command `stacks`: the stacks of all ranks of a job, and the rank that blocks the others."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..settings.make_runner import make_runner
from .output import put, put_json, say

if TYPE_CHECKING:
    import argparse

    from ..diagnosis.frames import Frame
    from ..diagnosis.stacks.conclusion import Conclusion
    from ..diagnosis.stacks.snapshot import StackSnapshot
    from ..settings.config import Settings

PAUSE_S = 2.0
"""Seconds between the two snapshots that tell a job that hangs from one that is slow."""


def _add_stacks(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("handle")
    parser.add_argument("--role", default="", help="the role; default: the first")
    parser.add_argument("--once", action="store_true", help="read the stacks once, without checking for progress")
    parser.add_argument(
        "--native", action="store_true", help="include frames of C and C++; pauses each rank for seconds"
    )
    parser.add_argument("--all", action="store_true", help="print the frames of every rank, not of one rank per group")
    parser.add_argument("--json", action="store_true", help="print JSON")


def _stacks(arguments: Any, settings: Settings) -> int:
    from ..diagnosis.stacks.collect import take_snapshot
    from ..diagnosis.stacks.conclusion import conclude
    from ..diagnosis.stacks.kept import keep_snapshot
    from ..diagnosis.stacks.rank_errors import read_rank_errors
    from ..diagnosis.stacks.text import describe_unread

    with make_runner(settings) as runner:
        earlier = None
        snapshot = take_snapshot(runner, arguments.handle, role=arguments.role, native=arguments.native)
        if snapshot.ranks and not arguments.once:
            earlier = snapshot
            time.sleep(PAUSE_S)
            snapshot = take_snapshot(runner, arguments.handle, role=snapshot.role, native=arguments.native)
        found = conclude(snapshot, earlier, read_rank_errors(runner, snapshot))
    if snapshot.ranks:
        keep_snapshot(replace(snapshot, pace=found.pace))
    if arguments.json:
        put_json(_as_data(snapshot, found))
    else:
        _print(snapshot, found, arguments.all)
    for name, why in describe_unread(snapshot):
        say(f"not read: {name}: {why}")
    if snapshot.other_roles:
        say(f"{snapshot.role} only; other roles, for --role: {', '.join(snapshot.other_roles)}")
    return 0


def _print(snapshot: StackSnapshot, found: Conclusion, every_rank: bool) -> None:
    from ..diagnosis.frames import main_frames
    from ..diagnosis.ranks import name_ranks
    from ..diagnosis.stacks.text import describe_group

    put(found.sentence)
    for detail in found.details:
        put(f"  {detail}")
    if found.pace:
        put(f"  {found.pace_sentence}")
    for group in found.groups:
        put(f"\n{name_ranks(group.ranks)}: {describe_group(group)}")
        for rank in group.ranks if every_rank else group.ranks[:1]:
            stack = snapshot.ranks.get(rank)
            if stack is not None:
                put(f"  rank {rank}, pid {stack.pid} on {stack.host}, {stack.way or 'not read'}")
            for frame in main_frames(stack.threads) if stack else group.frames:
                put(_line(frame, snapshot))


def _line(frame: Frame, snapshot: StackSnapshot) -> str:
    line = f'    File "{frame.file}", line {frame.line}, in {frame.function}'
    source = snapshot.sources.get(frame.file, {}).get(frame.line, "").strip()
    return f"{line}\n      {source}" if source else line


def _as_data(snapshot: StackSnapshot, found: Conclusion) -> dict[str, Any]:
    from ..diagnosis.stacks.text import describe_unread

    return {
        "handle": snapshot.handle,
        "role": snapshot.role,
        "at": snapshot.at,
        "seconds": snapshot.seconds,
        "world_size": snapshot.world_size,
        "sentence": found.sentence,
        "culprits": list(found.blocking),
        "pace": found.pace,
        "details": list(found.details),
        "groups": [
            {
                "standing": group.activity.name,
                "ranks": list(group.ranks),
                "place": group.frame.location if group.frame else "",
                "function": group.function or (group.frame.function if group.frame else ""),
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
            for stack in snapshot.processes
        ],
        "not_read": [{"what": what, "why": why} for what, why in describe_unread(snapshot)],
    }  # fmt: skip


COMMANDS = {"stacks": (_add_stacks, _stacks)}
