import pytest
from support.reading import Instance
from support.streaming import RecordScheduler

from torchx_tui.logs.source import file_source
from torchx_tui.logs.spool import feed, spools
from torchx_tui.logs.view import line_index, match_index, merge, scanner


@pytest.fixture
def instance():
    made = []

    def make(scheduler=None, replicas=1, **limits):
        made.append(Instance(scheduler or RecordScheduler(replicas=replicas), **limits))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.fixture
def quick_retries(monkeypatch):
    monkeypatch.setattr(feed, "FIRST_RETRY_S", 0.02)
    monkeypatch.setattr(feed, "MAX_RETRY_S", 0.1)


@pytest.fixture
def small_files(monkeypatch):
    monkeypatch.setattr(spools, "MIN_FILE_BYTES", 2000)


# Of a class, and of each function without one: Hypothesis refuses fixtures of functions.
@pytest.fixture(scope="class")
def small_blocks():
    """Read a few bytes and rows at a time, so that short logs have many seams."""
    with pytest.MonkeyPatch.context() as patch:
        for module, name, value in (
            (file_source, "FIRST_READ", 10),
            (file_source, "POLL_LIMIT", 45),
            (line_index, "_ROWS_PER_PART", 2),
            (scanner, "_DENSE_MATCHES", 2),
            (match_index, "_FIRST_BATCH_ROWS", 2),
            (match_index, "_MAX_BATCH_ROWS", 3),
        ):
            patch.setattr(module, name, value)
        for module in (file_source, merge, line_index, match_index):
            patch.setattr(module, "BLOCK", 32)
        yield
