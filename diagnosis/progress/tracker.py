"""Follows a job's log lines: how far it is, how fast, and its named values."""

from __future__ import annotations

import math
import re
from collections import defaultdict, deque
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from statistics import median

from ...base.durations import duration
from ..metrics.points import to_number
from ..metrics.series import Series
from .moments import MOST_MOMENTS, Moments
from .patterns import PLACES, Patterns
from .plain_table import PlainTable
from .prefilter import candidate_lines, compile_needles
from .recipe import Recipe, Source
from .redraw import Redraws
from .shapes import Shapes
from .stalls import EXCUSES
from .stragglers import KEPT_TIMES, Pace, is_own_time

# A value is shown from its second point on: what is printed once is a setting or a result.
FEWEST_POINTS = 2
# Printers, such as ranks of one job, that are told apart, and those whose values are kept: of others only their pace.
_MOST_PRINTERS, _MOST_KEPT_PRINTERS = 4096, 8
_MOST_SERIES = 300
# Names of times that are kept of each printer.
_MOST_TIMES = 4
# A printer is far ahead with so many times as many values, and so many more.
_FAR_AHEAD, _MORE = 1.1, 8
# Of the lines after the last step, so many bytes are looked at for what the job does instead.
_EXCUSED_BY = 4096
# Bars of what is no training.
_SIDE_BAR = re.compile(
    r"(?i)writ|load|sav|scan|download|fetch|shard|map|token|sanity|valid|eval|test|predict|warm|compil|epochs$|filter"
)
_EPOCH_BAR = re.compile(r"(?i)epochs?$")
_ETA = re.compile(r"(?i)\beta[:=]\s?(?:(\d+) days?, )?(\d+):(\d\d):(\d\d)")


@dataclass(frozen=True)
class Progress:
    """How far a job is.

    Attributes:
        step: the step; None where lines tell none.
        total: the last step; None where it is not known.
        epoch: the number of the epoch as it is printed; None where lines tell none.
        epochs: how many epochs; None where that is not known.
        rate: steps a second; None where it is not known.
        seconds_left: how long until the last step; None where that is not known.
        moved_at: when the step last changed (seconds since the epoch); None where that is not known.
    """

    step: float | None = None
    total: float | None = None
    epoch: float | None = None
    epochs: float | None = None
    rate: float | None = None
    seconds_left: float | None = None
    moved_at: float | None = None

    @property
    def fraction(self) -> float | None:
        """The part that is done, from 0 to 1; None where the end is not known."""
        if self.step is None or not self.total:
            return None
        return max(0.0, min(1.0, self.step / self.total))

    @property
    def percent(self) -> int | None:
        """The part that is done in percent, rounded down; None where the end is not known."""
        return None if self.fraction is None else math.floor(self.fraction * 100)

    @property
    def words(self) -> list[str]:
        """What is known, in phrases: `step 12,430 of 50,000`, `24 %`, `3.41 it/s`, `ends in 3h 04m`."""
        phrases = []
        if self.step is not None:
            phrases.append(f"step {self.step:,.0f}{f' of {self.total:,.0f}' if self.total else ''}")
        if self.epoch is not None:
            phrases.append(f"epoch {self.epoch:g}{f' of {self.epochs:g}' if self.epochs else ''}")
        if self.percent is not None:
            phrases.append(f"{self.percent} %")
        if self.rate:
            phrases.append(f"{self.rate:.3g} it/s" if self.rate >= 1 else f"{1 / self.rate:.3g} s/it")
        if self.seconds_left is not None and not math.isnan(self.seconds_left):
            # In minutes: seconds of an estimate that change all the time draw the eye for nothing.
            whole = duration(math.ceil(max(0.0, min(self.seconds_left, 1e10)) / 60) * 60).removesuffix(" 00s")
            phrases.append(f"ends in {whole if self.seconds_left > 60 else '<1m'}")
        return phrases


class Printer:
    """What one replica, or one rank in its log, prints.

    Args:
        label: what it is called, such as ``trainer/0``.
        replica: whose log it is in.
        keeps: keep its values; its steps are followed anyhow.
    """

    def __init__(self, label: str, replica: str, keeps: bool) -> None:
        self.label, self.replica = label, replica
        self.points = 0
        self.keeps = keeps
        self.moments = Moments(MOST_MOMENTS if keeps else KEPT_TIMES + 1)
        self._rounds: Moments | None = None
        self.series: dict[str, Series] = {}
        self.step: float | None = None
        self._own_times: dict[str, deque[float]] = {}
        self._total: float | None = None
        self._in_epoch = False
        self._offset = 0.0
        self._epoch: float | None = None
        self._epochs: float | None = None
        self._counts_from_zero = False
        self._rate: float | None = None
        self._eta: tuple[float, float] | None = None
        self._explicit = False
        self._step_lines = 0
        self._bar: tuple[str, float | None] | None = None
        self._side_bars: set[tuple[str, float | None]] = set()
        self._redraws = Redraws()
        self._box: list[tuple[str, float, str, float]] | None = []
        self._box_names: set[str] = set()

    def apply(self, recipe: Recipe, parts: list[str], time: float) -> None:
        """Take in a line.

        Args:
            recipe: what its numbers mean.
            parts: its parts, by `split_line`.
            time: when it was printed (seconds since the epoch); nan where that is not known.
        """
        numbers = parts[1::2]
        if recipe.is_box:
            self._apply_box(recipe, numbers, time)
            return
        if recipe.epoch is not None and not recipe.is_eval:
            self._take_epoch(recipe.epoch.of(numbers), _of(recipe.epochs, numbers))
        if recipe.has_eta and (left := _ETA.search("".join(parts))):
            days, hours, minutes, seconds = (int(group or 0) for group in left.groups())
            self._eta = (time, ((days * 24 + hours) * 60 + minutes) * 60 + seconds)
        at = self.step or 0.0
        if recipe.bar is not None:
            is_main = self._take_bar(recipe, numbers, time)
            at = self.step or 0.0 if is_main else at
        elif recipe.step is not None:
            at = self._take_step(recipe, numbers, time)
        if recipe.rate is not None and recipe.bar is None:
            self._rate = recipe.rate.of(numbers)
        values = recipe.read_values(numbers)
        if recipe.is_drawn and recipe.step is not None:
            step, total = recipe.step.of(numbers), _of(recipe.total, numbers)
            if self._redraws.take(step, total, [printed for _, _, printed in values]):
                return
        for name, value, printed in values:
            self._add(name, at, value, time, printed)

    def progress(self) -> Progress:
        """Return how far it is."""
        step, total = self.step, self._total
        if self._bar is None and self._step_lines < FEWEST_POINTS:
            step = total = None
        if total is not None and step is not None and step > total and not self._in_epoch:
            total = None  # each epoch has a bar of its own
        if step is not None and self._in_epoch:
            total = total * self._epochs if total and self._epochs else None
        if step is None and self._epoch is not None and self._epochs:
            # Lines that tell epochs alone: the one that is printed has ended.
            step, total = self._epoch + self._counts_from_zero, self._epochs
        rate = self.moments.rate() or self._rate
        seconds = self.moments.step_seconds() or (1 / rate if rate else None)
        left = (total - step) * seconds if total and seconds and step is not None and total >= step else None
        if left is None and self._eta is not None:
            left = self._eta[1]
        return Progress(step, total, self._epoch, self._epochs, rate, left, self.moments.last)

    def pace(self) -> Pace:
        """Return how fast it works."""
        moments = self.moments
        own = moments.step_times()
        step_times = own if self._rounds is None else self._rounds.step_times()
        return Pace(
            self.label, self.replica, self.step or 0.0, moments.last or 0.0, moments.pauses(),
            median(own) if own else math.nan, step_times, self._own_times,
        )  # fmt: skip

    def end_round(self) -> None:
        """Note how far it is; from then on its times between steps are means of those from one round to the next.

        Replicas that are looked at now and then have no others, and medians of means compare with means alone.
        """
        if self._rounds is None:
            self._rounds = Moments(KEPT_TIMES + 1)
        if self.moments.last is not None and self.step is not None:
            self._rounds.add(self.moments.last, self.step)

    def shown(self) -> dict[str, Series]:
        """Return the series that have enough points to be some."""
        return {name: series for name, series in self.series.items() if series.points >= FEWEST_POINTS}

    def apply_named(self, groups: Mapping[str, str], time: float) -> None:
        """Take in what a person's own pattern found in a line: values, and where they stand.

        Args:
            groups: numbers as they were printed, by name.
            time: when the line was printed (seconds since the epoch).
        """
        numbers = {
            name: number for name, text in groups.items() if (number := to_number(text.replace(",", ""))) is not None
        }
        if "epoch" in numbers:
            self._take_epoch(numbers["epoch"], numbers.get("epochs"))
        if "step" in numbers:
            self._explicit = True
            self._step_lines += 1
            self._move(numbers["step"], numbers.get("total"), False, time)
        for name, value in numbers.items():
            if name not in PLACES:
                self._add(name, self.step or 0.0, value, time, groups[name])

    def _take_epoch(self, epoch: float, epochs: float | None) -> None:
        self._epoch, self._epochs = epoch, epochs or self._epochs
        self._counts_from_zero = self._counts_from_zero or epoch == 0

    def _take_step(self, recipe: Recipe, numbers: list[str], time: float) -> float:
        """Take the step of a line, and return where its values belong."""
        assert recipe.step is not None
        step, total = recipe.step.of(numbers), _of(recipe.total, numbers)
        self._step_lines += 1
        if recipe.is_eval:
            # The batches of an evaluation are no steps; `validate step: 200` is the step that is evaluated.
            return step if total is None and not recipe.in_epoch and recipe.epoch is None else self.step or 0.0
        if not self._explicit:
            self._explicit, self._offset = True, 0.0
            self.step = None if self._bar is None else self.step
        if total is None and self._bar is not None and self._bar[1] is not None:
            total = self._bar[1]
        self._move(step, total, recipe.in_epoch, time)
        return self.step or 0.0

    def _take_bar(self, recipe: Recipe, numbers: list[str], time: float) -> bool:
        """Take the place of a progress bar; return whether it is the one that counts."""
        assert recipe.step is not None
        step, total = recipe.step.of(numbers), _of(recipe.total, numbers)
        bar = (recipe.bar or "", total)
        if _EPOCH_BAR.search(bar[0]) and not recipe.in_epoch:
            self._epoch, self._epochs = step, total
            return False
        if _SIDE_BAR.search(bar[0]) or bar in self._side_bars:
            return False
        if self._bar is not None and bar != self._bar:
            is_running = self.step is not None and self._bar[1] is not None and (self._raw() < self._bar[1])
            if is_running and not recipe.in_epoch and (total or 0) < (self._bar[1] or 0):
                self._side_bars.add(bar)
                return False
        self._bar = bar
        if recipe.rate is not None and (rate := recipe.rate.of(numbers)) > 0:
            self._rate = 1 / rate if recipe.inverse_rate else rate
        if self._explicit:
            # Its steps are printed in words; the bar tells where they end.
            if self._total is None and total is not None and abs(step - self._raw()) <= 1:
                self._total = total
        else:
            self._move(step, total, recipe.in_epoch, time)
        return True

    def _raw(self) -> float:
        return (self.step or 0.0) - self._offset

    def _move(self, step: float, total: float | None, in_epoch: bool, time: float) -> None:
        before = self.step
        if before is not None and step < self._raw():
            was_at_end = self._total is None or self._raw() >= 0.9 * self._total
            if in_epoch or (step < self._raw() / 2 and was_at_end):
                self._offset += self._total or self._raw()
            self.moments.clear()
        self._total, self._in_epoch = total or self._total, in_epoch
        if in_epoch and total and self._epoch is not None:
            self._offset = max(0.0, self._epoch - (not self._counts_from_zero)) * total
        self.step = self._offset + step
        if self.step != before and not math.isnan(time):
            self.moments.add(time, self.step)

    def _apply_box(self, recipe: Recipe, numbers: list[str], time: float) -> None:
        """Take a row of a table: its values belong to the step, which is in a later or an earlier row."""
        if recipe.step is not None:
            self._explicit = True
            self._step_lines += 1
            self._move(recipe.step.of(numbers), None, False, time)
            for name, value, printed, at in self._box or ():
                self._add(name, self.step or 0.0, value, at, printed)
            self._box = None
            return
        for name, value, printed in recipe.read_values(numbers):
            if name in self._box_names:
                self._box_names, self._box = set(), []
            self._box_names.add(name)
            if self._box is None:
                self._add(name, self.step or 0.0, value, time, printed)
            elif len(self._box) < _MOST_SERIES:
                self._box.append((name, value, printed, time))

    def _add(self, name: str, at: float, value: float, time: float, printed: str) -> None:
        self.points += 1
        if is_own_time(name):
            self._add_time(name, value)
        if not self.keeps:
            return
        series = self.series.get(name)
        if series is None:
            if len(self.series) >= _MOST_SERIES:
                return
            series = self.series[name] = Series(name, f"log of {self.label}")
        # Without any step the epoch tells where a point is, or its number.
        elsewhere = series.points if self._epoch is None else self._epoch
        series.add(at if self.step is not None else elsewhere, value, time, printed)

    def _add_time(self, name: str, value: float) -> None:
        times = self._own_times.get(name)
        if times is None and len(self._own_times) < _MOST_TIMES:
            times = self._own_times[name] = deque(maxlen=KEPT_TIMES)
        if times is not None and math.isfinite(value):
            times.append(value)


class ProgressTracker:
    """Takes in the log of a job, block by block.

    Args:
        denied: names that are no values.
        known: names that are values wherever they stand.
        patterns: regular expressions for further lines, see `Patterns`.
        is_bounded: pass over lines rather than learn new shapes for long; for logs that are followed.
    """

    def __init__(
        self,
        denied: Collection[str] = (),
        known: Collection[str] = (),
        patterns: Collection[str] = (),
        *,
        is_bounded: bool = False,
    ) -> None:
        self._tables: defaultdict[str, PlainTable] = defaultdict(PlainTable)
        self._patterns = Patterns(patterns) if patterns else None
        self._needles = compile_needles(patterns) if patterns else None
        self._shapes = Shapes(denied, known, is_bounded=is_bounded)
        self._printers: dict[tuple[str, int], Printer] = {}
        self._main: Printer | None = None
        self.is_excused = False
        """Whether a line since the last step says that the job evaluates, saves or compiles."""
        self.printed_at: float | None = None
        """When anything was printed last (seconds since the epoch); None where that is not known."""

    def feed(self, data: bytes, time: float = math.nan, replica: str = "") -> None:
        """Take in whole lines of one replica.

        Args:
            data: the lines.
            time: when they were printed (seconds since the epoch); nan where that is not known.
            replica: whose they are, such as ``trainer/0``.
        """
        if not math.isnan(time):
            self.printed_at = time if self.printed_at is None else max(time, self.printed_at)
        last_step = b""
        for line in candidate_lines(data, self._needles) if self._needles else candidate_lines(data):
            named = self._patterns.find(line) if self._patterns else None
            named = named or self._tables[replica].read(line)
            if named is not None:
                printer = self._printer(replica, -1)
                before = printer.step
                printer.apply_named(named, time)
                last_step = line if printer.step != before else last_step
                continue
            read = self._shapes.read(line)
            if read is not None:
                recipe, parts = read
                printer = self._printer(replica, recipe.rank_of(parts[1::2]))
                before = printer.step
                printer.apply(recipe, parts, time)
                last_step = line if printer.step != before else last_step
        self._look_for_excuse(data, last_step)

    def _look_for_excuse(self, data: bytes, last_step: bytes) -> None:
        start = max(0, len(data) - _EXCUSED_BY)
        if last_step:
            self.is_excused = False
            start = max(start, data.rfind(last_step) + len(last_step))
        self.is_excused = self.is_excused or EXCUSES.search(data, start) is not None

    @property
    def main(self) -> Printer | None:
        """The printer that prints most values: of several ranks the one that counts.

        Ranks that print the same take turns at being ahead by a line, so another is taken only when it is far ahead.
        """
        kept = (printer for printer in self._printers.values() if printer.keeps)
        most = max(kept, key=lambda printer: printer.points, default=None)
        if most is not None and (self._main is None or most.points > self._main.points * _FAR_AHEAD + _MORE):
            self._main = most
        return self._main

    def progress(self) -> Progress:
        """Return how far the job is, by the printer that counts."""
        main = self.main
        return main.progress() if main else Progress()

    def series(self) -> dict[str, Series]:
        """Return the series of the printer that counts, in the order in which they appeared."""
        main = self.main
        return main.shown() if main else {}

    def printers(self) -> list[Printer]:
        """Return all that print."""
        return list(self._printers.values())

    def end_round(self) -> None:
        """Note how far each printer is, see `Printer.end_round`."""
        for printer in self._printers.values():
            printer.end_round()

    def _printer(self, replica: str, rank: int) -> Printer:
        key = (replica, rank)
        printer = self._printers.get(key)
        if printer is None and len(self._printers) >= _MOST_PRINTERS:
            key, rank = (replica, -1), -1
            printer = self._printers.get(key)
        if printer is None:
            label = replica if rank < 0 else f"{replica} rank {rank}".strip()
            printer = self._printers[key] = Printer(label, replica, len(self._printers) < _MOST_KEPT_PRINTERS)
        return printer


def _of(source: Source | None, numbers: list[str]) -> float | None:
    return None if source is None else source.of(numbers)
