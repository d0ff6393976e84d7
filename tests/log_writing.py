"""Writes a replica's log files as the local supervisor does."""

from __future__ import annotations

from pathlib import Path

from torchx_tui.logs.source.replica_log import ReplicaLog


class LogWriter:
    """Writes ``combined.log`` with its index, and both streams' own files."""

    def __init__(self, folder: Path, replica: int = 0, role: str = "trainer") -> None:
        self.folder = folder / role / str(replica)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.log = ReplicaLog(
            role,
            replica,
            combined=self.folder / "combined.log",
            stdout=self.folder / "stdout.log",
            stderr=self.folder / "stderr.log",
        )

    def write(self, data: bytes, stream: str = "o", at: float = 1_700_000_000.0, *, derive: bool = True) -> None:
        """Append one chunk; without ``derive`` as if the supervisor had died before."""
        with (self.folder / ("stdout.log" if stream == "o" else "stderr.log")).open("ab") as file:
            file.write(data)
        if derive:
            combined = self.folder / "combined.log"
            start = combined.stat().st_size if combined.exists() else 0
            with (self.folder / "combined.index").open("a") as index:
                index.write(f"{start} {at:.3f} {stream}\n")
            with combined.open("ab") as file:
                file.write(data)
