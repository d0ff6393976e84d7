from __future__ import annotations

import tempfile
import threading
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from log_writing import LogWriter
from search_oracle import LOGS, REGEXES, TEXTS, oracle, shown_lines
from support.waiting import PATIENCE

from torchx_tui.logs.pattern.engine import CostlyPatternError
from torchx_tui.logs.pattern.pattern import parse_pattern
from torchx_tui.logs.source.replica_log import ReplicaLog
from torchx_tui.logs.view.background import LogFollower
from torchx_tui.logs.view.filtering import FilteredLog, Rule
from torchx_tui.logs.view.merge import MergedLog


def read_on(log: FilteredLog) -> None:
    """Take in all there is."""
    while log.read_older(1):
        pass
    while log.poll()[1]:
        pass
    assert log.bounds().complete


def opened(folder: Path, data: bytes, *rules: Rule) -> FilteredLog:
    path = folder / "combined.log"
    path.write_bytes(data)
    log = FilteredLog(MergedLog([ReplicaLog("r", 0, combined=path)]), rules)
    log.open()
    read_on(log)
    return log


def kept(log: FilteredLog) -> list[bytes]:
    first, end, *_ = log.bounds()
    lines = log.lines(first, end - first)
    assert [line.number for line in lines] == list(range(first, end))
    return [line.data for line in lines]


RULES = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(TEXTS), st.just(False), st.booleans(), st.booleans()),
        st.tuples(st.sampled_from(REGEXES), st.just(True), st.booleans(), st.booleans()),
    ),
    max_size=3,
)


@pytest.mark.usefixtures("small_blocks")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(LOGS, RULES, st.booleans())
def test_lines_are_kept_and_dropped_by_what_is_shown(
    data: bytes, typed: list[tuple[str, bool, bool, bool]], grown: bool
) -> None:
    rules = [Rule(parse_pattern(text, regex=regex, ignore_case=fold), keep) for text, regex, fold, keep in typed]
    with tempfile.TemporaryDirectory() as folder:
        log = opened(Path(folder), data[: len(data) // 2] if grown else data, *rules)
        (Path(folder) / "combined.log").write_bytes(data)
        read_on(log)
        first, end, *_ = log.log.bounds()
        wanted = [
            number
            for number, line in zip(range(first, end), shown_lines(log.log), strict=True)
            if all(oracle(text, regex=regex, ignore_case=fold)(line) == keep for text, regex, fold, keep in typed)
        ]
        start, stop, complete, _ = log.bounds()
        assert complete
        assert [log.original(number) for number in range(start, stop)] == wanted
        assert kept(log) == [log.log.lines(number, 1)[0].data for number in wanted]
        for original in range(first, end + 1):
            assert log.position(original) == start + sum(number < original for number in wanted)
        log.close()


@pytest.mark.usefixtures("small_blocks")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 2), st.sampled_from("oe"), st.sampled_from((b"ERR", b"OR\n", b"a\n", b"ERROR\n"))),
        max_size=20,
    ),
    st.integers(0, 20),
    st.booleans(),
    st.sampled_from((0.02, 1.0)),
)
def test_all_replicas_are_filtered_as_they_grow(
    chunks: list[tuple[int, str, bytes]], opened_after: int, keep: bool, apart: float
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        writers = [LogWriter(Path(folder), replica) for replica in range(3)]
        for at, (replica, letter, data) in enumerate(chunks[:opened_after]):
            writers[replica].write(data, letter, at * apart + 1000)
        log = FilteredLog(MergedLog([writer.log for writer in writers]), [Rule(parse_pattern("ERROR"), keep)])
        log.open()
        read_on(log)
        for at, (replica, letter, data) in enumerate(chunks[opened_after:], opened_after):
            writers[replica].write(data, letter, at * apart + 1000)
            read_on(log)
        assert kept(log) == [line.encode() for line in shown_lines(log.log) if ("ERROR" in line) == keep]
        log.close()


def test_the_last_kept_page_is_known_before_the_rest(tmp_path: Path) -> None:
    path = tmp_path / "combined.log"
    path.write_bytes(b"".join(b"%s %d\n" % (b"ERROR" if n % 100 == 0 else b"plain", n) for n in range(200_000)))
    log = FilteredLog(MergedLog([ReplicaLog("r", 0, combined=path)]), [Rule(parse_pattern("ERROR"))])
    log.open()
    assert log.read_older(5, 20)
    assert [line.data for line in log.lines(-2, 2)] == [b"ERROR 199800", b"ERROR 199900"]
    assert not log.bounds().complete
    read_on(log)
    assert log.bounds().first == -2000
    assert log.original(-1) == -100


def test_older_lines_are_filtered_until_as_many_are_kept_as_are_wanted(tmp_path: Path) -> None:
    path = tmp_path / "combined.log"
    path.write_bytes(b"ERROR first\n" + b"plain\n" * 100_000 + b"ERROR last\n")
    log = FilteredLog(MergedLog([ReplicaLog("r", 0, combined=path)]), [Rule(parse_pattern("ERROR"))])
    log.open()
    assert (log.caught_up, log.reports_end) == (True, False)
    assert log.read_older(PATIENCE, 1)
    assert kept(log) == [b"ERROR last"]
    assert not log.log.bounds().complete
    assert not log.read_older(PATIENCE, 2)
    assert kept(log) == [b"ERROR first", b"ERROR last"]
    assert log.fully_read


def test_a_filtered_log_has_no_lines_before_it_is_opened(tmp_path: Path) -> None:
    log = FilteredLog(MergedLog([LogWriter(tmp_path).log]), [Rule(parse_pattern("ERROR"))])
    assert log.bounds() == (0, 0, False, 0)
    assert log.lines(0, 1) == []


def test_a_filtered_log_is_followed_in_the_place_of_the_log(tmp_path: Path) -> None:
    path = tmp_path / "combined.log"
    path.write_bytes(b"ERROR 1\nplain\n")
    changed = threading.Semaphore(0)
    log = FilteredLog(MergedLog([ReplicaLog("r", 0, combined=path)]), [Rule(parse_pattern("ERROR"))])
    follower = LogFollower(log, changed.release)
    follower.start()
    expected = [b"ERROR 1"]
    for data in (b"", b"plain\nERR", b"OR 2\n"):
        with path.open("ab") as file:
            file.write(data)
        if data.endswith(b"2\n"):
            expected.append(b"ERROR 2")
        while not follower.opened or kept(log) != expected:
            assert changed.acquire(timeout=PATIENCE)
            follower.acknowledge()
    follower.close()
    assert follower.join(PATIENCE)


def test_a_follower_turns_to_a_filter_and_back(tmp_path: Path) -> None:
    path = tmp_path / "combined.log"
    path.write_bytes(b"ERROR 1\nplain\n")
    changed = threading.Semaphore(0)
    log = MergedLog([ReplicaLog("r", 0, combined=path)])
    follower = LogFollower(log, changed.release)
    follower.start()
    assert changed.acquire(timeout=PATIENCE)
    filtered = FilteredLog(log, [Rule(parse_pattern("ERROR"), keep=False)])
    follower.switch_to(filtered)
    follower.acknowledge()
    while kept(filtered) != [b"plain"]:
        assert changed.acquire(timeout=PATIENCE)
        follower.acknowledge()
    follower.switch_to(log)
    with path.open("ab") as file:
        file.write(b"ERROR 2\n")
    while log.bounds().end < 1:
        assert changed.acquire(timeout=PATIENCE)
        follower.acknowledge()
    follower.close()
    assert follower.join(PATIENCE)


def test_a_costly_filter_ends_the_reading_with_a_message(tmp_path: Path) -> None:
    path = tmp_path / "combined.log"
    path.write_bytes(b"a" * 5000 + b"!\n")
    log = FilteredLog(MergedLog([ReplicaLog("r", 0, combined=path)]), [Rule(parse_pattern("(?=(a+)+$)a", regex=True))])
    log.open()
    with pytest.raises(CostlyPatternError):
        log.read_older(1)
    assert log.position(-1) == 0
