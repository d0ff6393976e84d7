"""The formats in which trainers print a position: a table, each row with the lines that it was made for.

A row reads a position, not the metrics beside it: `lines.py` reads every `name: value` that is left. All rows are tried
in order, and a row is passed over if an earlier one has found the same. A test checks each row against its samples.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

POSITION = ("step", "total", "epoch", "epochs", "rate")
"""Named groups that are a position; every other group of a pattern of a user's own is a metric."""
FILL = "█"
"""Replaces the filled and empty parts of progress bars before formats are matched."""


@dataclass(frozen=True)
class Format:
    """A form of a position.

    Attributes:
        name: the trainers that print it, or its form.
        pattern: a regular expression with named groups: `POSITION`; `per`, the unit of the rate; `unit`, that of the
            step; `rest`, from where metrics follow. Case and white space in it do not count.
        samples: lines, each with its position, such as `step 5/20 epoch 1/2`.
        needle: a regular expression of RE2 for its lines, if nothing in them is usual for trainers.
    """

    name: str
    pattern: str
    samples: Mapping[str, str] = field(default_factory=dict)
    needle: str = ""


_STEP_WORD = (
    r"(?:global[_ ]?)?(?:(?:train(?:ing)?|learning)[/_ ])?"
    r"(?:(?<!fps\s)step|iter(?:ation)?|num_updates|update|batch|it|episode|trial|round)"
)
_AFTER_WORD = r"['\"]?\s?[:=]?\s?[\[(\#]?\s*"
# A number that is no part of a time, a version or an address.
_END = r"(?![\w.:%]*\d|\w)"
_COUNT = r"[\d.]+[kKMGT]?"
_RATE = r"(?P<rate>[\d.?]+[kKMGT]?)\s?(?P<per>[^\s\],]*?/s|s/[^\s\],]+)(?P<rest>[^\]]*)\]?"

BARS = (
    Format(
        "tqdm",
        rf"\d{{1,3}}%\|[^|]*\|\s*(?P<step>{_COUNT})/(?P<total>{_COUNT})(?P<unit>\w*)\s\[[\d:]+<[^,]*,\s*{_RATE}",
        {
            " 50%|█████     | 40/80 [00:10<00:09,  4.1it/s]": "step 40/80 rate 4.1",
            "Epoch 2:  50%|██   | 20/40 [00:00<00:00, 2.0s/it, v_num=2, loss=0.1]": "step 20/40 epoch 2 rate 0.5",
        },
    ),
    Format(
        "tqdm without a total",
        rf"(?P<step>\d+)\s?(?P<unit>[a-z]\w*)\s\[[\d:]+,\s*{_RATE}",
        {"Train: 20it [00:00, 31.2it/s]": "step 20 rate 31.2"},
    ),
    Format(
        "rich, keras",
        rf"{FILL}\s*(?P<step>\d+)/(?P<total>\d+)(?=\s)|^\s*(?P<step_2>\d+)/(?P<total_2>\d+)(?=\s+{FILL})",
        {
            "Epoch 1/2 ━━━━━━ 5/20 0:00:01 loss=0.2": "step 5/20 epoch 1/2",
            " 1/16 ━━━━━━ 1:00 4s/step - loss: 0.6911": "step 1/16",
        },
    ),
)
RUN_TOTAL = Format(
    "total by its name",
    r"(?<!\w)(?:max|total|num)_(?:steps|iters|iterations|updates)['\"]?\s?[:=]\s?(?P<total>\d+)\b",
    {'{"step": 1, "max_steps": 500, "loss": 2.99}': "step 1/500"},
)
AT_START = Format(
    "number at the start",
    rf"""^\s*(?:\[(?P<step>\d+)\](?=\s)|(?P<step_2>\d+)(?::(?=\t)|\s\|\s(?=[a-z]))
    |\[\s*(?P<step_3>\d+)\s*/\s*(?P<total_3>\d+)\s*\]
    |(?P<step_4>\d+)/(?P<total_4>\d+)(?=,\s|\s.*(?:step|{FILL}|=|\[)))""",
    {
        "[2]\ttrain-auc:0.6": "step 2",
        "18:\ttest: 0.99\tbest: 0.99 (6)\ttotal: 492ms": "step 18",
        "10 | loss 4.9000 | lr 4.9e-05": "step 10",
        "16/16 - 5s - 316ms/step - accuracy: 0.4336": "step 16/16",
        "1/41, train_loss: 0.6900": "step 1/41",
    },
)
FORMATS = (
    *BARS,
    Format(
        "epoch, then its steps",
        r"""(?<![\w/])epoch(?:\(\w+\))?\s*[:=\#]?\s*\[?\s*(?P<epoch>\d+)(?:\s*(?:/|of)\s*(?P<epochs>\d+))?\]?:?\s*
        (?:[\[(]\s*(?P<step>\d+)\s*/\s*(?P<total>\d+)|\|?\s+(?P<step_2>\d+)\s?/\s+?(?P<total_2>\d+)(?=\s))""",
        {
            "Epoch: [0][ 11/300]\tTime  0.4 ( 0.5)": "step 11/300 epoch 0",
            "Epoch:[1/2](5900/22000), loss: 6.9": "step 5900/22000 epoch 1/2",
            "Train Epoch: 1 [640/60000 (1%)]\tLoss: 2.3": "step 640/60000 epoch 1",
            "Epoch(train)   [1][ 50/586]  lr: 1.0e-02": "step 50/586 epoch 1",
            "| epoch   1 |   200/ 2983 batches | loss 7.5": "step 200/2983 epoch 1",
            "epoch 001:     10 / 100 loss=11.226": "step 10/100 epoch 1",
        },
    ),
    Format(
        "timm",
        r"(?<!\w)(?:train|valid|test|val):\s(?P<epoch>\d+)\s\[\s*(?P<step>\d+)/(?P<total>\d+)",
        {"Train: 0 [  50/1251 (  4%)]  Loss: 6.78 (6.9)": "step 50/1251 epoch 0"},
    ),
    Format(
        "epoch and step in brackets",
        r"""^\s*\[(?:train:\s*)?(?P<epoch>\d+)
        (?:/(?P<epochs>\d+)\]\s*\[(?P<step>\d+)/(?P<total>\d+)\]|,\s+(?P<step_2>\d+)(?:\s*/\s*(?P<total_2>\d+))?\])""",
        {
            "[0/25][50/1583]\tLoss_D: 1.69": "step 50/1583 epoch 0/25",
            "[1,  2000] loss: 2.19": "step 2000 epoch 1",
            "[train: 1, 5 / 125] FPS: 30.0": "step 5/125 epoch 1",
        },
    ),
    Format(
        "ESPnet",
        r"(?P<epoch>\d+)(?:/(?P<epochs>\d+))?epoch(?::\w+:\d+-(?P<step>\d+)batch|\s)",
        {
            "1epoch:train:51-100batch: iter_time=0.004": "step 100 epoch 1",
            "1/20epoch started. Estimated time to finish: 19 hours, 31 minutes": "epoch 1/20",
        },
    ),
    Format(
        "pycma",
        r"^\s*(?P<step>\d+)\s+\d+(?:\s-?\d\.\d+e[+-]\d+){3}",
        {"  100    800 1.1e-05 2.3e+00 4.4e-03  4e-03  5e-03 0:00.1": "step 100"},
    ),
    Format(
        "Marian",
        r"\bep\.\s(?P<epoch>\d+)\s:\sup\.\s(?P<step>\d+)",
        {"[2026-11-28 10:01:00] Ep. 1 : Up. 500 : Sen. 32,000 : Cost 7.1": "step 500 epoch 1"},
        r" : up\. \d",
    ),
    Format(
        "StyleGAN",
        r"^tick\s+(?P<step>\d+)\s+kimg\s",
        {"tick 5     kimg 20.0     time 1m 02s       sec/tick 60.1": "step 5"},
        r"\bkimg ",
    ),
    Format(
        "epoch by its word",
        rf"""(?<!per\s)(?<!best\s)(?<![\w/])(?:epoch|^(?:train|valid|test)(?=\s\(\d+/\d+\)\s)){_AFTER_WORD}['"]?
        (?P<epoch>\d+(?:\.\d+)?)(?:\s*(?:/|of)\s*(?P<epochs>\d+))?{_END}""",
        {
            "Epoch [2/3] Step [50/100] Loss: 1.4": "step 50/100 epoch 2/3",
            "{'loss': '0.6918', 'epoch': '0.25'}": "epoch 0.25",
            "train (1/12) accuracy01: 0.59": "epoch 1/12",
            "[step=1/4000,epoch=1,eta=2h59m]": "step 1/4000 epoch 1",
            "Median time per epoch: 0.0123s": "",
        },
    ),
    Format(
        "step by its word",
        rf"""(?<![\w/?&])(?:{_STEP_WORD}|(?<![\w]\s)(?:global\s)?steps){_AFTER_WORD}
        (?P<step>[\d,]+K?)(?!/\d+\s:\s)(?:\s*(?:/|of)\s*(?P<total>[\d,]+))?{_END}""",
        {
            " [2026-11-22 09:00:52.000000] iteration       10/    5000 | lm loss: 9.2E+00 |": "step 10/5000",
            "INFO ts/train.py:232 step:1K loss:1.5": "step 1000",
            "Episode 7/500 reward: 3.5": "step 7/500",
            "[epoch=1][batch=5/100]:": "step 5/100 epoch 1",
            "Step #10 loss 0.5": "step 10",
            "steps: 10 loss: 7.0 iter time (s): 0.501": "step 10",
            "CleanRL global_step=10, episodic_return=1": "step 10",
            "INFO :      [ROUND 3]": "step 3",
            "fps step: 408 fps total: 332 epoch: 33/200 frames: 524288": "epoch 33/200",
            "Step 3/14 : RUN pip install torch": "",
        },
        r"\bround ",
    ),
    Format(
        "steps by their unit",
        r"(?<![\d/])(?P<step>\d+)\s*/\s*(?P<total>\d+)\s*(?:batches|iterations|iters|steps)\b",
        {"loss 7.5 at 200/ 2983 batches": "step 200/2983"},
    ),
    RUN_TOTAL,
    AT_START,
    Format(
        "rate by its unit",
        r"(?<![:=]\s)(?<![:=\d.])(?P<rate>\d+(?:\.\d+)?)\s?it/s",
        {"step 5 3.5 it/s": "step 5 rate 3.5"},
    ),
)


def user_format(pattern: str) -> Any:
    """Compile a pattern of the user's own, for bytes.

    RE2 bounds the time that a line takes, where it is installed.

    Raises:
        ValueError: it is malformed, or has no group for a metric.
    """
    try:
        re.compile(pattern)
    except re.error as error:
        raise ValueError(f"{pattern} is not a regular expression: {error}") from None
    except (RecursionError, OverflowError):
        raise ValueError(f"{pattern:.40}... is nested too deeply, or repeats too often") from None
    try:
        compiled = compile_bytes(pattern.encode())
    except Exception as error:  # re2 may be missing, so its error has no name here
        raise ValueError(f"{pattern} is not a regular expression of RE2: {error}") from None
    if not {_text(name) for name in compiled.groupindex} - set(POSITION):
        raise ValueError(f"{pattern} names no value: name it, as in (?P<loss>[-+.e0-9]+) and (?P<step>[0-9]+)")
    return compiled


def compile_bytes(pattern: bytes, *, captures: bool = True) -> Any:
    """Compile a pattern by RE2, or by `re` on systems for which RE2 has no wheel."""
    try:
        import re2
    except ImportError:
        return re.compile(pattern)
    options = re2.Options()
    options.log_errors = False
    options.never_capture = not captures
    return re2.compile(pattern, options)


def groups(compiled: Any, line: bytes) -> dict[str, str]:
    """Return what the groups of a user's own pattern have in a line, by name; empty if it does not match."""
    match = compiled.search(line)
    found = {_text(name): match.group(name) for name in compiled.groupindex} if match else {}
    return {name: value.decode("utf-8", "replace") for name, value in found.items() if value is not None}


def _text(name: str | bytes) -> str:
    return name.decode() if isinstance(name, bytes) else name
