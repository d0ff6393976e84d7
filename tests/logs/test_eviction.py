"""The oldest lines are dropped while others look at the log."""

import tempfile
import threading
import time
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from log_writing import LogWriter
from support.waiting import PATIENCE

from torchx_tui.logs.pattern.pattern import parse_pattern
from torchx_tui.logs.source import file_source as source
from torchx_tui.logs.source.segment import LogSegment
from torchx_tui.logs.view import line_index, match_index, merge
from torchx_tui.logs.view import line_index as segment_table
from torchx_tui.logs.view.background import Search
from torchx_tui.logs.view.filtering import FilteredLog, Rule, RulesScanner
from torchx_tui.logs.view.line_index import LineIndex
from torchx_tui.logs.view.match_index import MatchIndex
from torchx_tui.logs.view.merge import MergedLog


@pytest.fixture
def small_parts():
    with pytest.MonkeyPatch.context() as patch:
        for module, name, value in (
            (source, "BLOCK", 64), (source, "FIRST_READ", 20), (source, "POLL_LIMIT", 90), (merge, "BLOCK", 64),
            (line_index, "BLOCK", 64),
            (match_index, "BLOCK", 64), (match_index, "_FIRST_BATCH_ROWS", 2), (match_index, "_MAX_BATCH_ROWS", 3),
            (segment_table, "_ROWS_PER_PART", 2),
        ):  # fmt: skip
            patch.setattr(module, name, value)
        yield


def read_on(log):
    while log.read_older(1):
        pass
    while log.poll()[1]:
        pass


_WORDS = st.lists(st.sampled_from((b"ERROR\n", b"a\n", b"ERR", b"ERROR and more of it\n", b"\n")), max_size=12)


@pytest.mark.usefixtures("small_parts")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    st.lists(st.tuples(_WORDS, st.integers(-30, 30)), min_size=1, max_size=5),
    st.booleans(),
    st.booleans(),
    st.sampled_from((0.02, 1.0)),
)
def test_what_is_left_keeps_its_numbers(rounds, filtered_before, keep, apart):
    with tempfile.TemporaryDirectory() as folder:
        writers = [LogWriter(Path(folder), replica) for replica in range(2)]
        log = MergedLog([writer.log for writer in writers])
        kept = FilteredLog(log, [Rule(parse_pattern("ERROR"), keep)])
        counted = None
        known = {}
        at = 1000
        for words, line in rounds:
            for word in words:
                writers[at % 3 // 2].write(word, at=at * apart)
                at += 1
            if not log.opened:
                log.open()
            read_on(kept if filtered_before else log)
            pattern = RulesScanner([Rule(parse_pattern("ERROR"), keep)], match_index.take_sample(log))
            counted = counted or MatchIndex(log, pattern)
            counted.step(1)
            before = log.bounds()
            known.update((line.number, line.data) for line in log.lines(before.first, before.end - before.first))
            log.drop_before(line)
            after = log.bounds()
            assert min(before.end, max(before.first, line)) >= after.first >= before.first
            assert after.gone - before.gone == after.first - before.first
            assert after.end == before.end
            assert [(line.number, line.data) for line in log.lines(-99, 999)] == [
                (number, known[number]) for number in range(after.first, after.end)
            ]
            read_on(kept)
            wanted = [number for number in range(after.first, after.end) if (b"ERROR" in known[number]) == keep]
            bounds = kept.bounds()
            assert [kept.original(number) for number in range(bounds.first, bounds.end)] == wanted
            assert [line.number for line in kept.lines(-99, 999)] == list(range(bounds.first, bounds.end))
            if filtered_before:
                dropped = [data for number, data in known.items() if number < after.first]
                assert bounds.gone == sum((b"ERROR" in data) == keep for data in dropped)
            while counted.step(1):
                pass
            assert counted.done
            assert counted.count == len(wanted)
            for start in range(after.first, after.end):
                assert counted.find(start, True) == next((number for number in wanted if number >= start), None)
                assert counted.find(start, False) == next((number for number in wanted[::-1] if number <= start), None)
        log.close()


@pytest.mark.usefixtures("small_parts")
def test_the_times_of_what_is_left_are_found(tmp_path):
    writer = LogWriter(tmp_path)
    for second in range(12):
        writer.write(b"%d\n" % second, at=1000 + second)
    log = MergedLog([writer.log])
    log.open()
    read_on(log)
    for second in range(12, 24):
        writer.write(b"%d\n" % second, at=1000 + second)
        read_on(log)
    for first in (-7, -1, 0, 5):
        log.drop_before(first)
        assert log.line_at(0) == log.bounds().first == first
        assert [line.data for line in log.lines(log.line_at(1020) or 0, 1)] == [b"20"]
    assert log.bounds().gone == 17


def test_older_lines_are_not_read_after_later_ones_were_dropped(tmp_path):
    writer = LogWriter(tmp_path)
    for second in range(100):
        writer.write(b"%d\n" % second, at=1000 + second)
    log = MergedLog([writer.log])
    log.open()
    assert log.read_older(1, 10)
    log.drop_before(-5)
    assert not log.read_older(1)
    assert [line.data for line in log.lines(-99, 99)] == [b"95", b"96", b"97", b"98", b"99"]
    assert log.bounds().complete


def test_memory_of_what_was_dropped_is_released():
    def held():
        """Return what the index holds (bytes), and nothing that another test's thread holds."""
        ours = [tracemalloc.Filter(True, module.__file__) for module in (line_index, segment_table)]
        return sum(trace.size for trace in tracemalloc.take_snapshot().filter_traces(ours).traces)

    index = LineIndex()
    tracemalloc.start()
    index.prepend(LogSegment(1, at, at + 1, 1, float(at), "o") for at in range(100_000))
    index.append(LogSegment(1, at, at + 1, 1, float(at), "o") for at in range(100_000))
    full = held()
    index.drop_before(-100)
    half = held()
    index.drop_before(99_900)
    rest = held()
    tracemalloc.stop()
    assert half < full * 0.6
    assert rest < full * 0.1
    assert index.bounds() == (99_900, 100_000)
    assert index.gone == 199_900


def test_others_look_while_lines_are_dropped(tmp_path):
    writer = LogWriter(tmp_path)
    log = MergedLog([writer.log])
    log.open()
    read_on(log)
    kept = FilteredLog(log, [Rule(parse_pattern("[05]$", regex=True))])
    kept.open()
    search = Search(log, parse_pattern("7"))
    search.start()
    stop = threading.Event()
    failures = []
    wrong = []

    def look():
        try:
            while not stop.is_set():
                bounds = log.bounds()
                nonlocal wrong
                for shown in (kept, log):
                    found = shown.lines(bounds.first - 5, 40)
                    wrong += [line for line in found if shown is log and line.data != b"%d" % line.number]
                    shown.line_at(1000 + bounds.first)
                kept.position(bounds.first)
                search.find(bounds.first, True, lambda _: None)
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=look, daemon=True) for _ in range(2)]
    for thread in threads:
        thread.start()
    deadline = time.monotonic() + PATIENCE
    for number in range(3000):
        writer.write(b"%d\n" % number, at=1000 + number)
        if number % 10 == 0:
            read_on(kept)
            log.drop_before(log.bounds().end - 25)
        assert time.monotonic() < deadline
    stop.set()
    for thread in threads:
        thread.join(PATIENCE)
    assert failures == []
    # A line that was dropped after its place was found reads as gone, never as another one.
    assert wrong == []
    wanted = [number for number in range(log.bounds().first, 3000) if b"7" in b"%d" % number]
    read_on(kept)
    while not (search.state.complete and search.state.found == len(wanted)):
        search.poll_now()
        assert search.state.failure == ""
        assert time.monotonic() < deadline
        time.sleep(0.01)
    search.close()
    assert search.join(PATIENCE)
