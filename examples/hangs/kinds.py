"""Runs jobs that hang or fail in known ways, and tells whether the right rank is named.

    python examples/hangs/kinds.py --seeds 5            every kind, five ranks and steps each; prints a table
    python examples/hangs/kinds.py --only sleep crossed
    python examples/hangs/kinds.py --ranks 16 --plain   more ranks, which average their gradients without DDP
    python examples/hangs/kinds.py --list

Needs torch. Each run is a job of this machine, launched as the dashboard launches it, and removed afterwards.
"""

from __future__ import annotations

import argparse
import json
import random
import socket
import sys
import tempfile
import time
from pathlib import Path

from torchx_tui.backends.local.scheduler import LocalScheduler
from torchx_tui.backends.runner import Runner
from torchx_tui.diagnosis.stacks.conclusion import Conclusion, conclude
from torchx_tui.diagnosis.stacks.ended import error_texts
from torchx_tui.diagnosis.stacks.take import Take, take_stacks
from torchx_tui.specs import AppDef, Role

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
    "slow": (CULPRIT, "a rank is slower than the others in each step"),
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


def watch(runner: Runner, handle: str) -> tuple[Conclusion, list[Take]]:
    """Take stacks every two seconds until the job stands still or is over, and conclude."""
    takes: list[Take] = []
    deadline = time.monotonic() + LIMIT_S
    while True:
        described = runner.describe(handle)
        if described is not None and described.has_ended:
            takes.append(take_stacks(runner, handle))
            return conclude(takes[-1], None, error_texts(runner, takes[-1])), takes
        if described is not None and described.state.name == "RUNNING":
            takes.append(take_stacks(runner, handle))
        if len(takes) > 1:
            found = conclude(takes[-1], takes[-2])
            begun = [dump for dump in takes[-1].dumps.values() if len(dump.collectives) > 4]
            if (found.pace == "hangs" and len(begun) * 2 >= takes[-1].world_size) or time.monotonic() > deadline:
                return found, takes
        time.sleep(PAUSE_S)


def main() -> int:
    """Run what the command line asks for; 1 where a rank was named wrongly."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", default=list(KINDS), choices=list(KINDS), metavar="KIND")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--plain", action="store_true", help="average the gradients by hand, without DDP")
    parser.add_argument("--keep", type=Path, help="a folder for the takes of the first seed of each kind, as JSON")
    parser.add_argument("--list", action="store_true")
    chosen = parser.parse_args()
    if chosen.list:
        for kind, (_, words) in KINDS.items():
            print(f"{kind:18}{words}")
        return 0
    right = wrong = silent = 0
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        runner = Runner(scheduler_params={"local_cwd": {"root": root}})
        scheduler = runner.scheduler("local_cwd")
        assert isinstance(scheduler, LocalScheduler)
        for kind in chosen.only:
            for seed in range(chosen.seeds):
                handle = launch(runner, kind, seed, chosen.ranks, *["--plain"] * chosen.plain)
                try:
                    found, takes = watch(runner, handle)
                finally:
                    runner.delete(handle)
                wanted = expected(kind, seed, chosen.ranks)
                mark = "right" if found.culprits == wanted else "silent" if not found.culprits else "WRONG"
                right, wrong, silent = right + (mark == "right"), wrong + (mark == "WRONG"), silent + (mark == "silent")
                print(f"{mark:7}{kind:18}{seed}  {wanted!s:8}{found.sentence}", flush=True)
                if chosen.keep and seed == 0:
                    chosen.keep.mkdir(parents=True, exist_ok=True)
                    (chosen.keep / f"{kind}.json").write_text(json.dumps([take.to_document() for take in takes[-2:]]))
    total = right + wrong + silent
    print(f"{right} of {total} right ({100 * right / max(1, total):.0f} %), {silent} silent, {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
