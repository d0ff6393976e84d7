"""The oldest lines are dropped while others look at the log."""

import tempfile
import threading
import time
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from log_reading import lines_of, opened, read_on
from log_writing import LogWriter
from support.waiting import PATIENCE, wait_until

from torchx_tui.logs.lines import line_index
from torchx_tui.logs.lines.background import Search
from torchx_tui.logs.lines.line_index import LineIndex
from torchx_tui.logs.lines.matches import Matches, Rule
from torchx_tui.logs.lines.merge import MergedLog
from torchx_tui.logs.pattern.pattern import parse_pattern
from torchx_tui.logs.source.segment import LogSegment

_TEXTS = st.lists(st.sampled_from((b"ERROR\n", b"a\n", b"ERR", b"OR\n", b"ERROR and more of it\n", b"\n")), max_size=12)


@pytest.mark.usefixtures("small_blocks")
@given(
    st.lists(st.tuples(_TEXTS, st.integers(-30, 30)), min_size=1, max_size=5),
    st.booleans(),
    st.booleans(),
    st.sampled_from((0.02, 1.0)),
)
def test_remaining_lines_keep_their_numbers(rounds, filtered_before, keep, apart):
    with tempfile.TemporaryDirectory() as folder:
        writers = [LogWriter(Path(folder), replica) for replica in range(2)]
        log = MergedLog([writer.log for writer in writers])
        rule = Rule(parse_pattern("ERROR"), keep)
        kept, index = Matches(log, [rule]), None
        known = {}
        at = 1000
        for texts, line in rounds:
            for text in texts:
                writers[at % 3 // 2].write(text, "ooe"[at % 7 // 3], at * apart)
                at += 1
            if not log.opened:
                log.open()
            read_on(kept if filtered_before else log)
            index = index or Matches(log, [rule])
            index.step(1)
            before = log.bounds()
            known.update((line.number, line.data) for line in log.lines(before.first, before.end - before.first))
            log.drop_before(line)
            after = log.bounds()
            assert min(before.end, max(before.first, line)) >= after.first >= before.first
            assert (after.gone - before.gone, after.end) == (after.first - before.first, before.end)
            assert lines_of(log) == [known[number] for number in range(after.first, after.end)]
            read_on(kept)
            wanted = [number for number in range(after.first, after.end) if (b"ERROR" in known[number]) == keep]
            bounds = kept.bounds()
            assert [kept.original(number) for number in range(bounds.first, bounds.end)] == wanted
            assert lines_of(kept) == [known[number] for number in wanted]
            if filtered_before:
                dropped = [data for number, data in known.items() if number < after.first]
                assert bounds.gone == sum((b"ERROR" in data) == keep for data in dropped)
            while index.step(1):
                pass
            assert (index.complete, index.count) == (True, len(wanted))
            ranks = {number: rank for rank, number in enumerate(wanted)}
            for start in range(after.first - 1, after.end):
                assert index.rank(start) == ranks.get(start)
                assert index.find(start, True) == min((n for n in wanted if n >= start), default=None)
                assert index.find(start, False) == max((n for n in wanted if n <= start), default=None)
        log.close()


@pytest.mark.usefixtures("small_blocks")
def test_times_of_remaining_lines_are_found(tmp_path):
    writer = LogWriter(tmp_path)
    for second in range(12):
        writer.write(b"%d\n" % second, at=1000 + second)
    log = opened(writer)
    for second in range(12, 24):
        writer.write(b"%d\n" % second, at=1000 + second)
        read_on(log)
    for first in (-7, -1, 0, 5):
        log.drop_before(first)
        assert log.line_at(0) == log.bounds().first == first
        assert log.lines(log.line_at(1020) or 0, 1)[0].data == b"20"
    assert log.bounds().gone == 17


def test_lines_before_dropped_ones_are_not_read(tmp_path):
    writer = LogWriter(tmp_path)
    for second in range(100):
        writer.write(b"%d\n" % second, at=1000 + second)
    log = MergedLog([writer.log])
    log.open()
    assert log.read_older(1, 10)
    log.drop_before(-5)
    assert not log.read_older(1)
    assert (lines_of(log), log.bounds().complete) == ([b"95", b"96", b"97", b"98", b"99"], True)


def test_memory_of_dropped_lines_is_released():
    def held():
        """Return the bytes of the index, without what another test's thread holds."""
        snapshot = tracemalloc.take_snapshot().filter_traces([tracemalloc.Filter(True, line_index.__file__)])
        return sum(trace.size for trace in snapshot.traces)

    index = LineIndex()
    tracemalloc.start()
    index.prepend(LogSegment(1, at, at + 1, 1, float(at), "o") for at in range(50_000))
    index.append(LogSegment(1, at, at + 1, 1, float(at), "o") for at in range(50_000))
    full = held()
    index.drop_before(-100)
    assert held() < full * 0.6
    index.drop_before(49_900)
    assert held() < full * 0.1
    tracemalloc.stop()
    assert (index.bounds(), index.gone) == ((49_900, 50_000), 99_900)


def test_lines_are_dropped_under_readers(tmp_path):
    writer = LogWriter(tmp_path)
    log = opened(writer)
    kept = Matches(log, [Rule(parse_pattern("[05]$", regex=True))])
    kept.open()
    search = Search(log, parse_pattern("7"))
    search.start()
    stop = threading.Event()
    failures = []

    def look():
        try:
            while not stop.is_set():
                first = log.bounds().first
                # A line that was dropped after its position was found reads as gone, never as another one.
                failures.extend(repr(line) for line in log.lines(first - 5, 40) if line.data != b"%d" % line.number)
                kept.lines(kept.bounds().first - 5, 40)
                for shown in (kept, log):
                    shown.line_at(1000 + first)
                kept.position(first)
                search.find(first, True, lambda _: None)
        except Exception as error:
            failures.append(repr(error))

    threads = [threading.Thread(target=look, daemon=True) for _ in range(2)]
    for thread in threads:
        thread.start()
    deadline = time.monotonic() + PATIENCE
    for number in range(2000):
        writer.write(b"%d\n" % number, at=1000 + number)
        if number % 10 == 0:
            read_on(kept)
            log.drop_before(log.bounds().end - 25)
        assert time.monotonic() < deadline
    stop.set()
    for thread in threads:
        thread.join(PATIENCE)
    assert failures == []
    wanted = sum(b"7" in b"%d" % number for number in range(log.bounds().first, 2000))
    read_on(kept)

    def is_counted():
        search.poll_now()
        return search.state.failure or (search.state.complete and search.state.found == wanted)

    assert wait_until(is_counted, "the count", PATIENCE) is True
    search.close()
    assert search.join(PATIENCE)
