"""The pages: every command in them runs in an empty home, every link leads somewhere, and none is too long to read.

A fenced block that begins with ```sh is run. ```sh docker, ```sh kubernetes and ```sh slurm need that service.
```sh network installs something, and is only parsed.
"""

from __future__ import annotations

import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
from support.waiting import PATIENCE

PROJECT = Path(__file__).parents[2]
PAGES = [*PROJECT.glob("*.md"), *PROJECT.glob("docs/**/*.md"), *PROJECT.glob("examples/**/*.md")]
SERVICES = {"docker": "docker_engine", "kubernetes": "kubernetes_cluster", "slurm": "slurm_cluster"}
NETWORK = "network"

_BLOCK = re.compile(r"^```(.*)\n((?:.*\n)*?)```$", re.MULTILINE)
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_QUOTE = re.compile(r"^> (.+)$", re.MULTILINE)
_LONGEST_PAGE = 200
_DIALECT = re.compile(r"\b(?:any more|be had|does not run|for ever|goes on|in force|take (?:another|other))\b")

# `doctor` exits with 1 where it finds an error, such as a machine without Docker.
_PRELUDE = """set -eu
torchx-tui() { command torchx-tui "$@" || [ $? = 1 -a "$1" = doctor ]; }
"""
_SBATCH = "#!/bin/bash\n#SBATCH --time=0:10:00\nconfig=$1\nLR=${2:-1e-5}\necho $config $LR\n"


def scripts() -> list[tuple[str, str, str]]:
    """Return for each page and each thing that its blocks need: the page, the need, and the commands."""
    found: dict[tuple[str, str], str] = {}
    for page in PAGES:
        for kind, text in _BLOCK.findall(page.read_text(encoding="utf-8")):
            language, _, need = kind.partition(" ")
            if language == "sh":
                key = (str(page.relative_to(PROJECT)), need)
                found[key] = found.get(key, "") + text
    return [(page, need, text) for (page, need), text in found.items()]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("need", "text"),
    [pytest.param(need, text, id=f"{page} {need}".strip()) for page, need, text in scripts()],
)
def test_the_commands_of_a_page_run(need, text, tmp_path, request):
    assert need in ("", NETWORK, *SERVICES)
    if need in SERVICES:
        request.getfixturevalue(SERVICES[need])
    (tmp_path / "examples").symlink_to(PROJECT / "examples")
    (tmp_path / "train.sbatch").write_text(_SBATCH)
    (tmp_path / "train.log").write_text("".join(f"step {step} loss {1 / step}\n" for step in range(1, 9)))
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    ended = subprocess.run(
        ["bash", *(["-n"] if need == NETWORK else [])], input=_PRELUDE + text, cwd=tmp_path, env=environment,
        capture_output=True, text=True, timeout=PATIENCE, check=False,
    )  # fmt: skip
    assert ended.returncode == 0, f"{text}\n{ended.stdout}\n{ended.stderr}"


def anchors(page: Path) -> set[str]:
    """Return the anchors that GitHub gives to the headings of a page."""
    headings = re.findall(r"^#+ (.+)$", _BLOCK.sub("", page.read_text(encoding="utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(PROJECT)))
def test_the_links_of_a_page_lead_somewhere(page):
    for link in _LINK.findall(_BLOCK.sub("", page.read_text(encoding="utf-8"))):
        if link.startswith(("https://", "http://")):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path) if path else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


def test_no_page_is_longer_than_a_reader_is_patient():
    pages = [page for page in PAGES if "reference" not in page.parts]
    lengths = {page.name: len(page.read_text(encoding="utf-8").splitlines()) for page in pages}
    assert {name: length for name, length in lengths.items() if length > _LONGEST_PAGE} == {}


@pytest.fixture(scope="module")
def messages():
    """All that the program says, as docs/reference/messages.py lists it."""
    listing = runpy.run_path(str(PROJECT / "docs" / "reference" / "messages.py"))
    files = (path for room in listing["ROOMS"] for path in (PROJECT / room).rglob("*.py"))
    return [message.text for path in files for message in listing["messages"](path)]


def test_troubleshooting_quotes_what_the_program_prints(messages):
    printed = [*messages, (PROJECT / "Makefile").read_text()]
    quoted = _QUOTE.findall((PROJECT / "docs" / "troubleshooting.md").read_text(encoding="utf-8"))
    assert len(quoted) >= 20
    parts = [part.strip(" .:") for quote in quoted for part in quote.split("...")]
    missing = [part for part in parts if not any(part in text for text in printed)]
    assert missing == []


@pytest.mark.parametrize(
    "message",
    [
        "the dashboard needs a terminal; `torchx-tui list` works without one",  # a call's argument, in parts
        "Stacks of all ranks: why it hangs",  # the description of a key
        "delete finished jobs and their logs",  # a help text
        "the terminal has {columns}x{rows}, less than 80x24",  # a finding
        "it was requeued and is held: release it",  # a value of a table
        "its time limit{limit} was reached: ask for more time, or resume from a checkpoint",
    ],
)
def test_the_list_of_messages_has_each_kind(messages, message):
    assert any(message in text for text in messages)


def test_messages_use_the_words_of_the_field(messages):
    assert [text for text in messages if _DIALECT.search(text)] == []
