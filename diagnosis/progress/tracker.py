"""Follows a job's log lines: how far it is, how fast, and its metrics."""

from __future__ import annotations

import math
import re
from collections import defaultdict, deque
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from ...base.durations import duration
from ..metrics.points import to_number
from ..metrics.series import Series
from .formats import POSITION, groups, user_format
from .lines import NOTHING, LineReader, Reading, Shape, eval_name, is_core, is_own_time, is_usual
from .moments import Moments
from .prefilter import candidate_lines, compile_needles
from .stalls import EXCUSES
from .table import HEADER_BYTES, Table, may_be_row

# A metric is shown from its second point on: what is printed once is a setting or a result. Metrics of an unusual name
# in lines without a position need a third.
_FEWEST_POINTS, _FEWEST_UNUSUAL_POINTS = 2, 3
# Ranks that are told apart, and those whose metrics are kept: of others only their times.
_MOST_RANKS, _MOST_KEPT_RANKS = 4096, 8
# Metrics that are kept of a rank; those of an unusual name in lines without a position leave room for others.
_MOST_METRICS, _MOST_UNUSUAL_METRICS = 300, 100
KEPT_TIMES = 32
"""The number of last times of its own work that are kept of a rank."""
# Lines at one step that are compared with others.
_MOST_PRINTED = 64
# Another rank becomes the main one once it has 10 % + 8 more values. Ranks that print the same lead in turns by a line.
_FAR_AHEAD, _MORE = 1.1, 8
# Bytes after the last step that are searched for what the job does instead.
_EXCUSED_BYTES = 4096
# Bars of work beside the training.
_SIDE_BAR = re.compile(
    r"(?i)\b(?:writ|load|sav|scan|download|fetch|map|token|sanity|valid|val\b|eval|test|predict|warm|compil|filter|generat)"
    r"|shard|epochs$"
)
_EPOCHS_BAR = re.compile(r"(?i)epochs?$")
NAMED_POSITION = POSITION[:4]
_NAMED = Shape({}, is_anchored=True)
_EVAL_BEGINS = re.compile(rb"(?i)\s*eval\w* begin")


@dataclass(frozen=True)
class Progress:
    """How far a job is.

    Attributes:
        step: the step; None where lines have none.
        total: the last step; None if it is unknown.
        epoch: the number of the epoch as printed; None where lines have none.
        epochs: the number of epochs; None if it is unknown.
        rate: steps a second; None if it is unknown.
        seconds_left: the time until the last step; None if it is unknown.
        moved_at: when the step last changed (seconds since the epoch); None if it is unknown.
        in_epoch: step and total count one epoch, because the number of epochs is unknown.
    """

    step: float | None = None
    total: float | None = None
    epoch: float | None = None
    epochs: float | None = None
    rate: float | None = None
    seconds_left: float | None = None
    moved_at: float | None = None
    in_epoch: bool = False

    @property
    def fraction(self) -> float | None:
        """The part of the run that is done, from 0 to 1; None if its end is unknown."""
        if self.step is None or not self.total or self.in_epoch:
            return None
        return max(0.0, min(1.0, self.step / self.total))

    @property
    def percent(self) -> int | None:
        """The part of the run that is done in percent, rounded down; None if its end is unknown."""
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


class StepCounter:
    """A step that is counted over the whole run, though it may begin anew in each epoch."""

    def __init__(self) -> None:
        self.step: float | None = None
        """The step of the run."""
        self.raw = 0.0
        """The step as printed."""
        self.total: float | None = None
        """The total as printed."""
        self.in_epoch = False
        """Whether step and total count one epoch."""
        self.lines = 0
        self.offset = 0.0
        """The steps of earlier epochs."""

    def move(self, raw: float, total: float | None, epoch: float | None) -> bool:
        """Take the step of a line; return whether it went back.

        Args:
            raw: the step as printed.
            total: the total as printed.
            epoch: the number of epochs before this one, if the step counts one epoch.
        """
        goes_back = self.step is not None and raw < self.raw
        if goes_back:
            was_at_end = self.total is None or self.raw >= 0.9 * self.total
            if epoch is not None or (raw < self.raw / 2 and was_at_end):
                self.offset += self.total or self.raw
        self.total, self.in_epoch, self.raw = total or self.total, epoch is not None, raw
        if epoch is not None and total:
            self.offset = epoch * total
        self.step = self.offset + raw
        self.lines += 1
        return goes_back


class BarState:
    """The progress bar that counts among all that are drawn."""

    def __init__(self) -> None:
        self.counter: StepCounter | None = None
        """The steps of the bar that counts."""
        self._key: tuple[str, float | None] = "", None
        # A bar that is nested in the one that counts has none.
        self._counters: dict[tuple[str, float | None], StepCounter | None] = {}
        self._drawn: tuple[float, list[str]] = -1.0, []
        self._is_same_step = self._is_first = False

    def choose(self, name: str, total: float | None, *, in_epoch: bool) -> StepCounter | None:
        """Return the counter of a bar if it is the one that counts.

        Args:
            name: the text before the bar.
            total: where it ends.
            in_epoch: it says that it counts one epoch.
        """
        key = name, total
        if _SIDE_BAR.search(name):
            return None
        if self.counter is not None and key != self._key:
            is_running = self._key[1] is not None and self.counter.raw < self._key[1]
            if is_running and not in_epoch and (total or 0) < (self._key[1] or 0):
                self._counters[key] = None
        counter = self._counters.setdefault(key, StepCounter())
        if counter is not None:
            self._key, self.counter = key, counter
        return counter

    def is_redrawn(self, step: float, total: float | None, printed: list[str]) -> bool:
        """Return whether a state only repeats the values of the state before.

        Many loops give a bar the values of a step, which draws it, and then count the step, which draws it again.
        """
        before, values = self._drawn
        is_same_step = step == before
        if is_same_step:
            is_repeated = self._is_first or step == total
        else:
            is_repeated = self._is_same_step or (self._is_first and before == 0)
        is_repeated = is_repeated and values == printed and step >= before
        self._is_first = step < before or not values
        self._drawn, self._is_same_step = (step, printed), is_same_step
        return is_repeated


class Metric:
    """A metric of one rank: its points, and its last values if it is a time of the rank's own work."""

    def __init__(self, name: str, origin: str) -> None:
        self.series = Series(name, origin)
        self.times: deque[float] = deque(maxlen=KEPT_TIMES if is_own_time(name) else 0)
        self.certain_points = 0
        self.is_usual, self._is_core = is_usual(name), is_core(name)

    @property
    def varies(self) -> bool:
        return self.series.best_low < self.series.best_high or self.series.gaps > 0

    @property
    def is_result(self) -> bool:
        """Whether it alone shows that this is the log of a training."""
        return self._is_core and self.varies

    def is_shown(self, *, is_training: bool) -> bool:
        if self.series.points < _FEWEST_POINTS:
            return False
        if self.certain_points >= _FEWEST_POINTS:
            return True
        fewest = _FEWEST_POINTS if self.is_usual else _FEWEST_UNUSUAL_POINTS
        return is_training and self.varies and self.series.points >= fewest


class MetricStore:
    """The metrics of one rank.

    Args:
        label: the name of the rank, such as ``trainer/0``.
        keeps: keep points; the times of its own work are kept anyway.
    """

    def __init__(self, label: str, *, keeps: bool) -> None:
        self._label = label
        self.keeps = keeps
        self.points = 0
        self.metrics: dict[str, Metric] = {}
        self._unusual = 0

    def add(
        self,
        values: Sequence[tuple[str, float, str]],
        at: float | None,
        time: float,
        *,
        is_certain: bool,
        in_training: bool = False,
    ) -> None:
        """Add values.

        Args:
            values: name, value and text of each.
            at: their step; None to number the points.
            time: when they were printed (seconds since the epoch).
            is_certain: the line leaves no doubt that they are metrics.
            in_training: the log has a position, so usual names are metrics.
        """
        self.points += len(values)
        for name, value, printed in values:
            metric = self.metrics.get(name) or self._create(name, is_certain=is_certain)
            if metric is None:
                continue
            if is_certain or (in_training and metric.is_usual):
                metric.certain_points += 1
            if self.keeps:
                series = metric.series
                series.add(series.points if at is None else at, value, time, printed)
            if math.isfinite(value):
                metric.times.append(value)

    def _create(self, name: str, *, is_certain: bool) -> Metric | None:
        is_unusual = not is_certain and not is_usual(name)
        if len(self.metrics) >= _MOST_METRICS or (is_unusual and self._unusual >= _MOST_UNUSUAL_METRICS):
            return None
        if not self.keeps and not is_own_time(name):
            return None
        self._unusual += is_unusual
        metric = self.metrics[name] = Metric(name, f"log of {self._label}")
        return metric

    def shown(self, *, has_position: bool) -> dict[str, Series]:
        """Return the series that are metrics of a training."""
        is_training = has_position or any(metric.is_result for metric in self.metrics.values())
        return {
            name: metric.series for name, metric in self.metrics.items() if metric.is_shown(is_training=is_training)
        }


class RankLog:
    """What one replica, or one rank in its log, prints.

    Args:
        label: its name, such as ``trainer/0`` or ``trainer/0 rank 3``.
        replica: the replica whose log it is in.
        keeps: keep its metrics; its steps are followed anyway.
    """

    def __init__(self, label: str, replica: str, *, keeps: bool) -> None:
        self.label, self.replica = label, replica
        self.moments = Moments()
        self.store = MetricStore(label, keeps=keeps)
        self.step: float | None = None
        """The step of the run."""
        self._lines = StepCounter()
        self._bars = BarState()
        self._epoch: float | None = None
        self._epochs: float | None = None
        self._first_epoch = 1.0
        # Whether steps count one epoch, because `Epoch 1/5` on a line of its own came before the first of them.
        self._is_epoch_above: bool | None = None
        self._epoch_of_step: float | None = None
        self._rate: float | None = None
        self._left: float | None = None
        self._in_eval = False
        self._printed_at: float | None = None
        self._printed: deque[tuple[Shape, Sequence[tuple[str, float, str]]]] = deque(maxlen=_MOST_PRINTED)
        self._box: list[tuple[tuple[str, float, str], float]] | None = []
        self._box_names: set[str] = set()

    @property
    def _counter(self) -> StepCounter:
        # Steps in words are those of the run, whatever bars count.
        return self._lines if self._lines.lines or self._bars.counter is None else self._bars.counter

    def apply(self, reading: Reading, time: float) -> None:
        """Take in a line.

        Args:
            reading: what it says.
            time: when it was printed (seconds since the epoch); nan if that is unknown.
        """
        shape, position, values = reading
        if shape.is_box:
            self._apply_box(reading, time)
            return
        if position or self._in_eval:
            is_eval = shape.is_eval or self._is_in_eval(position)
            self._take_position(reading, time, is_eval=is_eval)
            if values and "step" in position and self._is_repeated(reading):
                return
            if is_eval and not shape.is_eval:
                values = [(eval_name(name), value, printed) for name, value, printed in values]
        if values:
            at = self._epoch if self.step is None else self.step
            in_training = not shape.is_anchored and self.has_position
            self.store.add(values, at, time, is_certain=shape.is_anchored, in_training=in_training)

    def _take_position(self, reading: Reading, time: float, *, is_eval: bool) -> None:
        """Take the position of a line."""
        shape, position, _ = reading
        self._left = position.get("left", self._left)
        if "epoch" in position and not is_eval:
            self._take_epoch(position["epoch"], position.get("epochs"), is_alone="step" not in position)
        if shape.bar is not None:
            self._take_bar(reading, time)
            return
        self._rate = position.get("rate", self._rate)
        if "step" in position and not is_eval:
            self._take_step(self._lines, reading, time)

    @property
    def has_position(self) -> bool:
        return self._epoch is not None or self._bars.counter is not None or self._lines.lines >= _FEWEST_POINTS

    def shown(self) -> dict[str, Series]:
        """Return the series that are metrics of a training."""
        return self.store.shown(has_position=self.has_position)

    def progress(self) -> Progress:
        """Return how far it is."""
        counter, bar = self._counter, self._bars.counter
        step, total, in_epoch = counter.step, counter.total, counter.in_epoch
        if bar is None and counter.lines < _FEWEST_POINTS:
            step = total = None
        elif in_epoch and self._epochs:
            total = total * self._epochs if total else None
        elif in_epoch and total:
            step = counter.raw
        elif total is None and bar is not None and bar.total and step is not None and bar.raw >= step - 1:
            total = bar.total
        if step is not None and total is not None and step > total:
            total = None  # each epoch has a bar of its own
        if step is None and self._epoch is not None and self._epochs:
            # Lines that have epochs alone: the one that is printed has ended.
            step, total, in_epoch = self._epoch + 1 - self._first_epoch, self._epochs, False
        in_epoch = in_epoch and total is not None and not self._epochs
        rate = self.moments.rate() or self._rate
        seconds = self.moments.step_seconds() or (1 / rate if rate else None)
        left = None if in_epoch or not total or not seconds or step is None else (total - step) * seconds
        if left is None and not in_epoch:
            left = self._left
        return Progress(step, total, self._epoch, self._epochs, rate, left, self.moments.last, in_epoch)

    def begin_evaluation(self) -> None:
        """Take steps with another total for an evaluation, until the next epoch."""
        self._in_eval = self._lines.lines > 0

    def _is_in_eval(self, position: dict[str, float]) -> bool:
        if self._in_eval and ("epoch" in position or position.get("total", self._lines.total) == self._lines.total):
            self._in_eval = False
        return self._in_eval

    def _take_epoch(self, epoch: float, epochs: float | None, *, is_alone: bool) -> None:
        if is_alone and epochs and self._is_epoch_above is None and not self._counter.lines:
            self._is_epoch_above = True
        self._epoch, self._epochs = epoch, epochs or self._epochs
        self._first_epoch = 0.0 if epoch == 0 else self._first_epoch
        if self._epochs and epoch >= self._epochs and not self._first_epoch:
            self._epochs = epoch + 1  # `Epoch 0/2` to `Epoch 2/2`

    def _take_step(self, counter: StepCounter, reading: Reading, time: float) -> None:
        (shape, position, _), before = reading, self.step
        total = position.get("total")
        if (
            self._is_epoch_above
            and not shape.in_epoch
            and self._epoch != self._epoch_of_step
            and position["step"] > counter.raw > 0
        ):
            self._is_epoch_above = False
            counter.offset = 0.0
        self._epoch_of_step = self._epoch
        is_in_epoch = shape.in_epoch or bool(self._is_epoch_above and total)
        epoch = max(0.0, (self._epoch or 0.0) - self._first_epoch) if is_in_epoch else None
        went_back = counter.move(position["step"], total, epoch)
        if counter is not self._counter:
            return
        self.step = counter.step
        if went_back:
            self.moments.clear()
        if self.step != before and not math.isnan(time):
            self.moments.add(time, self.step or 0.0)

    def _is_repeated(self, reading: Reading) -> bool:
        """Return whether a bar is drawn again, or another rank, not named in its lines, has printed the same."""
        shape, position, values = reading
        if shape.is_drawn:
            return self._bars.is_redrawn(position["step"], position.get("total"), [text for _, _, text in values])
        if self.step != self._printed_at:
            self._printed_at = self.step
            self._printed.clear()
        elif (shape, values) in self._printed:
            return True
        self._printed.append((shape, values))
        return False

    def _take_bar(self, reading: Reading, time: float) -> None:
        """Take the position of a progress bar."""
        shape, position, _ = reading
        name, total = shape.bar or "", position.get("total")
        if _EPOCHS_BAR.search(name) and not shape.in_epoch:
            self._epoch, self._epochs, self._first_epoch = position.get("step"), total, 0.0
            self._is_epoch_above = True
            return
        counter = self._bars.choose(name, total, in_epoch=shape.in_epoch)
        if counter is not None and "step" in position:
            self._rate = position.get("rate") or self._rate
            self._take_step(counter, reading, time)

    def _apply_box(self, reading: Reading, time: float) -> None:
        """Take a row of a box table: its values belong to the step, which is in a later or an earlier row."""
        if "step" in reading.position:
            self._take_step(self._lines, reading, time)
            for value, at in self._box or ():
                self.store.add([value], self.step, at, is_certain=True)
            self._box = None
            return
        for value in reading.values:
            if value[0] in self._box_names:
                self._box_names, self._box = set(), []
            self._box_names.add(value[0])
            if self._box is None:
                self.store.add([value], self.step, time, is_certain=True)
            else:
                self._box.append((value, time))


class ProgressTracker:
    """Takes in the log of a job, block by block.

    Args:
        denied: names that are no metrics.
        known: names that are metrics in any line.
        patterns: regular expressions of further formats, see `user_format`.
        is_bounded: limit the time for lines of new shapes; for logs that are followed.

    Raises:
        ValueError: a pattern is malformed.
    """

    def __init__(
        self,
        denied: Collection[str] = (),
        known: Collection[str] = (),
        patterns: Collection[str] = (),
        *,
        is_bounded: bool = False,
    ) -> None:
        self._formats = [user_format(pattern) for pattern in patterns]
        self._needles = compile_needles(tuple(patterns))
        self.lines = LineReader(denied, known, is_bounded=is_bounded)
        self._tables: defaultdict[str, Table] = defaultdict(Table)
        self._ends: defaultdict[str, bytes] = defaultdict(bytes)
        self._ranks: dict[tuple[str, int], RankLog] = {}
        self._main: RankLog | None = None
        self.is_excused = False
        """Whether a line since the last step says that the job evaluates, saves or compiles."""
        self.printed_at: float | None = None
        """When anything was printed last (seconds since the epoch); None if that is unknown."""

    def feed(self, data: bytes, time: float = math.nan, replica: str = "") -> None:
        """Take in whole lines of one replica.

        Args:
            data: the lines.
            time: when they were printed (seconds since the epoch); nan if that is unknown.
            replica: the replica that printed them, such as ``trainer/0``.
        """
        if not math.isnan(time):
            self.printed_at = time if self.printed_at is None else max(time, self.printed_at)
        last_step = b""
        for line, start in candidate_lines(data, self._needles):
            named = self._read_named(line, start, data, replica) if self._formats or may_be_row(line) else None
            reading = named or self.lines.read(line)
            if reading is None:
                if _EVAL_BEGINS.match(line):
                    self._rank(replica, -1).begin_evaluation()
                continue
            number = int(reading.position.get("rank", reading.shape.rank))
            rank = self._ranks.get((replica, number)) or self._rank(replica, number)
            before = rank.step
            rank.apply(reading, time)
            last_step = line if rank.step != before else last_step
        self._ends[replica] = data[-HEADER_BYTES:]
        start = max(0, len(data) - _EXCUSED_BYTES)
        if last_step:
            self.is_excused = False
            start = max(start, data.rfind(last_step) + len(last_step))
        self.is_excused = self.is_excused or EXCUSES.search(data, start) is not None

    def _read_named(self, line: bytes, start: int, data: bytes, replica: str) -> Reading | None:
        """Read a line by a pattern of the user's own, or as the row of a table."""
        named = next((found for pattern in self._formats if (found := groups(pattern, line))), None)
        is_certain = named is not None
        if named is None:
            before = data[max(0, start - HEADER_BYTES) : start] or self._ends[replica]
            named = self._tables[replica].read(line, before)
        if named is None:
            return None
        numbers = {
            name: number for name, text in named.items() if (number := to_number(text.replace(",", ""))) is not None
        }
        position = {name: number for name, number in numbers.items() if name in NAMED_POSITION}
        values = [(name, number, named[name]) for name, number in numbers.items() if name not in NAMED_POSITION]
        is_certain = is_certain or bool(position) or all(name.startswith("eval/") for name in named)
        return Reading(_NAMED if is_certain else NOTHING, position, values)

    @property
    def main(self) -> RankLog | None:
        """The rank that counts: the one with most values."""
        kept = (rank for rank in self._ranks.values() if rank.store.keeps)
        most = max(kept, key=lambda rank: rank.store.points, default=None)
        if most is not None and (
            self._main is None or most.store.points > self._main.store.points * _FAR_AHEAD + _MORE
        ):
            self._main = most
        return self._main

    def progress(self) -> Progress:
        """Return how far the job is, by its main rank."""
        return self.main.progress() if self.main else Progress()

    def series(self) -> dict[str, Series]:
        """Return the series of the main rank, in the order in which they appeared."""
        return self.main.shown() if self.main else {}

    def ranks(self) -> list[RankLog]:
        """Return all ranks, and the replicas whose lines name no rank."""
        return list(self._ranks.values())

    def _rank(self, replica: str, rank: int) -> RankLog:
        if (replica, rank) not in self._ranks and len(self._ranks) >= _MOST_RANKS:
            rank = -1
        found = self._ranks.get((replica, rank))
        if found is None:
            label = replica if rank < 0 else f"{replica} rank {rank}".strip()
            found = self._ranks[replica, rank] = RankLog(label, replica, keeps=len(self._ranks) < _MOST_KEPT_RANKS)
        return found
