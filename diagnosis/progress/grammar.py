"""Reads the first line of a shape: which of its numbers is the step, the total, the epoch, the rate, a named value.

The formats are those that trainers print: HF Trainer, Lightning, tqdm, rich, keras, xgboost, lightgbm, catboost,
scikit-learn, Stable-Baselines3, torchtitan, Megatron-LM, DeepSpeed, fairseq, OLMo-core, verl, torchtune, mmengine,
detectron2, timm, torchvision, NeMo, nanoGPT, ignite, catalyst, poutyne, d3rlpy, SpeechBrain, PyKEEN, TabNet, NGBoost,
flair, and what people print themselves. What may as well be something else is left out: a date, an address, a version,
a ratio.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import Any

from .recipe import FILL, NAME_NUMBER, Recipe, Source, ValueSource

# What stands before a message and is no part of it: rank, ray's pid, times, levels, loggers, places in the code.
_PREFIX = re.compile(
    r"""(?:\s|\[(?:default|rank\s?|Rank\s|RANK:)\d+\]:?|\[\d+\]:(?=\S)|\w+/\d+\s(?=\S)|\(\w+\ pid=\d+(?:,\ ip=[\d.]+)?\)
    |\[?\d{4}[-/]\d\d?[-/]\d\d?[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?\]?
    |\[\d\d/\d\d\ \d\d:\d\d:\d\d\ [\w.]+\]:|[IWEF]\d{4}\ [\d:.]+\ +\d+\ \S+\]|\d\d:\d\d:\d\d(?:[.,]\d+)?(?=\s)
    |(?:INFO|DEBUG|WARNING):[\w.]+:(?=\S)
    |\[?(?:INFO|DEBUG|WARNING|WARN|Info)\]?(?=[\s:|\]-])|\[titan\]|\[LightGBM\]|\[[\w./]+\.py:\d+:\w+\]|\[PID:\d+\]
    |[-|:]\s|[\w.-]+:\d+\t|(?:[a-z_]\w*\.)+[\w:<>]+(?=\s[-|:])|(?:[a-z_]\w*\.)+\w+:\d+|\w+(?=\s-\s)
    |[\w.<>]+:[\w.<>]+:\d+\ -)+""",
    re.VERBOSE,
)
# torchrun's `--tee` writes `[default0]:`, of a role without a name `[0]:`.
_RANK = re.compile(
    r"\s*(?:\[(?:default)?(?P<tee>\d+)\]:\s*)?\[?(?:default|[Rr]ank\s?|RANK:)(?P<own>\d+)\]|\[(?P<bare>\d+)\]:(?=\S)"
)
_RANK_WITHIN = re.compile(r"(?i)(?<!\w)rank[ =:]\s?(?P<n>\d+)(?![\w.:%])")
_COUNT = r"[\d.]+[kKMGT]?"
_UNIT_OF_RATE = r"[kKMGT]?\s?[^\s\],]*?/s|s/[^\s\],]+"
_BAR = re.compile(
    rf"(?P<percent>\d{{1,3}})%\|[^|]*\|\s*(?P<n>{_COUNT})/(?P<t>{_COUNT})(?P<unit>\w*)\s"
    rf"\[[\d:]+<[^,]*,\s*(?P<rate>[\d.?]+)\s?(?P<per>{_UNIT_OF_RATE})(?P<rest>[^\]]*)\]?"
)
_OPEN_BAR = re.compile(
    rf"(?P<n>\d+)\s?(?P<unit>[a-z]\w*)\s\[[\d:]+,\s*(?P<rate>[\d.?]+)\s?(?P<per>{_UNIT_OF_RATE})(?P<rest>[^\]]*)\]?"
)
_ANY_BAR = re.compile(r"\d%\s?\|")
_FILLED_BAR = re.compile(rf"{FILL}\s*(?P<n>\d+)/(?P<t>\d+)(?=\s)")
_STEP = re.compile(
    r"""(?ix)(?<![\w/])(?:global[_ ]?step|(?:train(?:ing)?[/_ ])?step|train:\ \d+(?=\ \[)|iter(?:ation)?|num_updates
    |update|batch|it)(?:['"]?\s?[:=]?\s?\[?\s*|\)\s*\[\s*)(?P<n>[\d,]+)(?:\s*(?:/|of)\s*(?P<t>[\d,]+))?
    (?![\w.:%]*\d|\w)""",
)
_EPOCH = re.compile(
    r"""(?ix)(?<![\w/])(?:(?:train\s)?epoch(?:\((?P<phase>\w+)\))?|(?:train|valid|test)(?=\ \(\d+/\d+\)\ ))
    ['"]?\s*[:=\#]?\s*['"]?(?:\[|\((?=\d+/\d+\)))?\s*(?P<n>\d+(?:\.\d+)?)(?:\s*(?:/|of)\s*(?P<t>\d+))?[\])]?:?
    (?:\s*\[\s*(?P<i>\d+)\s*/\s*(?P<m>\d+)|\s+(?P<i2>\d+)\s/\s(?P<m2>\d+)(?=\s))?"""
)
_LEAD = re.compile(
    rf"\s*(?:\[(?P<a>\d+)\](?=\s)|(?P<b>\d+):(?=\t)|\[\s*(?P<n>\d+)\s*/\s*(?P<t>\d+)\s*\]"
    rf"|(?P<n2>\d+)/(?P<t2>\d+)(?=\s.*(?:step|{FILL}|=|\[)))"
)
_EVAL = re.compile(
    r"(?i)(?:\*\s|test(?:ing|\sset)?\b|val(?:id(?:ation|ate)?)?\b|eval\w*\b|epoch\((?:val|test)\)|dev\s?:)"
    r"|.*\bvalid on\b|.*\bvalidation\b"
)
_EVAL_LOGGER = "| valid |"
_BOX = re.compile(r"\s*\|\s+(?P<name>[A-Za-z][\w/@ ]*?)\s+\|\s+$")
_ETA = re.compile(r"(?i)\beta[:=]|<\d")
_RATE = re.compile(r"(?P<n>\d+(?:\.\d+)?)\s?it/s")
_UNIT = re.compile(r"\s?(%|tok/s|it/s|[\w]*samples/s|[kMGT]i?B/s\b|[kMGT]?i?B\b|ms\b|us\b|s\b|x\b|[KMBT]\b)")
_NOT_A_VALUE = re.compile(r"[:\w@]|\.\d|\s?/\s?\d|/\w|-\d")
_SCALES = {"k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "B": 1e9, "T": 1e12}
_SEPARATOR = re.compile(r"(?P<sep>['\"]?\s?[:=]\s*|\s+)(?P<open>[\['\"(]*)$")
# Names stand between these.
_BETWEEN = re.compile(rf"[|,;{{}}\t{FILL}]|\[|\]|\s\s+|\s-\s|:\s|=\s?|\s/\s")
_NAME = re.compile(rf"[^\W\d][\w./@'%#-]*(?:\s?\([\w/ .%{NAME_NUMBER}]+\)|\s[\w./@'%#-]+){{0,6}}")
_FILLERS = re.compile(r"^(?:(?:and|the|is|for|at|to|in|of|out|with|loss value|s/it|it/s)\s)+")
# What may stand before a name: the rest of a unit, as in `27.8/s/gpu LR: 0.1`, or of a bracket.
_NO_NAME = re.compile(r"^(?:[()]\s*|[^\w\s(]\S*\s+)")
# A word that is all of its part of a line: `| norm 15.4 |`, `, inertia 1361.9`.
_ALONE = re.compile(r"[,|]\s+([^\W\d][\w./%-]*)$")
# A rate without a name has that of its unit.
_NAMES_OF_UNITS = ("tok/s", "samples/s")
_MOST_WORDS = 6
# Of the text before a number, so much is looked at.
_LONGEST_GAP = 120
_KNOWN = re.compile(
    r"(?i)loss|(?:^|[_/ .])lr(?:$|[_/ -]|\d)|learning[_ ]rate|acc|ppl|perplex|norm|tps|tok|thr(?:ough)?put|mfu|flop"
    r"|sample|reward|score|\bkl|entropy|auc|\bf1|map\b|bleu|rouge|error|rmse|mae|best|test|fps|wps|ups|ep_(?:len|rew)"
    r"|variance|mem|/s(?:ec)?$|time|imgs?/s|speed|objective"
)
_BARE = re.compile(
    r"(?:(?:train|val|valid|validation|test|eval|avg|nll|best|lm)[ _])?(?:loss|lr|ppl|acc(?:uracy)?|Acc@\d+|Loss|Acc|"
    r"mfu|wps|ups|gnorm|grad_norm|bsz|wall|tok/s|[Tt]ime|Data|reward|auc|f1|tps)$"
)
_DENIED = re.compile(
    r"(?i)(?:pid|port|rank|seed|world_size|nranks|local_rank|host|ip|version|line|id|uuid|sha|git|ts|timestamp|asctime"
    r"|eta|eta_seconds|remaining|elapsed|mom|v_num|train|validate step|cudadev|nvmldev|busid|exitcode|epochs?"
    r"|(?:(?:train|val)[ _])?steps?|global_step|iteration|iter|num_updates|date|level|train_iters|channel|size"
    r"|max_(?:steps|iter|epochs)|training/(?:global_step|epoch)|n|t|norm|nnzs|bias|total|memory|micro_step"
    r"|total_timesteps|num_epochs|batch|update|it|errors?|warnings?|args?|time)"
)
_DENIED_ALONE = re.compile(r"(?i)(?:.*\b(?:port|version|timeout|timestamp|seconds since|usage|warning))")
_STEP_ROW = "total_timesteps"


@dataclass
class _Line:
    """A line that is read for the first time.

    Attributes:
        texts: what stands before each number, and after the last.
        starts: where each number starts.
        text: all of it.
        taken: the numbers that have a meaning.
    """

    texts: list[str]
    starts: list[int]
    text: str
    taken: set[int] = field(default_factory=set)

    @classmethod
    def of(cls, parts: list[str]) -> _Line:
        ends = list(accumulate(map(len, parts)))
        return cls(parts[::2], ends[0:-1:2], "".join(parts))

    def number(self, match: re.Match[str], *groups: str) -> Source | None:
        """Return the number that one of the groups matched, with its `k` or `M`."""
        for group in groups:
            if match[group] is None:
                continue
            try:
                index = self.starts.index(match.start(group))
            except ValueError:
                continue
            self.taken.add(index)
            return Source(index, _SCALES.get(match[group][-1], 1.0))
        return None

    def take_between(self, start: int, end: int) -> None:
        """Let the numbers between two places be no values."""
        self.taken.update(index for index, at in enumerate(self.starts) if start <= at < end)

    def blank_prefix(self, head: int) -> None:
        """Put spaces in the place of a prefix, up to the first number after it: it is no part of a name."""
        first = next((index for index, at in enumerate(self.starts) if at >= head), len(self.starts))
        end = self.starts[first] if first < len(self.starts) else len(self.text)
        start = end - len(self.texts[first])
        if head > start:
            self.texts[first] = " " * (head - start) + self.texts[first][head - start :]


def learn(parts: list[str], denied: Collection[str] = (), known: Collection[str] = ()) -> Recipe:
    """Read a line and return what the numbers of lines of its shape mean; an empty recipe where it says nothing.

    Args:
        parts: the line, by `split_line`.
        denied: names that are no values, beside the usual ones.
        known: names that are values also in lines that tell neither step nor epoch.
    """
    line = _Line.of(parts)
    box = _BOX.match(line.texts[0])
    if box is not None and line.texts[1].strip() == "|":
        return _box_row(box["name"].strip())
    lead = _LEAD.match(line.text)
    prefix = None if lead else _PREFIX.match(line.text)
    head = prefix.end() if prefix else 0
    message = line.text[head:]
    rank = _RANK.match(line.text)
    recipe = Recipe(
        rank=int(rank["tee"] or rank["own"] or rank["bare"]) if rank else -1,
        # Lines of other ranks have the same shape.
        rank_within=line.number(rank, "tee", "own", "bare") if rank else None,
        is_eval=_EVAL.match(message.lstrip()) is not None or _EVAL_LOGGER in line.text[:head],
        has_eta=_ETA.search(line.text) is not None,
    )
    line.take_between(0, head)
    line.blank_prefix(head)
    within = _RANK_WITHIN.search(line.text, head) if recipe.rank < 0 else None
    if within is not None:
        recipe = replace(recipe, rank_within=line.number(within, "n"))
    bar = _bar(line, head)
    if bar is not None:
        recipe = _read_bar(line, recipe, bar, head)
        if recipe.bar is None:
            return Recipe()  # a download
    recipe = _read_epoch(line, recipe, head)
    recipe = _read_step(line, recipe, head)
    rate = _RATE.search(line.text, head) if recipe.bar is None else None
    if rate is not None and line.text[: rate.start()].rstrip()[-1:] not in (":", "="):
        recipe = replace(recipe, rate=line.number(rate, "n"))
    is_dict = message.lstrip().startswith("{")
    anchored = recipe.step is not None or recipe.epoch is not None or is_dict or bar is not None
    values = tuple(_values(line, anchored, denied, known))
    names = [value.name for value in values]
    # The steps of an evaluation within an epoch are told by the names alone: `Step: 1/4 ... val_loss: 0.68`.
    is_eval_bar = recipe.in_epoch and recipe.step is not None and names and all(map(_is_eval_name, names))
    if is_eval_bar or (is_dict and any(map(_is_eval_name, names))):
        recipe = replace(recipe, is_eval=True)
    if recipe.is_eval:
        values = tuple(value._replace(name=_eval_name(value.name)) for value in values)
    is_drawn = recipe.step is not None and bool(values) and (bar is not None or _ANY_BAR.search(line.text) is not None)
    return replace(recipe, values=values, is_drawn=is_drawn)


def _is_eval_name(name: str) -> bool:
    return name.startswith(("eval_", "val_"))


def _eval_name(name: str) -> str:
    return name if name.lower().startswith(("eval", "val", "test")) else f"eval/{name}"


def _box_row(name: str) -> Recipe:
    """Read a row of a box table, as Stable-Baselines3 prints: `|    ep_len_mean  | 22.9 |`."""
    if name == _STEP_ROW:
        return Recipe(step=Source(0), is_box=True)
    if _DENIED.fullmatch(name):
        return Recipe()
    return Recipe(values=(ValueSource(name, 0, 1.0, ""),), is_box=True)


def _bar(line: _Line, head: int) -> re.Match[str] | None:
    return (
        _BAR.search(line.text, head)
        or _OPEN_BAR.search(line.text, head)
        or (_FILLED_BAR.search(line.text, head) if FILL in line.text else None)
    )


def _read_bar(line: _Line, recipe: Recipe, bar: re.Match[str], head: int) -> Recipe:
    groups = bar.groupdict()
    per, unit = groups.get("per") or "", groups.get("unit") or ""
    if per.endswith("B/s") or unit in ("B", "iB"):
        return recipe
    words = line.text[head : bar.start()].strip(f" :|{FILL}")
    step = line.number(bar, "n")
    total = line.number(bar, "t") if "t" in groups else None
    rate = line.number(bar, "rate") if "rate" in groups else None
    start = bar.start("percent") if "percent" in groups else bar.start("n")
    line.take_between(start, bar.start("rest") if "rest" in groups else bar.end())
    inverse = per.startswith("s/")
    if rate is not None and not inverse and len(per) > 3 and per[0] in _SCALES:
        rate = rate._replace(scale=_SCALES[per[0]])
    return replace(recipe, step=step, total=total, rate=rate, inverse_rate=inverse, bar=_without_numbers(words))


def _without_numbers(words: str) -> str:
    return re.sub(r"\d+", "#", words)


def _read_epoch(line: _Line, recipe: Recipe, head: int) -> Recipe:
    found = _EPOCH.search(line.text, head)
    epoch = line.number(found, "n") if found else None
    if found is None or epoch is None:
        return recipe
    line.take_between(found.start(), found.end())
    epochs = line.number(found, "t")
    step, total = line.number(found, "i", "i2"), line.number(found, "m", "m2")
    if recipe.bar is not None:
        # `Epoch 2:  50%|...| 20/40` counts one epoch.
        return replace(recipe, epoch=epoch, epochs=epochs, in_epoch=True)
    is_eval = recipe.is_eval or (found["phase"] or "").lower() in ("val", "test")
    return replace(
        recipe, epoch=epoch, epochs=epochs, step=step, total=total, in_epoch=step is not None, is_eval=is_eval
    )


def _read_step(line: _Line, recipe: Recipe, head: int) -> Recipe:
    """Take the step by its word, or of the beginning of the line."""
    if recipe.bar is not None:
        return recipe
    for found in _STEP.finditer(line.text, head):
        step = line.number(found, "n")
        if step is not None and step.index not in _indices(recipe.epoch):
            line.take_between(found.start(), found.end())
            # `epoch 1 step 10/100` counts one epoch, `step 10/4000, epoch 1` the run.
            after_epoch = recipe.epoch is not None and recipe.epoch.index < step.index
            is_of_epoch = after_epoch or found[0].lower().startswith("train:")
            in_epoch = is_of_epoch and found["t"] is not None
            return replace(recipe, step=step, total=line.number(found, "t") or None, in_epoch=in_epoch)
    lead = _LEAD.match(line.text, head)
    if recipe.step is None and lead is not None:
        step = line.number(lead, "a", "b", "n", "n2")
        total = line.number(lead, "t", "t2")
        line.take_between(lead.start(), lead.end())
        return replace(recipe, step=step, total=total, in_epoch=total is not None)
    return recipe


def _indices(source: Source | None) -> tuple[int, ...]:
    return () if source is None else (source.index,)


def _values(line: _Line, anchored: bool, denied: Collection[str], known: Collection[str]) -> Any:
    """Yield the named values."""
    seen: set[str] = set()
    for index in range(len(line.starts)):
        if index in line.taken:
            continue
        name, name_index = _name_before(line, index, anchored)
        unit = _unit(line, index)
        if not name and anchored and unit is not None and unit[1] in _NAMES_OF_UNITS:
            name = unit[1]
        if not name or name in denied:
            continue
        rest = line.texts[index + 1][unit.end() if unit else 0 :]
        if _is_joined(line, index, rest, unit is not None):
            continue
        is_known = name in known or _KNOWN.search(name) is not None
        is_denied = name not in known and _DENIED.fullmatch(name) is not None
        if is_denied and not (anchored and name in ("time", "Time")):
            continue
        if not anchored and (not is_known or _DENIED_ALONE.match(name)):
            continue
        word = unit[1] if unit else ""
        scale = _SCALES[word] if word in _SCALES and "mem" not in name else 1.0
        if word == "ms" and not name.endswith("ms"):
            name += "_ms"
        if name not in seen:
            seen.add(name)
            yield ValueSource(name, index, scale, unit[0] if unit else "", name_index)


def _unit(line: _Line, index: int) -> re.Match[str] | None:
    """Return the unit after a number; in `lr 3e-4 tok/s 51,234` it is the next one's name."""
    text = line.texts[index + 1]
    unit = _UNIT.match(text)
    is_last = index + 1 == len(line.starts)
    return unit if unit is not None and (is_last or unit[1] == "%" or text[unit.end() :].strip()) else None


def _is_joined(line: _Line, index: int, rest: str, has_unit: bool) -> bool:
    """Whether the number is a part of something else: a time, a date, a ratio, a version, an address."""
    if has_unit:
        return rest[:1] in ("/", ":") and rest[1:2].isalnum()
    if rest.strip() == ":" and index + 1 in line.taken:
        return False  # the words of a bar: `Loss: 2.08:   3%|`
    following = rest + ("0" if index + 1 < len(line.starts) else "")
    return _NOT_A_VALUE.match(following) is not None


def _name_before(line: _Line, index: int, anchored: bool) -> tuple[str, int]:
    """Return the name of a number, and the number within that name; -1 if there is none."""
    text, name_index = line.texts[index][-_LONGEST_GAP:], -1
    if index and re.match(r"[)\]]\s?[:=]", text):
        # The name ends with a number: `lr (group 0)=`.
        text = f"{line.texts[index - 1][-_LONGEST_GAP:]}{NAME_NUMBER}{text}"
        name_index = index - 1
    separator = _SEPARATOR.search(text)
    if separator is None:
        return "", -1
    before = text[: separator.start()]
    if name_index < 0 and index:
        unit = _unit(line, index - 1)
        before = before[unit.end() :] if unit else before
    if separator["sep"].strip("'\" "):
        piece = _BETWEEN.split(before)[-1].strip(" '\"`").rstrip(".-")
        piece = _FILLERS.sub("", _NO_NAME.sub("", piece), count=1)
    else:
        piece = "" if separator["open"] else _bare_name(before, anchored)
    if not piece or len(piece.split()) > _MOST_WORDS or not _NAME.fullmatch(piece):
        return "", -1
    return piece, name_index


def _bare_name(before: str, anchored: bool) -> str:
    """Return the name before a number without `:` or `=`: a known one, or where there is a step a part's only word."""
    words = _BETWEEN.split(before)[-1].split()[-2:]
    known = next((name for name in (" ".join(words), *words[-1:]) if _BARE.match(name)), "")
    alone = _ALONE.search(before) if anchored and not known else None
    return alone[1] if alone else known
