"""The sentence of an error, as real programs print it: recordings of their output, in `recordings`."""

from pathlib import Path

import pytest
from support.tables import toml_table

from torchx_tui.logs.pattern.error_reader import explain_output, read_last_error

RECORDINGS = Path(__file__).with_name("recordings")
TABLE = toml_table(Path(__file__).with_name("data") / "errors.toml")
TRACEBACK = """\
Traceback (most recent call last):
  File "train.py", line 3, in <module>
    main()
ValueError: bad
"""


@pytest.mark.parametrize(("name", "sentence"), TABLE["sentences"].items(), ids=str)
def test_sentence_of_a_recorded_failure(name, sentence):
    paths = [RECORDINGS / f"{name}.{stream}" for stream in ("stderr", "stdout")]
    assert explain_output(*(p.read_text(encoding="utf-8") if p.exists() else "" for p in paths)).sentence == sentence


def test_every_recording_has_its_sentence():
    assert {path.stem for path in RECORDINGS.iterdir()} <= {*TABLE["sentences"]}


@pytest.mark.parametrize("prefix", TABLE["prefixes"]["each_line"])
def test_prefix_of_each_line_is_not_part_of_the_error(prefix):
    found = explain_output("".join(f"{prefix}{line}\n" for line in TRACEBACK.splitlines()))
    assert (found.sentence, found.quote) == ("ValueError: bad", TRACEBACK.rstrip("\n"))


@pytest.mark.parametrize(("stderr", "sentence"), TABLE["outputs"]["sentences"])
def test_sentence_of_an_output(stderr, sentence):
    assert explain_output(stderr.replace("{traceback}", TRACEBACK)).sentence == sentence


def test_last_lines_are_quoted_without_a_known_error():
    found = explain_output("".join(f"line {number}\n" for number in range(9)))
    assert (found.sentence, found.quote) == ("line 8", "line 4\nline 5\nline 6\nline 7\nline 8")
    assert explain_output("line 1\n", guess=False).sentence == ""


def test_quoted_output_cannot_drive_the_terminal():
    found = explain_output(TRACEBACK.replace("bad", "\x1b]0;title\x07bad\x1b[31m"))
    assert found.sentence == "ValueError: bad"
    assert "\x1b" not in found.quote


@pytest.mark.parametrize(
    ("output", "error"),
    [
        ("x\nValueError: bad\nnoise\n", "ValueError: bad"),
        ("[rank1]: torch.OutOfMemoryError: CUDA out of memory", "torch.OutOfMemoryError: CUDA out of memory"),
        ("ValueError: earlier\nRuntimeError: Connection closed by peer\n", "RuntimeError: Connection closed by peer"),
        ("ValueError: bad\nE1121 api.py:882] failed (exitcode: 1) local_rank: 3 (pid: 7)\n", "ValueError: bad"),
        ("terminate called after throwing an instance of 'c10::Error'\n  what():  bad size\n", "c10::Error: bad size"),
        ("step 1\n", ""),
    ],
)
def test_last_error_of_a_process(output, error):
    found = read_last_error(output)
    assert (found.text if found else "") == error


def test_quote_of_a_chain_names_what_it_leaves_out():
    text = """\
Traceback (most recent call last):
  File "train.py", line 4, in step
    raise RuntimeError("loss is nan")
RuntimeError: loss is nan

The above exception was the direct cause of the following exception:

Traceback (most recent call last):
  File "train.py", line 9, in main
    raise ValueError("bad step") from error
ValueError: bad step
"""
    quote = explain_output(text).quote.splitlines()
    assert (quote[0], quote[-1]) == ("[1 more traceback of this error in the log]", "ValueError: bad step")
