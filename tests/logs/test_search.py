from __future__ import annotations

import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from log_writing import LogWriter
from search_oracle import LOGS, REGEXES, TEXTS, oracle, shown_lines
from support.waiting import PATIENCE

from torchx_tui.logs.pattern import required as anchors
from torchx_tui.logs.pattern.engine import PatternError
from torchx_tui.logs.pattern.pattern import Pattern, parse_pattern
from torchx_tui.logs.pattern.required import parse_regex
from torchx_tui.logs.source.replica_log import ReplicaLog
from torchx_tui.logs.text.shown import Block, Rendering
from torchx_tui.logs.view import scanner
from torchx_tui.logs.view.background import Search
from torchx_tui.logs.view.filtering import FilteredLog, Rule, RulesScanner
from torchx_tui.logs.view.match_index import MatchIndex, take_sample
from torchx_tui.logs.view.merge import MergedLog

_since_3_11 = pytest.mark.skipif(sys.version_info < (3, 11), reason="Python knows such expressions since 3.11")


def opened(*logs: ReplicaLog) -> MergedLog:
    log = MergedLog(logs)
    log.open()
    while log.read_older(1):
        pass
    drain(log)
    return log


def drain(log: MergedLog) -> None:
    while log.poll()[1]:
        pass


def written(tmp_path: Path, data: bytes) -> MergedLog:
    path = tmp_path / "combined.log"
    path.write_bytes(data)
    return opened(ReplicaLog("r", 0, combined=path))


def index_matches(log: MergedLog, pattern: Pattern) -> MatchIndex:
    counted = MatchIndex(log, RulesScanner([Rule(pattern)], take_sample(log)))
    while counted.step(1):
        pass
    return counted


def matching(log: MergedLog, counted: MatchIndex) -> list[int]:
    """Walk through all matches forwards, and hold it against walking backwards and against the count."""
    first, end, *_ = log.bounds()
    found = []
    line = counted.find(first, True)
    while line is not None:
        found.append(line)
        line = counted.find(line + 1, True)
    backwards = []
    line = counted.find(end - 1, False)
    while line is not None:
        backwards.append(line)
        line = counted.find(line - 1, False)
    assert backwards == found[::-1]
    # What lies outside is the nearest end, in the direction to the lines.
    assert [counted.find(first - 5, True), counted.find(end + 5, False)] == [
        found[0] if found else None,
        found[-1] if found else None,
    ]
    assert [counted.find(first - 5, False), counted.find(end + 5, True)] == [None, None]
    return found


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.002)


TYPED = [
    (text, regex, fold)
    for regex, texts in ((False, TEXTS), (True, REGEXES))
    for text in texts
    for fold in (False, True)
]
PATTERNS = {typed: parse_pattern(typed[0], regex=typed[1], ignore_case=typed[2]) for typed in TYPED}


@pytest.mark.usefixtures("small_blocks")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(LOGS, st.sampled_from((1, 600, 10**9)), st.booleans())
@example(b"\x1b[32mERR\x1b[0mOR\n", 1, False)
@example(b"ER\x00ROR\n", 1, False)
@example(b"ER\x07ROR\nE\x7fRROR\n", 1, False)
@example(b"ERROR\rab\nERRORERROR\rerror", 1, False)
@example(b"x\xc2\x9bERROR\nkis\xc5\xbf\n", 1, False)
@example(b"a\tx\nE\t R\n\t", 1, False)
@example(b"E\xc2\xa0R\n", 1, False)
def test_what_is_shown_is_what_is_found(data: bytes, sparse: int, grown: bool) -> None:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        # 1: by the rarest byte whenever there is one; a billion: never.
        patch.setattr(anchors, "MIN_BYTES_PER_CANDIDATE", sparse)
        path = Path(folder) / "combined.log"
        path.write_bytes(data[: len(data) // 2] if grown else data)
        log = opened(ReplicaLog("r", 0, combined=path))
        tallies = {typed: index_matches(log, pattern) for typed, pattern in PATTERNS.items()}
        path.write_bytes(data)
        drain(log)
        first = log.bounds().first
        lines = shown_lines(log)
        for (text, regex, fold), counted in tallies.items():
            is_match = oracle(text, regex=regex, ignore_case=fold)
            want = [number for number, line in enumerate(lines, first) if is_match(line)]
            # The way to a line is the same before what came since was counted.
            assert matching(log, counted) == want, (text, regex, fold)
            while counted.step(1):
                pass
            assert counted.count == len(want), (text, regex, fold)
            assert matching(log, counted) == want, (text, regex, fold)
        log.close()


@pytest.mark.usefixtures("small_blocks")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    st.lists(
        st.tuples(
            st.integers(0, 2), st.sampled_from("oe"), st.sampled_from((b"ERR", b"OR\n", b"a\n", b"ERROR\n", b"x"))
        ),
        max_size=20,
    ),
    st.integers(0, 20),
)
def test_all_replicas_are_searched_as_they_grow(chunks: list[tuple[int, str, bytes]], opened_after: int) -> None:
    pattern = parse_pattern("ERROR")
    with tempfile.TemporaryDirectory() as folder:
        writers = [LogWriter(Path(folder), replica) for replica in range(3)]
        for at, (replica, letter, data) in enumerate(chunks[:opened_after]):
            writers[replica].write(data, letter, at + 1000)
        log = opened(*(writer.log for writer in writers))
        counted = index_matches(log, pattern)
        for at, (replica, letter, data) in enumerate(chunks[opened_after:], opened_after):
            writers[replica].write(data, letter, at + 1000)
            drain(log)
            while counted.step(1):
                pass
        first, end, *_ = log.bounds()
        want = [n for n, line in zip(range(first, end), shown_lines(log), strict=True) if "ERROR" in line]
        assert counted.count == len(want)
        assert matching(log, counted) == want
        log.close()


@pytest.mark.parametrize("typed", [(text, False) for text in TEXTS] + [(text, True) for text in REGEXES])
def test_what_is_marked_is_what_python_finds(typed: tuple[str, bool]) -> None:
    import re

    text, regex = typed
    pattern = parse_pattern(text, regex=regex, ignore_case=True)
    for line in ("an ERROR error x", "größe GRÖSSE Größe", "kiss KISS 12 ab12", "  x E R", "loss=1 loss=2", "é É ς σ"):
        found = [line[start:end] for start, end in pattern.spans(line)]
        want = [m[0] for m in re.finditer(text if regex else re.escape(text), line, re.IGNORECASE) if m[0]]
        assert found == want


@pytest.mark.parametrize("failure", [None, OSError, AttributeError, TypeError])
def test_a_text_is_found_with_and_without_the_c_library(
    monkeypatch: pytest.MonkeyPatch, failure: type[Exception] | None
) -> None:
    def refuse(_: object) -> object:
        raise failure or OSError

    if failure is not None:
        monkeypatch.setattr(scanner.ctypes, "CDLL", refuse)
    scanner._memmem.cache_clear()
    find = scanner.finder(b"a text in a text", b"text")
    assert [find(start) for start in (0, 2, 3, 12, 13)] == [2, 2, 12, 12, -1]
    assert scanner.finder(b"", b"text")(0) == -1
    scanner._memmem.cache_clear()


@pytest.mark.parametrize(
    ("text", "regex", "line", "found"),
    [
        ("e", False, b"e e", True),
        ("E", False, b"e e", False),
        ("e", False, b"E e", True),
        ("^abc", True, b"abc abc", True),
        ("^abc", True, b"babc", False),
        ("abc$", True, b"abc abc", True),
    ],
)
def test_each_line_is_counted_once_however_often_and_dense(text: str, regex: bool, line: bytes, found: bool) -> None:
    lines = scanner.PatternScanner(parse_pattern(text, regex=regex), b"")
    for data, count in ((line + b"\n", 1), ((line + b"\n") * 200, 200), ((line + b"\n") * 99 + line, 100)) * 2:
        for _ in range(20):
            block = Block(data, count, Rendering.UNEDITED)
            assert lines.count(block) == (count if found else 0)
            assert list(lines.numbers(block)) == (list(range(count)) if found else [])
    mixed = Block((line + b"\n\nnil\n") * 200, 600, Rendering.PLAIN)
    assert list(lines.numbers(mixed)) == (list(range(0, 600, 3)) if found else [])


def test_how_lines_are_shown_is_noted_as_they_are_searched(tmp_path: Path) -> None:
    for data, rendering in ((b"a 1\n", Rendering.PLAIN), (b"a\t1\n", Rendering.CHANGED), (b"a\r1\n", Rendering.EDITED)):
        log = written(tmp_path, data)
        assert index_matches(log, parse_pattern(r"\d", regex=True)).count == 1
        assert [row.rendering for row in log.index.rows(False, 0, 9)] == [rendering]


def test_a_match_of_nothing_is_not_marked() -> None:
    for text in ("a*", "a*(?!x)", r"(b?)\1a*"):
        for line in ("baab", "báab"):
            spans = parse_pattern(text, regex=True).spans(line)
            assert spans
            assert all(start < end for start, end in spans)


def test_a_sample_is_from_all_over_the_log(tmp_path: Path) -> None:
    assert take_sample(written(tmp_path, b"")) == b""
    writer = LogWriter(tmp_path)
    log = opened(writer.log)
    for number in range(12):
        writer.write(b"line %d\n" % number, at=1000 + number)
        drain(log)
        assert take_sample(log) == b"".join(b"line %d\n" % n for n in range(number + 1))
    log.drop_before(5)
    assert take_sample(log) == b"".join(b"line %d\n" % n for n in range(5, 12))
    writer.write(b"".join(b"%7d\n" % n for n in range(1 << 20)), at=2000)
    drain(log)
    sample = take_sample(log)
    assert 100_000 < len(sample) < 200_000
    parts = {int(line) >> 17 for line in sample.splitlines() if line.strip().isdigit()}
    assert parts == set(range(8))


@pytest.mark.parametrize(
    ("text", "regex", "folds"),
    [("error", False, True), ("Error", False, False), ("12", False, False), (r"\S+\W", True, True),
     ("[A-Z]", True, False), ("é", False, True), ("É", False, False), ("a(?:b|C)", True, False)],
)  # fmt: skip
def test_case_counts_once_there_is_an_upper_case_letter(text: str, regex: bool, folds: bool) -> None:
    assert parse_pattern(text, regex=regex).ignore_case is folds
    assert parse_pattern("a" + text, regex=regex, ignore_case=True).ignore_case


@pytest.mark.parametrize(
    ("text", "position"), [("a(b", 1), ("[z-a]", 1), ("*a", 0), ("a{2,1}", 2), ("(?P<n>a)(?P=m)", 12), ("a\\", 1)]
)
def test_a_faulty_regex_is_refused_with_its_place(text: str, position: int) -> None:
    with pytest.raises(PatternError, match="not a regular expression") as refused:
        parse_pattern(text, regex=True)
    assert refused.value.position == position
    assert f"at character {position + 1}" in str(refused.value)


@pytest.mark.parametrize("text", ["", "\x07", "a" * 3000, "(" * 1500 + ")" * 1500])
def test_what_cannot_be_searched_is_refused_in_words(text: str) -> None:
    with pytest.raises(PatternError):
        parse_pattern(text, regex=len(text) > 2)


def test_a_huge_line_is_searched_as_far_as_it_is_shown(tmp_path: Path) -> None:
    data = b"ERROR 1\n" + b"x" * 1_000_000 + b"ERROR\n" + b"ERROR" + b"y" * 500_000 + b"\nERROR 4\n"
    log = written(tmp_path, data)
    counted = index_matches(log, parse_pattern("ERROR"))
    assert matching(log, counted) == [-4, -2, -1]


def test_a_file_cut_under_the_search_is_no_fault(tmp_path: Path) -> None:
    path = tmp_path / "combined.log"
    log = written(tmp_path, b"ERROR of old\nplain\n" * 50_000)
    counted = MatchIndex(log, RulesScanner([Rule(parse_pattern("ERROR"))], take_sample(log)))
    counted.step(0)
    path.write_bytes(b"ERROR of new\n")
    drain(log)
    while counted.step(1):
        pass
    last = counted.find(log.bounds().end - 1, False)
    assert last is not None
    assert log.lines(last, 1)[0].data == b"ERROR of new"


def test_a_search_counts_answers_and_follows(tmp_path: Path) -> None:
    path = tmp_path / "combined.log"
    log = written(tmp_path, b"".join(b"line %d\n" % n for n in range(100_000)))
    changed = threading.Event()
    search = Search(log, parse_pattern("line 99", ignore_case=False), changed.set)
    search.start()
    wait_for(lambda: search.state.complete)
    assert search.state.found == 1 + 10 + 100 + 1000
    assert changed.wait(PATIENCE)
    changed.clear()
    search.acknowledge()
    answers: list[int | None] = []
    search.find(-1, False, answers.append)
    wait_for(lambda: bool(answers))
    assert answers == [-1]
    with path.open("ab") as file:
        file.write(b"line 99 again\n")
    drain(log)
    search.poll_now()
    wait_for(lambda: search.state.found == 1112)
    search.find(0, True, answers.append)
    wait_for(lambda: len(answers) == 2)
    assert answers[1] == 0
    assert search.spans(log.lines(0, 1)[0]) == [(0, 7)]
    search.close()
    assert search.join(PATIENCE)


def test_a_search_of_what_a_filter_left_counts_in_its_lines(tmp_path: Path) -> None:
    log = written(tmp_path, b"".join(b"%s line %d\n" % (b"keep" if n % 2 else b"drop", n) for n in range(1000)))
    kept = FilteredLog(log, [Rule(parse_pattern("keep"))])
    while kept.read_older(1):
        pass
    search = Search(kept, parse_pattern("99$", regex=True))
    search.start()
    wait_for(lambda: search.state.complete)
    assert search.state.found == 10
    first, end, *_ = kept.bounds()
    for line, forward, found in (
        (first, True, b"keep line 99"),
        (first - 1, True, b"keep line 99"),
        (first - 1, False, None),
        (first + 49, True, b"keep line 99"),
        (first + 50, True, b"keep line 199"),
        (end - 1, True, b"keep line 999"),
        (end, False, b"keep line 999"),
        (end, True, None),
    ):
        answers: list[int | None] = []
        search.find(line, forward, answers.append)
        wait_for(lambda answers=answers: bool(answers))
        assert [None if at is None else kept.lines(at, 1)[0].data for at in answers] == [found]
    search.close()
    assert search.join(PATIENCE)


def test_a_search_is_closed_at_once(tmp_path: Path) -> None:
    log = written(tmp_path, os.urandom(20_000_000))
    search = Search(log, parse_pattern(r"(a|b)\1x", regex=True))
    search.start()
    wait_for(lambda: log.bounds().complete)
    search.close()
    assert search.join(PATIENCE)
    assert not search.state.failure


def test_a_costly_search_ends_with_a_message(tmp_path: Path) -> None:
    log = written(tmp_path, b"plain\n" + b"a" * 5000 + b"!\n")
    search = Search(log, parse_pattern(r"^(a|a?)+$(?!x)", regex=True))
    search.start()
    wait_for(lambda: bool(search.state.failure))
    assert "takes too long" in search.state.failure
    assert search.join(PATIENCE)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("filtered", [False, True])
def test_a_match_knows_which_of_all_it_is(tmp_path: Path, filtered: bool) -> None:
    log = written(tmp_path, b"".join(b"line %d%s\n" % (n, b" x" if n % 7 == 3 else b"") for n in range(300)))
    with (tmp_path / "combined.log").open("ab") as file:
        file.write(b"".join(b"new %d x\n" % n for n in range(20)))
    drain(log)
    shown: MergedLog | FilteredLog = log
    if filtered:
        shown = FilteredLog(log, [Rule(parse_pattern("5"), keep=False)])
        while shown.read_older(1):
            pass
    first, end, *_ = shown.bounds()
    lines = shown.lines(first, end - first)
    wanted = [line.number for line in lines if line.data.endswith(b" x")]
    search = Search(shown, parse_pattern("x"))
    search.start()
    wait_for(lambda: search.state.complete)
    answers: dict[int, int | None] = {}
    for line in lines:
        search.rank(line.number, lambda rank, number=line.number: answers.__setitem__(number, rank))
        wait_for(lambda number=line.number: number in answers)
    search.close()
    assert {number: rank for number, rank in answers.items() if rank is not None} == {
        number: rank for rank, number in enumerate(wanted)
    }
    assert len(answers) == len(lines)


def test_ranks_count_what_was_not_dropped(tmp_path: Path) -> None:
    paths = [tmp_path / f"{n}.log" for n in range(2)]
    paths[0].write_bytes(b"x 0\nx 1\n")
    log = opened(ReplicaLog("r", 0, combined=paths[0]))
    for n in range(2, 5):
        with paths[0].open("ab") as file:
            file.write(b"x %d\n" % n)
        drain(log)
    counted = index_matches(log, parse_pattern("x"))
    assert [counted.rank(line) for line in range(-2, 3)] == [0, 1, 2, 3, 4]
    log.drop_before(1)
    while counted.step(1):
        pass
    first = log.bounds().first
    assert [counted.rank(line) for line in range(first, 3)] == list(range(3 - first))
    assert counted.rank(first - 1) is None


@pytest.mark.parametrize(
    ("expression", "has_upper", "ignores_case"),
    [
        ("ab", False, False),
        ("aB", True, False),
        ("(?i)ab", False, True),
        ("(?i:a)b", False, True),
        ("x(?:(?i:a)|B)", True, True),
    ],
)
def test_what_an_expression_says_of_case(expression: str, has_upper: bool, ignores_case: bool) -> None:
    parsed = parse_regex(expression)
    assert (parsed.has_upper, parsed.ignores_case) == (has_upper, ignores_case)


@pytest.mark.parametrize(
    ("expression", "texts"),
    [
        ("abc", [("abc",)]),
        ("^a(bc)d$", [("abcd",)]),
        ("ab.*cd", [("ab",), ("cd",)]),
        ("a(b.c)d", [("a",), ("b",), ("c",), ("d",)]),
        ("(?:ab){2,}c", [("ab",), ("c",)]),
        ("(?:ab)+?c", [("ab",), ("c",)]),
        ("(?:ab){0,2}c", [("c",)]),
        ("(?:ab)?c", [("c",)]),
        ("ab|cd.", [("ab", "cd")]),
        ("x.(?:ab|c.de|f)", [("x",), ("ab", "de", "f")]),
        ("a(?:b|.)", [("a",)]),
        ("a(?=bc)d(?!ef)", [("ad",)]),
        ("[ab]", []),
        pytest.param("(?:ab)++c", [("ab",), ("c",)], marks=_since_3_11),
        pytest.param("(?>ab)c", [("ab",), ("c",)], marks=_since_3_11),
    ],
)
def test_what_each_match_has(expression: str, texts: list[tuple[str, ...]]) -> None:
    assert list(parse_regex(expression).requirements) == texts


@_since_3_11
@pytest.mark.parametrize("expression", ["(?:aB)++", "(?>aB)", "(?:x|aB)", "(?=B)", "[A-C]", "[^B]"])
def test_an_upper_case_letter_anywhere_counts(expression: str) -> None:
    assert parse_regex(expression).has_upper
    assert not parse_regex(expression.lower()).has_upper
