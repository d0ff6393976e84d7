"""Reads logs to their ends, as the pane does page by page."""

import os
from pathlib import Path

from torchx_tui.logs.lines.merge import LINE_CAP, MergedLog
from torchx_tui.logs.source.replica_log import ReplicaLog


def read_on(log):
    """Read all older lines, and all that came since."""
    while log.read_older(1):
        pass
    while log.poll()[1]:
        pass
    assert log.bounds().complete


def lines_of(log, cap=LINE_CAP):
    first, end, *_ = log.bounds()
    lines = log.lines(first, end - first, cap)
    assert [line.number for line in lines] == list(range(first, end))
    return [line.data for line in lines]


def read_all(log, cap=LINE_CAP):
    read_on(log)
    return lines_of(log, cap)


def opened(*logs, **options):
    """Open the merged log of replicas, or of writers, and read all that is there."""
    log = MergedLog([getattr(log, "log", log) for log in logs], **options)
    log.open()
    read_on(log)
    return log


def append(path, data):
    with path.open("ab") as file:
        file.write(data)


def log_of_file(path, data):
    """Write a file, and open it as a log."""
    path.write_bytes(data)
    return opened(ReplicaLog("r", 0, combined=path))


def count_open(folder):
    """Count this process's descriptors of files in a folder, removed ones included."""
    found = 0
    for entry in Path("/proc/self/fd").iterdir():
        try:
            found += os.readlink(entry).startswith(f"{folder}/")
        except OSError:  # the one of this listing
            continue
    return found
