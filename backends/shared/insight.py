"""What a launch adds to the environment of replicas, so that a job that hangs can be asked why.

It is added where a folder of the job's own can be given, never over a value of the user's, and shown by the dry run.
The variable TORCHX_TUI_INSIGHT=0 in a role's environment leaves it out.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path

FOLDER = "TORCHX_TUI_INSIGHT"
"""Where ranks have their sockets, dumps and pipes; 0 for a job that is left alone."""
HOOK = Path(__file__).parent / "rank_hook"
"""The folder of our sitecustomize.py."""

_DUMPS = "fr_"
# Of as many collectives as torch keeps by itself since 2.5; before, it kept none.
_ENTRIES = "2000"


def insight_environment(folder: Path, given: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that are added for one role.

    Args:
        folder: an empty folder for the role alone, readable by the user only.
        given: the environment that its replicas have without them.
    """
    if given.get(FOLDER):
        return {}
    fresh = {name: value for name, value in _variables(str(folder)).items() if name not in given}
    path = given.get("PYTHONPATH", "")
    return {**fresh, "PYTHONPATH": f"{HOOK}{os.pathsep}{path}" if path else str(HOOK)}


def insight_exports(folder: str) -> Iterator[str]:
    """Yield lines of a shell script that make the folder and export the same as `insight_environment`.

    Args:
        folder: the folder, quoted for the shell; it may have variables.
    """
    yield f'if [ -z "${{{FOLDER}:-}}" ] && mkdir -p -m 700 {folder} 2>/dev/null; then'
    for name, value in _variables("").items():
        text = f"{folder}{value}" if value.startswith("/") or not value else value
        yield f'    [ -n "${{{name}+set}}" ] || export {name}={text}' if name != FOLDER else f"    export {name}={text}"
    yield f'    export PYTHONPATH={shlex.quote(str(HOOK))}"${{PYTHONPATH:+:$PYTHONPATH}}"'
    yield "fi"


def _variables(folder: str) -> dict[str, str]:
    dumps = f"{folder}/{_DUMPS}"
    return {
        FOLDER: folder,
        "TORCH_FR_BUFFER_SIZE": _ENTRIES,
        # The second name is that of torch before 2.8.
        "TORCH_FR_DUMP_TEMP_FILE": dumps,
        "TORCH_NCCL_DEBUG_INFO_TEMP_FILE": dumps,
        # A dump is written on demand, when something is written to the rank's pipe.
        "TORCH_NCCL_DEBUG_INFO_PIPE_FILE": f"{dumps}pipe_",
    }
