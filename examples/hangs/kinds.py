"""Runs jobs that hang or fail in known ways, and tells whether the right rank is named; of healthy ones none may be.

    python examples/hangs/kinds.py --seeds 5            every kind, five ranks and steps each; prints a table
    python examples/hangs/kinds.py --healthy --seeds 5  the healthy kinds
    python examples/hangs/kinds.py --only sleep crossed
    python examples/hangs/kinds.py --ranks 16 --plain   more ranks, which average their gradients without DDP
    python examples/hangs/kinds.py --list

Needs torch. Each run is a job of this machine, launched as the dashboard launches it, and removed afterwards.
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
import socket
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from torchx_tui.backends.local.scheduler import LocalScheduler
from torchx_tui.backends.runner import Runner
from torchx_tui.diagnosis.stacks.collect import take_snapshot
from torchx_tui.diagnosis.stacks.conclusion import Conclusion, conclude
from torchx_tui.diagnosis.stacks.protocol import to_document
from torchx_tui.diagnosis.stacks.rank_errors import read_rank_errors
from torchx_tui.diagnosis.stacks.snapshot import StackSnapshot
from torchx_tui.diagnosis.stacks.text import describe_end
from torchx_tui.specs.roles import AppDef, Role

TRAIN = Path(__file__).with_name("train.py")
PAUSE_S, LIMIT_S = 2.0, 150.0

# What happens, and who is to blame: the rank of the seed, that rank and the one after it, or nobody.
CULPRIT, PAIR, NOBODY = "culprit", "pair", "nobody"
KINDS = {
    "sleep": (CULPRIT, "a rank sleeps"),
    "loader": (CULPRIT, "a rank reads a sample for ever"),
    "loader_worker": (CULPRIT, "the loader workers of a rank read for ever"),
    "lock": (CULPRIT, "a rank waits for a lock that is never free"),
    "pipe": (CULPRIT, "a rank reads a file that never comes"),
    "queue": (CULPRIT, "a rank waits for a queue that stays empty"),
    "program": (CULPRIT, "a rank waits for a program that does not end"),
    "socket": (CULPRIT, "a rank waits for an answer over a socket"),
    "spin": (CULPRIT, "a rank is in an endless loop"),
    "join": (CULPRIT, "a rank joins a thread that does not end"),
    "swallowed": (CULPRIT, "a rank swallowed an exception and waits"),
    "stopped": (CULPRIT, "a rank is stopped by a signal"),
    "other_collective": (CULPRIT, "a rank calls broadcast, the others all_reduce"),
    "gather_instead": (CULPRIT, "a rank calls all_gather, the others all_reduce"),
    "extra_barrier": (CULPRIT, "a rank calls a barrier more"),
    "other_size": (CULPRIT, "a rank reduces another size"),
    "uneven": (CULPRIT, "a rank has fewer batches, and is at the final barrier"),
    "checkpoint": (CULPRIT, "rank 0 saves, the others wait"),
    "recv": (CULPRIT, "a rank receives what nobody sends"),
    "subgroup": (CULPRIT, "a rank does not come to the collective of a group of two"),
    "crossed": (PAIR, "two ranks use two groups in different orders"),
    "store": (NOBODY, "all ranks wait for a key that nobody sets"),
    "left_0": (CULPRIT, "a rank left with code 0, the others wait for the store"),
    "left_killed": (CULPRIT, "a rank was killed, the others wait for the store"),
    "exit_0": (CULPRIT, "a rank leaves with code 0, the others lose the connection"),
    "exit_1": (CULPRIT, "a rank leaves with code 1"),
    "killed": (CULPRIT, "a rank is killed"),
    "memory": (CULPRIT, "a rank runs out of memory"),
    "other_source": (NOBODY, "a rank broadcasts from another source than the others"),
    "slow": (CULPRIT, "a rank is slower than the others in each step"),
}
# Healthy jobs, with their steps: nobody is named at any time, and it is never said that they hang.
HEALTHY = {
    "long_steps": (6, "steps of 6 s"),
    "varied": (12, "work of 0.1 to 5 s between collectives"),
    "tokenising": (24, "all ranks use all of a core, each for another time"),
    "imports": (8, "all ranks but one import for 12 s before they join"),
    "preparing": (8, "rank 0 prepares the data for 15 s, the others wait"),
    "evaluation": (24, "rank 0 evaluates for 20 s and does not print it, the others wait"),
    "checkpoints": (24, "rank 0 saves for 6 s again and again, the others wait"),
    "slow_rank": (12, "a rank is slower than the others by 1.2 s in each step"),
    "ending": (8, "a rank ends 6 s after the others"),
}


def expected(kind: str, seed: int, world: int) -> tuple[int, ...]:
    """Return the ranks to blame, as `train.py` chooses them."""
    blame = KINDS[kind][0]
    culprit = 0 if kind == "checkpoint" else random.Random(f"{kind} {seed}").randrange(world)
    if kind.startswith("left_") and culprit == 0:
        culprit = world - 1
    return {CULPRIT: (culprit,), PAIR: tuple(sorted((culprit, (culprit + 1) % world))), NOBODY: ()}[blame]


def launch(runner: Runner, kind: str, seed: int, world: int, *options: str) -> str:
    """Launch one job, each replica a rank."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    env = {"RANK": "${replica_id}", "LOCAL_RANK": "${replica_id}", "WORLD_SIZE": str(world), "OMP_NUM_THREADS": "1",
           "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}  # fmt: skip
    args = [str(TRAIN), "--kind", kind, "--seed", str(seed), *options]
    role = Role("trainer", str(TRAIN.parent), entrypoint=sys.executable, args=args, num_replicas=world, env=env)
    return runner.run(AppDef(f"hang-{kind.replace('_', '-')}", [role]), "local_cwd", {})


def snapshots(runner: Runner, handle: str) -> Iterator[tuple[Conclusion, list[StackSnapshot]]]:
    """Take a snapshot every two seconds until the job has ended, and conclude from each pair."""
    taken: list[StackSnapshot] = []
    while True:
        described = runner.job(handle).describe()
        if described is not None and described.has_ended:
            taken.append(take_snapshot(runner, handle))
            yield conclude(taken[-1], None, read_rank_errors(runner, taken[-1])), taken
            return
        if described is not None and described.state.name == "RUNNING":
            taken.append(take_snapshot(runner, handle))
            found = conclude(taken[-1], taken[-2] if len(taken) > 1 else None)
            taken[-1] = replace(taken[-1], pace=found.pace)
            yield found, taken
        time.sleep(PAUSE_S)


def watch(runner: Runner, handle: str) -> tuple[Conclusion, list[StackSnapshot]]:
    """Watch a job until it stands still and a rank is named, or it is over."""
    begun_at: float | None = None
    for found, taken in snapshots(runner, handle):
        begun = [dump for dump in taken[-1].dumps.values() if len(dump.collectives) > 4]
        if len(begun) * 2 < taken[-1].world_size:
            continue
        begun_at = begun_at or time.monotonic()
        # Ranks that end one after the other are at no end yet.
        is_stable = len(taken) > 1 and taken[-1].exited.keys() == taken[-2].exited.keys()
        stands = found.pace == "hangs" or (found.pace == "waits" and bool(found.blocking) and is_stable)
        if stands or time.monotonic() > begun_at + LIMIT_S:
            break
    return found, taken


def watch_healthy(runner: Runner, handle: str) -> tuple[str, list[StackSnapshot]]:
    """Watch a healthy job to its end; return what was wrongly claimed of it, empty if nothing was."""
    for found, taken in snapshots(runner, handle):
        if taken[-1].ranks and (found.blocking or found.pace == "hangs"):
            return f"names {found.blocking}, {found.pace or '-'}: {found.sentence}", taken
    return "", taken


def judge(runner: Runner, kind: str, seed: int, ranks: int, options: list[str]) -> tuple[str, str, list[StackSnapshot]]:
    """Run one job; return the mark, the line of the table, and its snapshots."""
    is_healthy = kind in HEALTHY
    steps = ["--steps", str(HEALTHY[kind][0])] if is_healthy else []
    handle = launch(runner, kind, seed, ranks, *options, *steps)
    try:
        if is_healthy:
            claim, taken = watch_healthy(runner, handle)
            ends = runner.job(handle).describe()
            if not claim and (ends is None or ends.state.name != "SUCCEEDED"):
                claim = f"it did not succeed: {describe_end(taken[-1].replies[0])}"
            wanted, sentence, mark = "nobody", claim or f"{len(taken)} snapshots", "WRONG" if claim else "right"
        else:
            found, taken = watch(runner, handle)
            wanted, sentence = str(expected(kind, seed, ranks)), found.sentence
            is_right = found.blocking == expected(kind, seed, ranks)
            mark = "right" if is_right else "silent" if not found.blocking else "WRONG"
    finally:
        runner.job(handle).delete()
    return mark, f"{mark:7}{kind:18}{seed}  {wanted:8}{sentence}", taken


def main() -> int:
    """Run what the command line asks for; 1 where a rank was named wrongly."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", choices=[*KINDS, *HEALTHY], metavar="KIND")
    parser.add_argument("--healthy", action="store_true", help="the healthy kinds in place of those that hang")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--at-once", type=int, default=2, help="jobs that run at the same time")
    parser.add_argument("--plain", action="store_true", help="average the gradients by hand, without DDP")
    parser.add_argument("--keep", type=Path, help="a folder for the snapshots of the first seed of each kind, as JSON")
    parser.add_argument("--list", action="store_true")
    chosen = parser.parse_args()
    if chosen.list:
        for kind, (_, words) in [*KINDS.items(), *HEALTHY.items()]:
            print(f"{kind:18}{words}")
        return 0
    marks: list[str] = []
    runs = list(itertools.product(chosen.only or (HEALTHY if chosen.healthy else KINDS), range(chosen.seeds)))
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(chosen.at_once) as pool:
        runner = Runner(scheduler_params={"local_cwd": {"root": Path(folder)}})
        assert isinstance(runner.scheduler("local_cwd"), LocalScheduler)
        options = ["--plain"] * chosen.plain
        done = pool.map(lambda run: judge(runner, *run, chosen.ranks, options), runs)
        for (kind, seed), (mark, line, taken) in zip(runs, done, strict=True):
            marks.append(mark)
            print(line, flush=True)
            if chosen.keep and seed == 0:
                chosen.keep.mkdir(parents=True, exist_ok=True)
                (chosen.keep / f"{kind}.json").write_text(json.dumps([to_document(each) for each in taken[-2:]]))
    right, silent, wrong = map(marks.count, ("right", "silent", "WRONG"))
    print(f"{right} of {len(marks)} right ({100 * right / max(1, len(marks)):.0f} %), {silent} silent, {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
