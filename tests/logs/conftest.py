import pytest
from support.reading import Instance
from support.streaming import RecordScheduler

from torchx_tui.logs.lines import line_index, matches, merge
from torchx_tui.logs.pattern import pattern
from torchx_tui.logs.source import file_source
from torchx_tui.logs.spool import feed, spools


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
            (line_index, "_MAX_ROWS", 3),
            (matches, "_STEP_SIZE", 70),
            (pattern, "_DENSE_GAP", 10),
        ):
            patch.setattr(module, name, value)
        for module in (file_source, merge, line_index, matches):
            patch.setattr(module, "BLOCK", 32)
        yield
