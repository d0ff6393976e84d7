"""No expression that somebody types may hold up the application: each ends within its budget, other threads go on."""

import re
import sys
import time

import pytest
from costly_patterns import BAIT, COSTLY, PATTERNS
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.background import Background

from torchx_tui.logs.pattern import engine
from torchx_tui.logs.pattern.engine import CostlyPatternError, PatternError
from torchx_tui.logs.pattern.pattern import parse_pattern
from torchx_tui.logs.text.shown import Block, Rendering
from torchx_tui.logs.view.scanner import PatternScanner

_LINE_LIMIT_S = 0.03


@pytest.fixture(params=["as installed", "without re2"])
def engines(request, monkeypatch):
    monkeypatch.setattr(engine, "LINE_LIMIT_S", _LINE_LIMIT_S)
    monkeypatch.setattr(engine, "BLOCK_LIMIT_S", 0.2)
    if request.param == "without re2":
        monkeypatch.setitem(sys.modules, "re2", None)


def run_within_budget(text):
    """Search the bait; fail where that takes ten times what it may."""
    scanner = PatternScanner(parse_pattern(text, regex=True), b"")
    for line in BAIT:
        began = time.thread_time()
        try:
            scanner.count(Block(line + b"\n", 1, Rendering.UNEDITED))
        except CostlyPatternError:
            # The words are held in test_search.
            pass
        assert time.thread_time() - began < _LINE_LIMIT_S * 10 + 0.5, text


class Pulse(Background):
    """Measures how long another thread was kept from running, by this process: in seconds of its processor time."""

    def __init__(self):
        super().__init__()
        self.longest = 0.0

    def work(self):
        before = time.process_time()
        while not self.stop.wait(0.002):
            now = time.process_time()
            self.longest = max(self.longest, now - before)
            before = now


@pytest.mark.usefixtures("engines")
@pytest.mark.parametrize("part", range(4))
def test_known_costly_patterns_keep_their_budget(part):
    assert len(COSTLY) > 200
    with Pulse() as pulse:
        for text in COSTLY[part::4]:
            run_within_budget(text)
    assert pulse.longest < 1.0


@pytest.mark.usefixtures("engines")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(PATTERNS, st.sampled_from(("!", "$", r"\1!", "(?!x)[^ab!]", "")))
def test_any_pattern_keeps_its_budget(text, end):
    text = f"({text}){end}"
    try:
        re.compile(text)
    except re.error:
        with pytest.raises(PatternError):
            parse_pattern(text, regex=True)
        return
    run_within_budget(text)


def test_only_the_classes_that_it_reads_otherwise_keep_a_line_from_the_fast_engine():
    pytest.importorskip("re2")
    line = f"é{'a' * 5000}c".encode()
    assert not engine.make_engine("(a+)+b", ignore_case=False).matches(line)
    with pytest.raises(CostlyPatternError):
        engine.make_engine(r"(a+)+\db", ignore_case=False).matches(line)
