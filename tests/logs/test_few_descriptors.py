"""Logs of more files than this process may open at a time."""

import os
import resource
from pathlib import Path

import pytest
from log_writing import LogWriter

from torchx_tui.logs.view.merge import MergedLog

LIMIT = 256


@pytest.fixture
def few_descriptors():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (LIMIT, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def count_open(folder):
    """Count the descriptors of files in a folder."""
    targets = []
    for entry in Path("/proc/self/fd").iterdir():
        try:
            targets.append(os.readlink(entry))
        except OSError:  # the one of this listing
            continue
    return sum(target.startswith(f"{folder}/") for target in targets)


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="counts descriptors in /proc")
@pytest.mark.usefixtures("few_descriptors")
def test_many_log_views_share_few_descriptors(tmp_path):
    writers = [LogWriter(tmp_path, replica) for replica in range(64)]
    for writer in writers:
        writer.write(b"one\n")
    views = [MergedLog([writer.log for writer in writers]) for _ in range(3)]
    for view in views:
        view.open()
        while view.read_older(1):
            pass
    for writer in writers:
        writer.write(b"two\n")
    for view in views:
        view.poll()
        first, end, complete, _ = view.bounds()
        assert complete
        assert [line.data for line in view.lines(first, end - first)] == [b"one"] * 64 + [b"two"] * 64
    assert count_open(tmp_path) <= LIMIT // 4
    for view in views:
        view.close()
    assert count_open(tmp_path) == 0
