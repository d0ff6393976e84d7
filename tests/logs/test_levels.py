import time
from pathlib import Path

import pytest
from support.tables import toml_table

from torchx_tui.logs.pattern.error_kinds import known_kinds

TABLE = toml_table(Path(__file__).with_name("data") / "levels.toml")


@pytest.mark.parametrize(("text", "word", "level"), TABLE["levels"])
def test_level_of_a_line(text, word, level):
    found = known_kinds().level_of(text)
    assert found
    assert (text[found.start : found.end], found.level) == (word, level)


@pytest.mark.parametrize("text", TABLE["without"])
def test_words_elsewhere_are_no_level(text):
    assert known_kinds().level_of(text) is None


@pytest.mark.parametrize("unit", ["a.", "[", "[a] ", "A", "(", "1:1 ", "ERROR.", " "])
def test_cost_of_a_long_line_is_bounded(unit):
    started = time.thread_time()
    known_kinds().level_of(unit * 100_000)
    assert time.thread_time() - started < 0.5
