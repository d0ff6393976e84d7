"""Git work trees for tests, apart from this machine's own settings."""

from __future__ import annotations

import subprocess
from pathlib import Path


class WorkTree:
    """A repository with a first commit of one file.

    Args:
        folder: where it is made.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self.git("init", "--quiet")
        self.write("train.py", "lr = 0.1\n")
        self.commit()

    def git(self, *arguments: str) -> str:
        """Run git there, and return what it prints."""
        settings = (
            "user.name=alice",
            "user.email=alice@example.com",
            "commit.gpgsign=false",
            "core.hooksPath=/dev/null",
        )
        options = [part for setting in settings for part in ("-c", setting)]
        command = ["git", "-C", str(self.folder), *options, *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    def write(self, name: str, text: str) -> None:
        """Write a file."""
        (self.folder / name).write_text(text)

    def commit(self) -> str:
        """Commit all files, and return the commit."""
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message", "a step")
        return self.git("rev-parse", "HEAD")
