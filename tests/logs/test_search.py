import os
import re
import sys
import tempfile
import threading
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from log_reading import append, lines_of, log_of_file, opened, read_on
from log_writing import LogWriter
from search_oracle import LOGS, REGEXES, TEXTS, oracle, shown_lines
from support.waiting import PATIENCE, wait_until

from torchx_tui.logs.pattern import required
from torchx_tui.logs.pattern.engine import PatternError
from torchx_tui.logs.pattern.pattern import parse_pattern
from torchx_tui.logs.text.shown import Block, Rendering
from torchx_tui.logs.view import scanner
from torchx_tui.logs.view.background import Search
from torchx_tui.logs.view.filtering import FilteredLog, Rule, RulesScanner
from torchx_tui.logs.view.match_index import MatchIndex, take_sample

_since_3_11 = pytest.mark.skipif(sys.version_info < (3, 11), reason="Python knows such expressions since 3.11")


def index_of(log, pattern):
    index = MatchIndex(log, RulesScanner([Rule(pattern)], take_sample(log)))
    count_on(index)
    return index


def count_on(index):
    while index.step(1):
        pass


def walk(index, line, step):
    found = []
    while (line := index.find(line, step > 0)) is not None:
        found.append(line)
        line += step
    return found


def matching(log, index):
    """Walk through all matches, which are the same backwards, and from outside of the log."""
    first, end, *_ = log.bounds()
    found = walk(index, first, 1)
    assert walk(index, end - 1, -1) == found[::-1]
    assert walk(index, first - 5, 1) == found
    assert walk(index, end + 5, -1) == found[::-1]
    assert [index.find(first - 5, False), index.find(end + 5, True)] == [None, None]
    return found


TYPED = [
    (text, regex, fold)
    for regex, texts in ((False, TEXTS), (True, REGEXES))
    for text in texts
    for fold in (False, True)
]
PATTERNS = {typed: parse_pattern(typed[0], regex=typed[1], ignore_case=typed[2]) for typed in TYPED}


@pytest.mark.usefixtures("small_blocks")
@given(LOGS, st.sampled_from((1, 600, 10**9)), st.booleans())
@example(b"\x1b[32mERR\x1b[0mOR\n", 1, False)
@example(b"ER\x00ROR\n", 1, False)
@example(b"ER\x07ROR\nE\x7fRROR\n", 1, False)
@example(b"ERROR\rab\nERRORERROR\rerror", 1, False)
@example(b"x\xc2\x9bERROR\nkis\xc5\xbf\n", 1, False)
@example(b"a\tx\nE\t R\n\t", 1, False)
@example(b"E\xc2\xa0R\n", 1, False)
def test_search_finds_what_is_shown(data, sparse, grown):
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        # 1: by the rarest byte whenever there is one; a billion: never.
        patch.setattr(required, "MIN_BYTES_PER_CANDIDATE", sparse)
        path = Path(folder) / "combined.log"
        log = log_of_file(path, data[: len(data) // 2] if grown else data)
        indexes = {typed: index_of(log, pattern) for typed, pattern in PATTERNS.items()}
        path.write_bytes(data)
        read_on(log)
        lines = list(enumerate(shown_lines(log), log.bounds().first))
        for (text, regex, fold), index in indexes.items():
            is_match = oracle(text, regex=regex, ignore_case=fold)
            wanted = [number for number, line in lines if is_match(line)]
            # Matches are found before the new lines are counted, too.
            assert matching(log, index) == wanted, (text, regex, fold)
            count_on(index)
            assert index.count == len(wanted), (text, regex, fold)
            assert matching(log, index) == wanted, (text, regex, fold)
        log.close()


@pytest.mark.parametrize(("text", "regex"), [*((text, False) for text in TEXTS), *((text, True) for text in REGEXES)])
def test_spans_are_what_python_finds(text, regex):
    pattern = parse_pattern(text, regex=regex, ignore_case=True)
    expected = re.compile(text if regex else re.escape(text), re.IGNORECASE)
    for line in ("an ERROR error x", "größe GRÖSSE Größe", "kiss KISS 12 ab12", "  x E R", "loss=1 loss=2", "é É ς σ"):
        assert list(pattern.spans(line)) == [match.span() for match in expected.finditer(line) if match[0]]


def test_empty_matches_are_not_marked():
    for text in ("a*", "a*(?!x)", r"(b?)\1a*"):
        for line in ("baab", "báab"):
            spans = parse_pattern(text, regex=True).spans(line)
            assert spans
            assert all(start < end for start, end in spans)


@pytest.mark.parametrize("failure", [None, OSError, AttributeError, TypeError])
def test_text_is_found_without_the_c_library(monkeypatch, failure):
    def refuse(_):
        raise failure

    if failure is not None:
        monkeypatch.setattr(scanner.ctypes, "CDLL", refuse)
    scanner._memmem.cache_clear()
    find = scanner.finder(b"a text in a text", b"text")
    assert [find(start) for start in (0, 2, 3, 12, 13)] == [2, 2, 12, 12, -1]
    assert scanner.finder(b"", b"text")(0) == -1
    scanner._memmem.cache_clear()


@pytest.mark.parametrize(
    ("text", "line", "found"),
    [("e", b"e e", True), ("E", b"e e", False), ("e", b"E e", True), ("^abc", b"abc abc", True),
     ("^abc", b"babc", False), ("abc$", b"abc abc", True)],
)  # fmt: skip
def test_lines_are_counted_once_however_dense(text, line, found):
    lines = scanner.PatternScanner(parse_pattern(text, regex=len(text) > 1), b"")
    for data, count in ((line + b"\n", 1), ((line + b"\n") * 200, 200), ((line + b"\n") * 99 + line, 100)) * 2:
        for _ in range(20):
            block = Block(data, count, Rendering.UNEDITED)
            assert lines.count(block) == (count if found else 0)
            assert list(lines.numbers(block)) == (list(range(count)) if found else [])
    mixed = Block((line + b"\n\nnil\n") * 200, 600, Rendering.PLAIN)
    assert list(lines.numbers(mixed)) == (list(range(0, 600, 3)) if found else [])


def test_sample_is_from_all_over_the_log(tmp_path):
    writer = LogWriter(tmp_path)
    log = opened(writer)
    for number in range(12):
        writer.write(b"line %d\n" % number, at=1000 + number)
        read_on(log)
        assert take_sample(log) == b"".join(b"line %d\n" % n for n in range(number + 1))
    writer.write(b"".join(b"%7d\n" % n for n in range(1 << 19)), at=2000)
    read_on(log)
    sample = take_sample(log)
    assert 100_000 < len(sample) < 200_000
    assert {int(line) >> 16 for line in sample.splitlines() if line.strip().isdigit()} == set(range(8))


@pytest.mark.parametrize(
    ("text", "folds"),
    [("error", True), ("Error", False), ("12", False), (r"/\S+\W", True), ("/[A-Z]", False), ("é", True), ("É", False),
     ("/a(?:b|C)", False)],
)  # fmt: skip
def test_upper_case_letter_makes_case_count(text, folds):
    regex = text.startswith("/")
    assert parse_pattern(text.strip("/"), regex=regex).ignore_case is folds
    assert parse_pattern("a" + text.strip("/"), regex=regex, ignore_case=True).ignore_case


@pytest.mark.parametrize(
    ("text", "position"), [("a(b", 1), ("[z-a]", 1), ("*a", 0), ("a{2,1}", 2), ("(?P<n>a)(?P=m)", 12), ("a\\", 1)]
)
def test_invalid_regex_is_refused_with_its_position(text, position):
    with pytest.raises(PatternError, match=f"not a regular expression.*at character {position + 1}") as refused:
        parse_pattern(text, regex=True)
    assert refused.value.position == position


@pytest.mark.parametrize("text", ["", "\x07", "a" * 3000, "(" * 1500 + ")" * 1500], ids=len)
def test_unusable_pattern_is_refused(text):
    with pytest.raises(PatternError):
        parse_pattern(text, regex=len(text) > 2)


def test_long_line_is_searched_as_far_as_it_is_shown(tmp_path):
    data = b"ERROR 1\n" + b"x" * 1_000_000 + b"ERROR\n" + b"ERROR" + b"y" * 500_000 + b"\nERROR 4\n"
    log = log_of_file(tmp_path / "c", data)
    assert matching(log, index_of(log, parse_pattern("ERROR"))) == [-4, -2, -1]


def test_file_may_be_truncated_during_a_search(tmp_path):
    log = log_of_file(tmp_path / "c", b"ERROR of old\nplain\n" * 50_000)
    index = MatchIndex(log, RulesScanner([Rule(parse_pattern("ERROR"))], take_sample(log)))
    index.step(0)
    (tmp_path / "c").write_bytes(b"ERROR of new\n")
    read_on(log)
    count_on(index)
    last = index.find(log.bounds().end - 1, False)
    assert last is not None
    assert log.lines(last, 1)[0].data == b"ERROR of new"


@pytest.fixture
def searching():
    """Start searches that answer at once, and close them."""
    searches = []

    class Searching(Search):
        def ask(self, method, *arguments):
            answers = []
            method(*arguments, answers.append)
            wait_until(lambda: answers, "the answer", PATIENCE)
            return answers[0]

        def wait_for(self, found):
            wait_until(lambda: self.state.complete and self.state.found == found, f"{found} matches", PATIENCE)

    def start(log, text, *changed, **options):
        searches.append(Searching(log, parse_pattern(text, **options), *changed))
        searches[-1].start()
        return searches[-1]

    yield start
    for search in searches:
        search.close()
        assert search.join(PATIENCE)


def test_search_counts_answers_and_follows(tmp_path, searching):
    log = log_of_file(tmp_path / "c", b"".join(b"line %d\n" % n for n in range(100_000)))
    changed = threading.Event()
    search = searching(log, "line 99", changed.set, ignore_case=False)
    search.wait_for(1 + 10 + 100 + 1000)
    assert changed.wait(PATIENCE)
    search.acknowledge()
    assert search.ask(search.find, -1, False) == -1
    append(tmp_path / "c", b"line 99 again\n")
    read_on(log)
    search.poll_now()
    search.wait_for(1112)
    assert search.ask(search.find, 0, True) == 0
    assert search.spans(log.lines(0, 1)[0]) == [(0, 7)]


@pytest.mark.usefixtures("small_blocks")
def test_search_of_a_filtered_log_finds_and_ranks(tmp_path, searching):
    log = log_of_file(tmp_path / "c", b"".join(b"line %d%s\n" % (n, b" x" * (n % 7 == 3)) for n in range(80)))
    append(tmp_path / "c", b"".join(b"new %d x\n" % n for n in range(20)))
    shown = FilteredLog(log, [Rule(parse_pattern("5"), keep=False)])
    read_on(shown)
    wanted = [number for number, line in enumerate(lines_of(shown), shown.bounds().first) if line.endswith(b" x")]
    search = searching(shown, "x")
    search.wait_for(len(wanted))
    for number in range(shown.bounds().first - 1, shown.bounds().end + 1):
        rank = wanted.index(number) if number in wanted else None
        assert search.ask(search.rank, number) == rank
        assert search.ask(search.find, number, True) == min((n for n in wanted if n >= number), default=None)
        assert search.ask(search.find, number, False) == max((n for n in wanted if n <= number), default=None)


def test_search_is_closed_at_once(tmp_path, searching):
    search = searching(log_of_file(tmp_path / "c", os.urandom(2_000_000)), r"(a|b)\1x", regex=True)
    search.close()
    assert search.join(PATIENCE)
    assert not search.state.failure


def test_costly_search_ends_with_a_message(tmp_path, searching):
    search = searching(log_of_file(tmp_path / "c", b"plain\n" + b"a" * 5000 + b"!\n"), r"^(a|a?)+$(?!x)", regex=True)
    assert "takes too long" in wait_until(lambda: search.state.failure, "its failure", PATIENCE)


@pytest.mark.parametrize(
    ("expression", "has_upper", "ignores_case"),
    [("ab", False, False), ("aB", True, False), ("(?i)ab", False, True), ("(?i:a)b", False, True),
     ("x(?:(?i:a)|B)", True, True), ("(?:x|aB)", True, False), ("(?=B)", True, False), ("[A-C]", True, False),
     ("[^B]", True, False), ("[^b]", False, False), pytest.param("(?:aB)++", True, False, marks=_since_3_11),
     pytest.param("(?>aB)", True, False, marks=_since_3_11)],
)  # fmt: skip
def test_case_of_an_expression(expression, has_upper, ignores_case):
    parsed = required.parse_regex(expression)
    assert (parsed.has_upper, parsed.ignores_case) == (has_upper, ignores_case)


@pytest.mark.parametrize(
    ("expression", "texts"),
    [
        ("abc", "abc"),
        ("^a(bc)d$", "abcd"),
        ("ab.*cd", "ab cd"),
        ("a(b.c)d", "a b c d"),
        ("(?:ab){2,}c", "ab c"),
        ("(?:ab)+?c", "ab c"),
        ("(?:ab){0,2}c", "c"),
        ("(?:ab)?c", "c"),
        ("ab|cd.", "ab|cd"),
        ("x.(?:ab|c.de|f)", "x ab|de|f"),
        ("a(?:b|.)", "a"),
        ("a(?=bc)d(?!ef)", "ad"),
        ("[ab]", ""),
        pytest.param("(?:ab)++c", "ab c", marks=_since_3_11),
        pytest.param("(?>ab)c", "ab c", marks=_since_3_11),
    ],
)
def test_texts_that_each_match_has(expression, texts):
    assert list(required.parse_regex(expression).requirements) == [tuple(text.split("|")) for text in texts.split()]
