"""Evaluate the Booth function: what the component utils.booth runs.

The text of this file travels to the job as `python3 -c`: standard library, from Python 3.8, no dollar sign. fsspec is
imported only for results that go to another place than a folder.
"""

import argparse
import json
import sys
from pathlib import Path


def booth(x1: float, x2: float) -> float:
    """Return (x1 + 2 x2 - 7)^2 + (2 x1 + x2 - 5)^2, whose least value is 0 at (1, 3)."""
    return (x1 + 2 * x2 - 7) ** 2 + (2 * x1 + x2 - 5) ** 2


def save(base: str, key: str, text: str) -> None:
    """Write a text to `base/key`, where TorchX's FsspecResultTracker reads it."""
    if "://" in base:
        import fsspec

        fsspec.get_mapper(base, create=True)[key] = text.encode()
        return
    Path(base).mkdir(parents=True, exist_ok=True)
    (Path(base) / key).write_text(text)


def main() -> None:
    """Read the arguments, evaluate, write and print the result."""
    parser = argparse.ArgumentParser(prog="utils.booth")
    parser.add_argument("--x1", type=float, required=True)
    parser.add_argument("--x2", type=float, required=True)
    parser.add_argument("--trial_idx", type=int, default=0)
    parser.add_argument("--tracker_base", required=True)
    args = parser.parse_args()
    value = booth(args.x1, args.x2)
    save(args.tracker_base, str(args.trial_idx), json.dumps({"booth_eval": value}, indent=2))
    sys.stdout.write(f"booth({args.x1:g}, {args.x2:g}) = {value:g}\n")


if __name__ == "__main__":
    main()
