"""Reads log lines: a position by the table of formats, then every `name: value` that is left.

The shape of a line is its text without numbers. A trainer prints thousands of lines of few shapes, so only the first
line of a shape is parsed; the numbers of the others are picked by their index.
"""

from __future__ import annotations

import math
import re
import time
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Collection
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple

from .formats import AT_START, BARS, FILL, FORMATS, POSITION, RUN_TOTAL

# A number is no part of a word (`top5`, `Acc@1`) or of a name in brackets (`lr (group 0)=`). Its sign counts unless a
# word or number precedes it: `1-5` and `2026-11-22` have none. The set of characters comes first and the context is
# checked afterwards: four times as fast.
_AFTER_FIRST_DIGIT = r"\d*(?:,(?:\d{3}(?:,\d{3})*(?![\d,])|\d+(?![\d,\])])))?\.?\d*(?:[eE][-+]?\d+)?"
_AFTER_POINT = r"\d+(?:[eE][-+]?\d+)?"
_AFTER_FIRST_LETTER = r"(?:an|aN|AN|nf|NF|nfinity)(?!\w| iterations| values?\b)"
_NUMBER = re.compile(
    r"([-+.\dnNiI](?:"
    rf"(?<=\d)(?<![\w@].)(?![\d.]*\)=){_AFTER_FIRST_DIGIT}"
    rf"|(?<=[-+])(?<![\w.\])].)(?:\d{_AFTER_FIRST_DIGIT}|\.{_AFTER_POINT}|[nNiI]{_AFTER_FIRST_LETTER})"
    rf"|(?<=\.)(?<![\w@].){_AFTER_POINT}"
    rf"|(?<=[nNiI])(?<![\w@].){_AFTER_FIRST_LETTER}"
    r"))"
)
_THOUSANDS = re.compile(r"[-+]?\d{1,3}(?:,\d{3})+(?:\.\d+)?")
_ANSI = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b[()][A-B0]|\x08+")
_SPACES = re.compile("  +")
_FILL = re.compile("[▏▎▍▌▋▊▉█▐░▒▓━╸╺─]+")
# Marks a number in a shape, and one within a name: characters that are not printed.
_MARK = "\x01"
_LONGEST_LINE, _MOST_NUMBERS = 8192, 400
# Text before a number that is searched for its name.
_LONGEST_GAP = 120
# Shapes that are remembered. Logs whose lines all differ have no end of them.
_MOST_SHAPES = 4096
# Part of the time that may go into new shapes, and the longest burst (s): a line takes some 0.3 ms.
_SHARE, _BURST_S = 0.05, 0.5

# What stands before a message: times, levels, loggers, files, labels of processes.
_PREFIX = re.compile(
    r"""(?:\s|\[(?:default|rank\s?|Rank\s|RANK:)\d+\]:?|\[\d+\]:(?=\S)|\[\d+,\d+\]<\w+>:|^\s*\d+:\ (?=\S)
    |\w+/\d+\s(?=\S)
    |\(\w+\ pid=\d+(?:,\ ip=[\d.]+)?\)
    |\[?\d{4}[-/]\d\d?[-/]\d\d?[T ,]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?\]?
    |\[?\d\d/\d\d(?:/\d{4})?[\ T]\d\d:\d\d:\d\d(?:\ [\w.]+\]:)?
    |[IWEF]\d{4}\ [\d:.]+\ +\d+\ \S+\]|\d\d:\d\d:\d\d(?:[.,]\d+)?(?=\s)
    |(?:INFO|DEBUG|WARNING):[\w.]+:(?=\S)|[\w.]+\s(?=(?:INFO|DEBUG|WARNING):\s)
    |\[?(?:INFO|DEBUG|WARNING|WARN|Info)\]?(?=[\s:|\]-])|\[titan\]|\[LightGBM\]|\[[\w./]+\.\w+:\d+(?::\w+)?\]|\[PID:\d+\]
    |[-|:]\s|[\w.-]+:\d+\t|[\w./-]+\.py:\d+(?=[\s:\]])|(?:[a-z_]\w*\.)+[\w:<>]+(?=\s[-|:])|(?:[a-z_]\w*\.)+\w+:\d+|\w+(?=\s-\s)
    |[\w.<>]+:[\w.<>]+:\d+\ -)+""",
    re.VERBOSE,
)
# The rank, as torchrun's `--tee`, a trainer, `srun -l`, mpirun and Ray print it.
_RANK = re.compile(
    r"\s*(?:\[(?:default)?(?P<rank>\d+)\]:\s*)?\[?(?:default|[Rr]ank\s?|RANK:)(?P<rank_2>\d+)\]"
    r"|\[(?P<rank_3>\d+)\]:(?=\S)|\s*(?P<rank_4>\d+): (?=\S)|\[\d+,(?P<rank_5>\d+)\]<\w+>:|\(\w+ pid=(?P<rank_6>\d+)"
)
_RANK_WITHIN = re.compile(r"(?i)(?<!\w)rank[ =:]\s?(?P<rank>\d+)(?![\w.:%])")
_BAR = re.compile(r"\d%\s?\|")
_EVAL = re.compile(
    r"(?i)\W*(?:test(?:ing|\sset)?\b|val(?:id(?:ation|ate)?)?\b|eval\w*\b|cv\b|dev\s?:|epoch\((?:val|test)\)"
    r"|(?:best|cur) metric)|\*\s|.*\bvalid on\b|.*\bvalidation\b"
    r"|.*['\"](?:mode|phase|split|stage)['\"]: ?['\"](?:val|eval|test)"
)
# The arguments of the run, printed at its start: their numbers are not where it is.
_ARGUMENTS = re.compile(r"\W*(?:\w+\s?[:=]\s?)?(?:Namespace|\w*(?:Args|Arguments|Config|Options|HParams))\(\w+=")
_BOX = re.compile(r"\s*\|\s+(?P<name>[A-Za-z][\w/@ ]*?)\s+\|\s+$")
_LEFT = re.compile(r"(?i)\b(?:eta|remaining|time to finish|time left)['\"]?[:=]? ?(.{,40})")
_DURATION = re.compile(r"(?:(\d+) days?, )?(\d+):(\d\d):(\d\d)")
_PART = re.compile(r"([\d.]+) ?(d|h|min|m(?!s)|s)")
_SECONDS = {"d": 86_400.0, "h": 3_600.0, "min": 60.0, "m": 60.0, "s": 1.0}

_UNITS = r"%|tok/s|it/s|\w*samples/s|[kMGT]i?B/s|[kMGT]?i?B|ms|us|s|x|[kKMT]"
_UNIT = re.compile(rf"\s?({_UNITS})(?![\w=]|: )")
_SCALES = {"k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "B": 1e9, "T": 1e12}
# A time, a date, a ratio, a version, an address; but `Accuracy: 9801/10000 (98%)` is a value.
_NO_VALUE = re.compile(rf"(?!\s?/\s?{_MARK}\s\({_MARK}%\))(?:[:\w@]|\.{_MARK}|\s?/\s?{_MARK}|/\w|-{_MARK})")
_SEPARATOR = re.compile(r"(?P<sep>(?:\s?\[[^\]]*\])?['\"]?\s?(?:[:=]>?|=>)\s*|\s+)(?P<open>[\['\"(]*)$")
_BETWEEN = re.compile(rf"[|,;{{}}\t{FILL}]|\[|\]|\s\s+|\s-\s|:\s|[=]>?\s?|\s/\s|{_MARK}(?![^()]*\))")
# `lr (group 0)=`, `avg. loss [951-1000]: `
_ENDS_WITH_NUMBER = re.compile(r"[)\]]['\"]?\s?[:=]")
# A place in code: `(trainer:779)`.
_IN_CODE = re.compile(r"\([\w.]+:$")
_NAME = re.compile(rf"[^\W\d][\w./@'%#-]*(?:\s?\([\w/ .%{_MARK}]+\)|\s[\w./@'%#-]+){{0,5}}")
_FILLERS = re.compile(r"^(?:(?:and|the|is|for|at|to|in|of|out|with|finished with|loss value|s/it|it/s)\s)+")
# What may precede a name: the rest of a unit, as in `27.8/s/gpu LR: 0.1`, or of a bracket.
_NO_NAME = re.compile(r"^(?:[()]\s*|[^\w\s(]\S*\s+)")
# A word that is all of its part of a line: `| norm 15.4 |`, `, inertia 1361.9`, ` : gNorm 0.2 :`, `  sec/tick 60.1  `.
_ALONE = re.compile(r"(?:[,|]\s+|\s:\s+|^\s{2,})(?!over$)([^\W\d][\w./%-]*)$")
# The label of what follows: `[valid] loss=0.6`, `Val: loss=0.6`, `"val": {"loss": 0.6`.
_SECTION = re.compile(
    r"(?i)(?:^|[\s,|{\[(;\"'-])(train(?:ing)?|valid(?:ation)?|val|eval|test|dev)"
    r"(?:['\"]?\s?:\s|['\"]\s?:\s?\{|[\])]|\s\|)(?=\W*[\w./@ -]{1,40}(?:['\"]?\s?[:=]|\s$))"
)
# A rate without a name has that of its unit.
_NAMES_OF_UNITS = ("tok/s", "samples/s")
_CORE = re.compile(
    r"(?i)loss|acc|ppl|perplex|reward|return|score|\bkl|entropy|auc|\bf1|map\b|bleu|rouge|error|rmse|mae|psnr|iou|dice"
    r"|recall|precision|\b[wc]er\b|objective|top-?[15]\b"
)
_USUAL = re.compile(
    r"(?i)(?:^|[_/ .])lr(?:$|[_/ -]|\d)|learning[_ ]rate|norm|tps|tok|thr(?:ough)?put|mfu|flop"
    r"|samples?[_/ ]?(?:per|sec)"
    r"|best|test|fps|wps|ups|ep_(?:len|rew)|variance|mem|/s(?:ec)?$|time|imgs?/s|speed"
)
_BARE = re.compile(
    r"(?:(?:train|val|valid|validation|test|eval|avg|nll|best|lm)[ _])?(?:loss|lr|ppl|acc(?:uracy)?|Acc@\d+|Loss|Acc|"
    r"mfu|wps|ups|gnorm|grad_norm|bsz|wall|tok/s|[Tt]ime|Data|reward|auc|f1|tps)$"
)
_DENIED = re.compile(
    r"(?i)(?:pid|port|rank|seed|world_size|nranks|local_rank|host|ip|version|line|id|uuid|sha|git|ts|timestamp|asctime"
    r"|eta|eta_seconds|remaining|elapsed|mom|v_num|cudadev|nvmldev|busid|exitcode|(?:best[_ ])?epochs?|num_epochs"
    r"|(?:\w+[_ ])*(?:time)?steps?(?:[_ ](?:total|sampled|trained))?|iterations?(?:[_ ]\w+)?|iter|num_updates|date"
    r"|level|train_iters|channel|size|(?:max|total)_(?:iters?|epochs)|training/(?:global_step|epoch)|n|t|norm|nnzs|bias|total"
    r"|memory|batch|update|it|episode|errors?|warnings?|args?|time|[\w./-]+\.(?:py|cpp|cc|cu|go|rs)"
    r"|.*\b(?:started|time to finish)\b.*|\w+&.*)"
)
_DENIED_ALONE = re.compile(r"(?i)(?:.*\b(?:port|version|timeout|timestamp|seconds since|usage|warning))")
_STEP_ROW = "total_timesteps"
# Times that a rank takes alone; backward passes and optimizer steps wait for other ranks.
_OWN_TIME = re.compile(
    r"(?i)(?:.*/)?(?:(?:train|avg|mean|last|local)[_ ])?"
    r"(?:(?:(?:step|iter(?:ation)?|batch|data|(?:data[_ ]?)?load(?:er|ing)?|forward|fwd)"
    r"[_ -](?:time|timing|duration|secs?)|data|time)(?: in s|[_ ]\(?m?s\)?)?"
    r"|elapsed time per iteration \(ms\))"
)


class Source(NamedTuple):
    """Where a number is in a line.

    Attributes:
        index: its index among the numbers.
        scale: the factor of its unit, as in `1.2k`.
        unit: the text after it.
    """

    index: int
    scale: float = 1.0
    unit: str = ""


@dataclass(frozen=True)
class Shape:
    """The meaning of lines of one shape.

    Attributes:
        position: the sources of step, total, epoch, epochs, rate and rank, as far as lines have them.
        values: name and source of each metric.
        in_epoch: step and total count one epoch.
        inverse_rate: the rate is in seconds a step.
        is_eval: the line is part of an evaluation.
        is_anchored: the line has a position, so its values need no known name.
        bar: the text before a progress bar; None if there is no bar.
        is_drawn: the line is a state of a progress bar with a step and values.
        is_box: the line is a row of a box table, whose step is in another row.
        has_left: the line has the time left in words.
        rank: the rank, if it is part of a word, as in `[rank0]`; -1 otherwise.
    """

    position: dict[str, Source]
    values: tuple[tuple[str, Source], ...] = ()
    in_epoch: bool = False
    inverse_rate: bool = False
    is_eval: bool = False
    is_anchored: bool = False
    bar: str | None = None
    is_drawn: bool = False
    is_box: bool = False
    has_left: bool = False
    rank: int = -1


NOTHING = Shape({})


class Reading(NamedTuple):
    """What one line says.

    Attributes:
        shape: its shape.
        position: step, total, epoch, epochs, rate (steps a second), rank, and the seconds left, as far as it has them.
        values: name, value and text of each metric.
    """

    shape: Shape
    position: dict[str, float]
    values: list[tuple[str, float, str]]


def is_core(name: str) -> bool:
    """Return whether a name is that of a result of training; a log that has one is the log of a training."""
    return _CORE.search(name) is not None


def is_usual(name: str) -> bool:
    """Return whether a name is one that trainers usually print."""
    return is_core(name) or _USUAL.search(name) is not None


def is_own_time(name: str) -> bool:
    """Return whether a metric is the time that one rank's own work takes."""
    return _OWN_TIME.fullmatch(name) is not None


def eval_name(name: str) -> str:
    """Return the name of a metric of an evaluation."""
    return name if name.lower().startswith(("eval", "val", "test")) else f"eval/{name}"


def to_float(text: str) -> float:
    """Convert a number of a line; `1,234` is a thousand, `1,89` has a decimal comma. Return nan if it is too large."""
    try:
        return float(text)
    except ValueError:
        pass
    try:
        return float(text.replace(",", "" if _THOUSANDS.fullmatch(text) else "."))
    except ValueError:
        return math.nan


class LineReader:
    """Reads lines, and remembers their shapes.

    Args:
        denied: names that are no metrics.
        known: names that are metrics in any line.
        is_bounded: limit the time for new shapes; beyond it, lines of new shapes are skipped.
    """

    def __init__(self, denied: Collection[str] = (), known: Collection[str] = (), *, is_bounded: bool = False) -> None:
        self._denied, self._known = frozenset(denied), frozenset(known)
        self._shapes: OrderedDict[str, Shape] = OrderedDict()
        self._is_bounded = is_bounded
        # New shapes are read from this time on: each pays for its own time.
        self._due = -math.inf
        self.skipped = 0
        """How many lines of new shapes were skipped for lack of time."""

    def read(self, line: bytes) -> Reading | None:
        """Return what a line says; None if that is nothing."""
        if len(line) > _LONGEST_LINE:
            return None
        text = line.decode(errors="replace")
        if "\x1b" in text or "\x08" in text:
            text = _ANSI.sub("", text)
        if not text.isascii():
            text = _FILL.sub(FILL, text)
        parts = _NUMBER.split(text)
        if not 3 <= len(parts) <= 2 * _MOST_NUMBERS:
            return None
        key = _SPACES.sub(" ", _MARK.join(parts[::2]))
        shape = self._shapes.get(key)
        if shape is None:
            shape = self._learn(key, parts)
        if shape is NOTHING:
            return None
        numbers = parts[1::2]
        position: dict[str, float] = {}
        for name, (index, scale, _) in shape.position.items():
            position[name] = to_float(numbers[index]) * scale
        if shape.inverse_rate and position.get("rate"):
            position["rate"] = 1 / position["rate"]
        if shape.has_left and (left := time_left(text)) is not None:
            position["left"] = left
        values = []
        for name, (index, scale, unit) in shape.values:
            printed = numbers[index]
            try:
                number = float(printed)
            except ValueError:
                number = to_float(printed)
            values.append((name, number * scale, printed + unit))
        return Reading(shape, position, values)

    def _learn(self, key: str, parts: list[str]) -> Shape:
        began = time.monotonic()
        if self._is_bounded and self._due > began:
            self.skipped += 1
            return NOTHING
        shape = self._shapes[key] = _Line(parts, self._denied, self._known).shape()
        self._due = max(self._due, began - _BURST_S / _SHARE) + (time.monotonic() - began) / _SHARE
        if len(self._shapes) > _MOST_SHAPES:
            self._shapes.popitem(last=False)
        return shape


def time_left(text: str) -> float | None:
    """Return the seconds left that a line tells, such as `eta: 1:59:12`, `remaining: 4.8s`; None if there are none."""
    found = _LEFT.search(text)
    if found is None:
        return None
    if (clock := _DURATION.match(found[1])) is not None:
        days, hours, minutes, seconds = (int(group or 0) for group in clock.groups())
        return ((days * 24 + hours) * 60 + minutes) * 60.0 + seconds
    parts = _PART.findall(found[1])
    return sum(to_float(number) * _SECONDS[unit] for number, unit in parts) if parts else None


class _Line:
    """The first line of a shape, while it is parsed.

    Args:
        parts: texts at even places, numbers at odd ones.
        denied, known: see `LineReader`.
    """

    def __init__(self, parts: list[str], denied: Collection[str], known: frozenset[str]) -> None:
        ends = list(accumulate(map(len, parts)))
        self.texts, self.starts = parts[::2], ends[0:-1:2]
        self.text = "".join(parts)
        self.taken: set[int] = set()
        self.position: dict[str, Source] = {}
        self.bar: str | None = None
        self.rank = -1
        self._has_run_total = self._is_download = self._has_inverse_rate = False
        self._denied, self._known = denied, known

    def shape(self) -> Shape:
        box = _BOX.match(self.texts[0])
        if box is not None and self.texts[1].strip() == "|":
            return _box_row(box["name"].strip())
        head = self._read_prefix()
        message = self.text[head:]
        if _ARGUMENTS.match(message):
            return NOTHING
        self._read_position(message, head)
        if self._is_download:
            return NOTHING
        step, epoch = self.position.get("step"), self.position.get("epoch")
        # `epoch 1 step 10/100` counts one epoch, `step 10/4000, epoch 1` the run.
        after_epoch = epoch is not None and step is not None and epoch.index < step.index
        has_end = "total" in self.position or self.bar is not None
        in_epoch = after_epoch and not self._has_run_total and has_end
        is_anchored = step is not None or epoch is not None or self.bar is not None
        values = self._values(is_anchored)
        is_anchored = is_anchored or not self._known.isdisjoint(values)
        # Steps of an evaluation may be recognised by names alone: `Step: 1/4 ... val_loss: 0.68`.
        has_eval_names = all(name.startswith(("eval_", "val_")) for name in values)
        in_eval = bool(values) and has_eval_names and (in_epoch or message.lstrip().startswith("{"))
        is_eval = in_eval or _EVAL.match(message) is not None
        is_drawn = step is not None and bool(values) and (self.bar is not None or _BAR.search(self.text) is not None)
        has_left = _LEFT.search(self.text) is not None
        if not (values or has_left or self.position.keys() & {"step", "epoch", "rate"}):
            return NOTHING
        return Shape(
            self.position,
            tuple((eval_name(name) if is_eval else name, source) for name, source in values.items()),
            in_epoch,
            self._has_inverse_rate,
            is_eval,
            is_anchored,
            self.bar,
            is_drawn,
            has_left=has_left,
            rank=self.rank,
        )

    def _read_prefix(self) -> int:
        """Read the rank; return where the message begins."""
        prefix = None if _AT_START.match(self.text) else _PREFIX.match(self.text)
        head = prefix.end() if prefix else 0
        self._take_span(0, head)
        rank = _RANK.match(self.text)
        rank = rank if rank and rank.end() <= head else _RANK_WITHIN.search(self.text, head)
        if rank is not None:
            self._take_groups(rank, 0)
            self.rank = int(rank[rank.lastindex or 0])
        # The prefix is no part of the first name.
        first = bisect_left(self.starts, head)
        end = [*self.starts, len(self.text)][first]
        self.texts[first] = " " + self.text[max(head, end - len(self.texts[first])) : end]
        return head

    def _read_position(self, message: str, head: int) -> None:
        """Read what the table of formats finds in the message, which begins at ``head``."""
        for row, pattern in _ROWS:
            match = pattern.search(message)
            if match is None:
                continue
            found = {name: text for name, text in match.groupdict().items() if text is not None}
            if any(_group(name) in self.position for name in found):
                continue
            self._take_groups(match, head)
            self._take_span(head + match.start(), head + (match.start("rest") if "rest" in found else match.end()))
            per = found.get("per", "")
            self._is_download |= per in ("B/s", "iB/s") or found.get("unit") in ("B", "iB")
            self._has_inverse_rate |= per.startswith("s/")
            self._has_run_total |= row is RUN_TOTAL
            if row in BARS:
                self.bar = re.sub(r"\d+", "#", message[: match.start()].strip(f" :|{FILL}"))

    def _take_groups(self, match: re.Match[str], head: int) -> None:
        for name, text in match.groupdict().items():
            start = match.start(name) + head
            if text is not None and _group(name) in (*POSITION, "rank") and start in self.starts:
                index = self.starts.index(start)
                self.taken.add(index)
                self.position[_group(name)] = Source(index, _SCALES.get(text[-1], 1.0))

    def _take_span(self, start: int, end: int) -> None:
        """Let no number of a part of the line be a metric."""
        self.taken.update(index for index, at in enumerate(self.starts) if start <= at < end)

    def _values(self, is_anchored: bool) -> dict[str, Source]:
        """Return the metrics; of those of one name the first."""
        values: dict[str, Source] = {}
        is_eval = False
        for index, text in enumerate(self.texts[:-1]):
            for label in _SECTION.findall(text):
                is_eval = not label.lower().startswith("train")
            if index in self.taken:
                continue
            name = self._name(index, is_anchored)
            unit = self._unit(index)
            word = unit.lstrip()
            if not name and is_anchored and word in _NAMES_OF_UNITS:
                name = word
            if not name or self._is_denied(name, is_anchored) or self._is_joined(index, unit):
                continue
            if word == "ms" and not name.endswith("ms"):
                name += "_ms"
            scale = _SCALES.get(word, 1.0) if "mem" not in name else 1.0
            values.setdefault(eval_name(name) if is_eval else name, Source(index, scale, unit))
        return values

    def _is_denied(self, name: str, is_anchored: bool) -> bool:
        if name in self._denied or name in self._known:
            return name in self._denied
        if _DENIED.fullmatch(name) and not (is_anchored and name in ("time", "Time")):
            return True
        return not is_anchored and _DENIED_ALONE.match(name) is not None

    def _unit(self, index: int) -> str:
        """Return the unit after a number; in `lr 3e-4 tok/s 51,234` it is the name of the next number."""
        text = self.texts[index + 1]
        unit = _UNIT.match(text)
        is_last = index + 1 == len(self.starts)
        if unit is None or not (is_last or unit[1] == "%" or text[unit.end() :].strip()):
            return ""
        return unit[0]

    def _is_joined(self, index: int, unit: str) -> bool:
        """Return whether a number is part of a time, a date, a ratio, a version or an address."""
        rest = self.texts[index + 1].removeprefix(unit)
        if unit:
            return rest[:1] in ("/", ":") and rest[1:2].isalnum()
        if rest[:1] == ")" and _IN_CODE.search(self.texts[index]):
            return True
        if rest.strip() == ":" and index + 1 in self.taken:
            return False  # the text before a bar: `Loss: 2.08:   3%|`
        return _NO_VALUE.match(_MARK.join((rest, *self.texts[index + 2 : index + 4]))) is not None

    def _name(self, index: int, is_anchored: bool) -> str:
        """Return the name of a number; empty if there is none."""
        text = self.texts[index]
        if index and _ENDS_WITH_NUMBER.match(text):
            text = _MARK.join(self.texts[max(0, index - 2) : index + 1])
        elif index:
            text = text.removeprefix(self._unit(index - 1))
        separator = _SEPARATOR.search(text, max(0, len(text) - _LONGEST_GAP))
        if separator is None:
            return ""
        before = text[: separator.start()]
        if separator["sep"].strip("'\" "):
            piece = _BETWEEN.split(before)[-1].strip(" '\"`").rstrip(".-")
            piece = _FILLERS.sub("", _NO_NAME.sub("", piece), count=1)
        else:
            piece = "" if separator["open"] else _bare_name(before, is_anchored)
        return piece.replace(_MARK, "#") if _NAME.fullmatch(piece) else ""


def _bare_name(before: str, is_anchored: bool) -> str:
    """Return the name before a number without `:` or `=`: a usual one, or in a line with a position a lone word."""
    words = _BETWEEN.split(before)[-1].split()[-2:]
    known = next((name for name in (" ".join(words), *words[-1:]) if _BARE.match(name)), "")
    alone = _ALONE.search(before) if is_anchored and not known else None
    return alone[1] if alone else known


def _box_row(name: str) -> Shape:
    """Read a row of a box table, as Stable-Baselines3 prints: `|    ep_len_mean  | 22.9 |`."""
    if name == _STEP_ROW:
        return Shape({"step": Source(0)}, is_box=True)
    return NOTHING if _DENIED.fullmatch(name) else Shape({}, ((name, Source(0)),), is_anchored=True, is_box=True)


def _group(name: str) -> str:
    """Return what a group of a row means: `step_2` is another place of the step."""
    return name.partition("_")[0]


_FLAGS = re.VERBOSE | re.IGNORECASE
_ROWS = [(row, re.compile(row.pattern, _FLAGS)) for row in FORMATS]
_AT_START = re.compile(AT_START.pattern, _FLAGS)
