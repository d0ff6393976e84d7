"""A release of TorchX in a process of its own: answers lines of JSON, `[operation, argument...]`, until its input ends.

It runs with the Python of the environment that the release is installed in: `python tests/interop/release_server.py`.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import sys
from pathlib import Path


def serve() -> None:
    """Answer every line with one line; what TorchX prints is not seen."""
    sys.path.insert(0, str(Path(__file__).parents[1]))
    from interop.releases import pin_torchx, torchx_release

    answers = sys.stdout
    logging.disable(logging.CRITICAL)
    with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere), contextlib.redirect_stderr(nowhere):
        pin_torchx(setattr)
        release = torchx_release()
        print("ready", file=answers, flush=True)
        for line in sys.stdin:
            print(json.dumps(release.ask(*json.loads(line))), file=answers, flush=True)


if __name__ == "__main__":
    serve()
