"""Copy one file: what the component utils.copy runs.

The text of this file travels to the job as `python3 -c`: standard library, from Python 3.8, no dollar sign. fsspec is
imported only for URLs.
"""

import argparse
import shutil
import sys
from pathlib import Path
from typing import Any


def opened(place: str, mode: str) -> Any:
    """Open a path or a URL; the folder of a file that is written is created."""
    if "://" in place:
        import fsspec

        return fsspec.open(place, mode)
    if "w" in mode:
        Path(place).parent.mkdir(parents=True, exist_ok=True)
    return Path(place).open(mode)


def main() -> None:
    """Read the arguments and copy."""
    parser = argparse.ArgumentParser(prog="utils.copy")
    parser.add_argument("--src", required=True)
    parser.add_argument("--dst", required=True)
    args = parser.parse_args()
    with opened(args.src, "rb") as source, opened(args.dst, "wb") as target:
        shutil.copyfileobj(source, target)
    sys.stdout.write(f"copied {args.src} to {args.dst}\n")


if __name__ == "__main__":
    main()
