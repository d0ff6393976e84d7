"""Logs of more files than this process may open at a time."""

import resource
from pathlib import Path

import pytest
from log_reading import count_open, lines_of, read_on
from log_writing import LogWriter

from torchx_tui.logs.lines.merge import MergedLog

LIMIT = 256


@pytest.fixture
def few_descriptors():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (LIMIT, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="counts descriptors in /proc")
@pytest.mark.usefixtures("few_descriptors")
def test_many_log_views_share_few_descriptors(tmp_path):
    writers = [LogWriter(tmp_path, replica) for replica in range(64)]
    for writer in writers:
        writer.write(b"one\n")
    views = [MergedLog([writer.log for writer in writers]) for _ in range(3)]
    for view in views:
        view.open()
        read_on(view)
    for writer in writers:
        writer.write(b"two\n")
    for view in views:
        view.poll()
        assert lines_of(view) == [b"one"] * 64 + [b"two"] * 64
    assert count_open(tmp_path) <= LIMIT // 4
    for view in views:
        view.close()
    assert count_open(tmp_path) == 0
