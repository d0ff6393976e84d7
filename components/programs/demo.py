"""A pretend training loop: what the component demo.train runs.

The text of this file travels to the job as `python3 -c`, so it is the standard library alone, works from Python 3.8,
and has no dollar sign, which would be read as a macro.
"""

import argparse
import json
import math
import os
import random
import sys
import time
import traceback
from pathlib import Path
from typing import TextIO

BOLD, DIM, GREEN, YELLOW, RESET = "\033[1m", "\033[2m", "\033[32m", "\033[33m", "\033[0m"
BAR_WIDTH = 30


def write(stream: TextIO, text: str) -> None:
    """Write a text at once."""
    stream.write(text)
    stream.flush()


def say(text: str) -> None:
    """Write a line to stdout."""
    write(sys.stdout, text + "\n")


def warn(text: str) -> None:
    """Write a line to stderr."""
    write(sys.stderr, f"{YELLOW}WARNING{RESET} {text}\n")


def progress(label: str, parts: int, seconds: float) -> None:
    """Draw a bar over itself, `parts` times, and end its line."""
    for part in range(1, parts + 1):
        done = BAR_WIDTH * part // parts
        bar = "#" * done + "." * (BAR_WIDTH - done)
        write(sys.stderr, f"\r{label} {100 * part // parts:3d}% [{bar}] {part}/{parts}")
        time.sleep(seconds)
    write(sys.stderr, "\n")


def check_loss(loss: float, step: int) -> float:
    """Return a loss that training can go on with."""
    if math.isnan(loss):
        raise FloatingPointError(f"loss is nan at step {step}: lower the learning rate or clip the gradients")
    return loss


def forward(step: int, args: argparse.Namespace, noise: random.Random) -> float:
    """Return the loss of a step, nan where this rank is to fail."""
    if step == args.fail_at_step and args.rank == args.fail_rank:
        return math.nan
    return 2.3 * math.exp(-3.0 * step / args.steps) + noise.uniform(0.0, 0.05)


def train_step(step: int, args: argparse.Namespace, noise: random.Random) -> float:
    """Run one step and return its loss."""
    time.sleep(args.step_seconds)
    return check_loss(forward(step, args, noise), step)


def train(args: argparse.Namespace) -> None:
    """Run all steps."""
    noise = random.Random(args.rank)  # noqa: S311 - not a secret
    say(f"{BOLD}rank {args.rank} of {args.world_size}{RESET} pid {os.getpid()}")
    progress("loading data", 10, args.step_seconds / 5)
    for step in range(1, args.steps + 1):
        loss = train_step(step, args, noise)
        say(f"step {step}/{args.steps} loss {GREEN}{loss:.4f}{RESET} {DIM}rank {args.rank}{RESET}")
        if step % 10 == 0:
            warn(f"step {step}: the data loader waited {noise.randint(20, 90)} ms")
    progress("saving", 5, args.step_seconds / 5)
    say(f"{GREEN}done{RESET} after {args.steps} steps")


def leave_error(error: Exception) -> None:
    """Write the error where torchelastic's error files are read from, in their form."""
    path = os.environ.get("TORCHELASTIC_ERROR_FILE")
    if not path:
        return
    details = {"py_callstack": traceback.format_exc(), "timestamp": str(int(time.time()))}
    message = {"message": f"{type(error).__name__}: {error}", "extraInfo": details}
    Path(path).write_text(json.dumps({"message": message}))


def main() -> None:
    """Read the arguments and train."""
    parser = argparse.ArgumentParser(prog="demo.train")
    parser.add_argument("--rank", type=int, default=0)
    parser.add_argument("--world_size", type=int, default=1)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--step_seconds", type=float, default=0.2)
    parser.add_argument("--fail_at_step", type=int, default=-1)
    parser.add_argument("--fail_rank", type=int, default=0)
    args = parser.parse_args()
    try:
        train(args)
    except Exception as error:
        leave_error(error)
        raise


if __name__ == "__main__":
    main()
