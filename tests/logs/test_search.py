import os
import tempfile
import threading
import time
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from log_reading import append, lines_of, log_of_file, read_on
from search_oracle import LOGS, REGEXES, TEXTS, oracle, shown_lines
from support.waiting import PATIENCE, wait_until

from torchx_tui.logs.lines.background import Search
from torchx_tui.logs.lines.matches import Matches, Rule
from torchx_tui.logs.pattern.pattern import PatternError, parse_pattern


def matches_of(log, pattern):
    matches = Matches(log, [Rule(pattern)])
    count_on(matches)
    return matches


def count_on(matches):
    while matches.step(1):
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
@given(LOGS, st.booleans())
@example(b"\x1b[32mERR\x1b[0mOR\n", False)
@example(b"ER\x00ROR\n", False)
@example(b"ER\x07ROR\nE\x7fRROR\n", False)
@example(b"ERROR\rab\nERRORERROR\rerror", False)
@example(b"x\xc2\x9bERROR\nkis\xc5\xbf\n", False)
@example(b"a\tx\nE\t R\n\t", False)
@example(b"E\xc2\xa0R\n", False)
@example(b"\n" + b"ERROR" * 6 + b"\n\nERROR\n\n" + b"ERROR" * 4 + b"\rkiss", True)
def test_search_finds_what_is_shown(data, grown):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "combined.log"
        log = log_of_file(path, data[: len(data) // 2] if grown else data)
        indexes = {typed: matches_of(log, pattern) for typed, pattern in PATTERNS.items()}
        path.write_bytes(data)
        read_on(log)
        lines = list(enumerate(shown_lines(log), log.bounds().first))
        for (text, regex, fold), index in indexes.items():
            compiled = oracle(text, regex=regex, ignore_case=fold)
            wanted = [number for number, line in lines if compiled.search(line)]
            # Matches are found before the new lines are counted, too.
            assert matching(log, index) == wanted, (text, regex, fold)
            count_on(index)
            assert index.count == len(wanted), (text, regex, fold)
            assert matching(log, index) == wanted, (text, regex, fold)
        log.close()


@pytest.mark.parametrize(("text", "regex"), [*((text, False) for text in TEXTS), *((text, True) for text in REGEXES)])
def test_spans_are_what_python_finds(text, regex):
    pattern = parse_pattern(text, regex=regex, ignore_case=True)
    expected = oracle(text, regex=regex, ignore_case=True)
    for line in ("an ERROR error x", "größe GRÖSSE Größe", "kiss KISS 12 ab12", "  x E R", "loss=1 loss=2", "é É ς σ"):
        assert list(pattern.spans(line)) == [match.span() for match in expected.finditer(line) if match[0]]


@pytest.mark.parametrize(
    "text", [r"^(a+)+$", r"(.*a){20}$", r"^(\w+\s?)*$!", "(a*)*c", r"(x+x+)+y", "(?:.*,){30}x", "(a?){64}a{64}c"]
)
def test_nested_repeats_take_linear_time(text):
    pattern = parse_pattern(text, regex=True)
    began = time.thread_time()
    for line in (b"a" * 4000 + b"!\n", b"aaa bbb " * 400 + b"!\n", b"1.2.3." * 500 + b"?\n"):
        assert list(pattern.starts(line)) == []
    assert time.thread_time() - began < 1


def test_empty_matches_are_not_marked():
    for line in ("baab", "béaab"):
        assert parse_pattern("a*", regex=True).spans(line) == [(len(line) - 3, len(line) - 1)]


def test_marks_in_one_line_are_limited():
    assert len(parse_pattern("a", regex=True).spans("a " * 8000)) == 1000


@pytest.mark.parametrize(
    ("text", "line", "found"),
    [("e", b"e e", True), ("E", b"e e", False), ("e", b"E e", True), ("^abc", b"abc abc", True),
     ("^abc", b"babc", False), ("abc$", b"abc abc", True)],
)  # fmt: skip
def test_dense_lines_are_found_once(text, line, found):
    pattern = parse_pattern(text, regex=len(text) > 1)
    for data, numbers in (
        (line + b"\n", range(1)),
        ((line + b"\n") * 200, range(200)),
        ((line + b"\n\nnil\n") * 200, range(0, 600, 3)),
    ):
        starts = [data.count(b"\n", 0, start) for start in pattern.starts(data)]
        assert starts == (list(numbers) if found else [])


@pytest.mark.parametrize(
    ("text", "folds"),
    [("error", True), ("Error", False), ("12", False), (r"/\S+\W", True), ("/[A-Z]", False), ("é", True), ("É", False),
     ("/a(?:b|C)", False), ("/(?P<Name>a)", True), ("/[^B]", False), ("/(?i)ab", True)],
)  # fmt: skip
def test_upper_case_letter_makes_case_count(text, folds):
    regex = text.startswith("/")
    assert parse_pattern(text.strip("/"), regex=regex).ignore_case is folds
    assert parse_pattern("a" + text.strip("/"), regex=regex, ignore_case=True).ignore_case


@pytest.mark.parametrize(
    ("text", "position"),
    [("a(b", 1), ("[z-a]", 1), ("*a", 0), ("a{2,1}", 2), ("(?P<n>a)(?P=m)", 12), ("a\\", 1), ("a)(b", 1)],
)
def test_invalid_regex_is_refused_with_its_position(text, position):
    with pytest.raises(PatternError, match=f"not a regular expression.*at character {position + 1}") as refused:
        parse_pattern(text, regex=True)
    assert refused.value.position == position


@pytest.mark.parametrize(
    ("text", "position"),
    [("E(?=R)", 1), ("E(?!R)", 1), ("x(?<=E)R", 1), ("(?<!E)R", 0), (r"(E)R\1", 4), ("(?P<n>a)(?P=n)", 0)],
)
def test_look_around_and_back_references_are_refused(text, position):
    words = f"look-around and back-references are not supported: .* at character {position + 1}$"
    with pytest.raises(PatternError, match=words) as refused:
        parse_pattern(text, regex=True)
    assert refused.value.position == position


@pytest.mark.parametrize("text", [r"\u1234", "a{2000}", "(?x)a b", "(a{90}){90}"])
def test_other_syntax_that_re2_lacks_is_refused(text):
    with pytest.raises(PatternError, match=r"cannot be searched for|too large"):
        parse_pattern(text, regex=True)


@pytest.mark.parametrize("text", ["", "\x07", "a" * 3000], ids=len)
def test_unusable_pattern_is_refused(text):
    with pytest.raises(PatternError):
        parse_pattern(text)


def test_long_line_is_searched_as_far_as_it_is_shown(tmp_path):
    data = b"ERROR 1\n" + b"x" * 1_000_000 + b"ERROR\n" + b"ERROR" + b"y" * 500_000 + b"\nERROR 4\n"
    log = log_of_file(tmp_path / "c", data)
    assert matching(log, matches_of(log, parse_pattern("ERROR"))) == [-4, -2, -1]


def test_file_may_be_truncated_during_a_search(tmp_path):
    log = log_of_file(tmp_path / "c", b"ERROR of old\nplain\n" * 50_000)
    index = Matches(log, [Rule(parse_pattern("ERROR"))])
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
    assert search.pattern.spans("line 99 again") == [(0, 7)]


@pytest.mark.usefixtures("small_blocks")
def test_search_of_a_filtered_log_finds_and_ranks(tmp_path, searching):
    log = log_of_file(tmp_path / "c", b"".join(b"line %d%s\n" % (n, b" x" * (n % 7 == 3)) for n in range(80)))
    append(tmp_path / "c", b"".join(b"new %d x\n" % n for n in range(20)))
    shown = Matches(log, [Rule(parse_pattern("5"), keep=False)])
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
    search = searching(log_of_file(tmp_path / "c", os.urandom(2_000_000)), "(a|b)+x", regex=True)
    search.close()
    assert search.join(PATIENCE)
    assert not search.state.failure
