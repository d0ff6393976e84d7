import time

import pytest

from torchx_tui.logs.text.line_kinds import level_of


@pytest.mark.parametrize(
    ("text", "word", "level"),
    [
        ("WARNING dataloader worker 3 slow", "WARNING", "warning"),
        ("ERROR train.py:212 step 14917 failed", "ERROR", "error"),
        ("ERROR:root:no", "ERROR", "error"),
        ("2026-01-01 10:00:00,123 - trainer - ERROR - no", "ERROR", "error"),
        ("[2026-01-01 10:00:00] [WARN] slow", "WARN", "warning"),
        ("[rank3]: FATAL gone", "FATAL", "error"),
        ("worker [ERROR]: no", "ERROR", "error"),
        ("worker (WARN) - slow", "WARN", "warning"),
        ("Jan  3 10:00:00 node7 CRITICAL: disk", "CRITICAL", "error"),
        ("2026-01-01T10:00:00Z my.module ERROR: no", "ERROR", "error"),
        ("torch.OutOfMemoryError: CUDA out of memory", "torch.OutOfMemoryError", "exception"),
        ("[rank0]: ValueError: lr", "ValueError", "exception"),
        ("KeyboardInterrupt", "KeyboardInterrupt", "exception"),
    ],
)
def test_a_word_at_a_levels_place(text, word, level):
    found = level_of(text)
    assert found is not None
    assert (text[found.start : found.end], found.level) == (word, level)


@pytest.mark.parametrize(
    "text",
    ["no ERROR was found", "I saw: WARNING x", "level=ERROR", "ERROR.txt written", "my_ERROR x", "an error",
     "raise ValueError: no", "the last ERROR: was fine", "", "   "],
)  # fmt: skip
def test_a_word_elsewhere_says_nothing(text):
    assert level_of(text) is None


@pytest.mark.parametrize("unit", ["a.", "[", "[a] ", "A", "(", "1:1 ", "ERROR.", " "])
def test_the_cost_is_bounded(unit):
    started = time.thread_time()
    level_of(unit * 100_000)
    assert time.thread_time() - started < 0.5
