import tempfile
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from log_reading import append, lines_of, read_on
from log_writing import LogWriter
from search_oracle import LOGS, REGEXES, TEXTS, oracle, shown_lines
from support.waiting import PATIENCE, wait_until

from torchx_tui.logs.lines.background import LogFollower
from torchx_tui.logs.lines.matches import Matches, Rule
from torchx_tui.logs.lines.merge import MergedLog
from torchx_tui.logs.pattern.pattern import parse_pattern
from torchx_tui.logs.source.replica_log import ReplicaLog

ERRORS = Rule(parse_pattern("ERROR"))


def filtered(path, data, *rules):
    path.write_bytes(data)
    log = Matches(MergedLog([ReplicaLog("r", 0, combined=path)]), rules or [ERRORS])
    log.open()
    return log


RULES = st.tuples(
    st.one_of(
        st.tuples(st.sampled_from(TEXTS), st.just(False)),
        st.tuples(st.sampled_from(REGEXES), st.just(True)),
    ),
    st.booleans(),
    st.booleans(),
)


@pytest.mark.usefixtures("small_blocks")
@given(LOGS, st.lists(RULES, max_size=3), st.booleans())
def test_filter_decides_by_what_is_shown(data, typed, grown):
    rules = [Rule(parse_pattern(text, regex=regex, ignore_case=fold), keep) for (text, regex), fold, keep in typed]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "c"
        path.write_bytes(data[: len(data) // 2] if grown else data)
        log = Matches(MergedLog([ReplicaLog("r", 0, combined=path)]), rules)
        log.open()
        read_on(log)
        path.write_bytes(data)
        read_on(log)
        wanted = [
            number
            for number, line in enumerate(shown_lines(log.log), log.log.bounds().first)
            if all(
                bool(oracle(text, regex=regex, ignore_case=fold).search(line)) == keep
                for (text, regex), fold, keep in typed
            )
        ]
        first, end, *_ = log.bounds()
        assert [log.original(number) for number in range(first, end)] == wanted
        assert lines_of(log) == [log.log.lines(number, 1)[0].data for number in wanted]
        for original in range(log.log.bounds().first, log.log.bounds().end + 1):
            assert log.position(original) == first + sum(number < original for number in wanted)
        log.close()


def test_filter_reads_older_lines_until_enough_are_kept(tmp_path):
    log = filtered(tmp_path / "c", b"ERROR first\n" + b"plain\n" * 100_000 + b"ERROR last\n")
    assert (log.caught_up, log.reports_end) == (True, False)
    assert log.read_older(PATIENCE, 1)
    assert lines_of(log) == [b"ERROR last"]
    assert not log.log.bounds().complete
    assert not log.read_older(PATIENCE, 2)
    assert lines_of(log) == [b"ERROR first", b"ERROR last"]
    assert log.fully_read


def test_unopened_filter_has_no_lines(tmp_path):
    log = Matches(MergedLog([LogWriter(tmp_path).log]), [ERRORS])
    assert (log.bounds(), log.lines(0, 1)) == ((0, 0, False, 0), [])


def test_follower_switches_to_a_filter_and_back(tmp_path):
    errors = filtered(tmp_path / "c", b"ERROR 1\nplain\n")
    changed = threading.Event()
    follower = LogFollower(errors, changed.set)
    follower.start()

    def wait_for(log, lines):
        def is_there():
            follower.acknowledge()
            return follower.opened and lines_of(log) == lines

        wait_until(is_there, f"{lines}", PATIENCE)

    wait_for(errors, [b"ERROR 1"])
    for data in (b"", b"plain\nERR", b"OR 2\n"):
        append(tmp_path / "c", data)
    wait_for(errors, [b"ERROR 1", b"ERROR 2"])
    others = Matches(errors.log, [ERRORS._replace(keep=False)])
    follower.switch_to(others)
    wait_for(others, [b"plain", b"plain"])
    follower.switch_to(errors.log)
    append(tmp_path / "c", b"ERROR 3\n")
    wait_for(errors.log, [b"ERROR 1", b"plain", b"plain", b"ERROR 2", b"ERROR 3"])
    assert changed.is_set()
    follower.close()
    assert follower.join(PATIENCE)
