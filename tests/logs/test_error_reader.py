"""The sentence of an error, as real programs print it: recordings of their output, in `recordings`."""

from pathlib import Path

import pytest

from torchx_tui.logs.pattern.error_reader import explain_output

RECORDINGS = Path(__file__).with_name("recordings")

SENTENCES = {
    # rich, and typer with it
    "rich_tb": "KeyError: 'batch_size'",
    "rich_long": "ValueError: model.forward failed",
    "rich_syntax": "SyntaxError: invalid syntax",
    "rich_group": "ValueError: bad shard 3 (and 1 more)",
    "rich_handler": "KeyError: 'labels'",
    "rich_handler_plain": "ValueError: invalid literal for int() with base 10: 'ten'",
    "typer_tb": "ValueError: learning rate 2.0 is too large",
    "typer_exit": "FileNotFoundError: [Errno 2] No such file or directory: 'missing.yaml'",
    "structlog": "KeyError: 'labels'",
    # Loggers
    "json_log": "KeyError: 'labels'",
    "log_error_only": "ERROR Checkpoint ckpt_100.pt does not match the model: 12 missing keys",
    "log_exception": "FileNotFoundError: [Errno 2] No such file or directory: '/data/imagenet/train.tar'",
    "log_prefix": "IndexError: list index out of range",
    "loguru_catch": "ZeroDivisionError: division by zero",
    "loguru_exc": "RuntimeError: Loss is nan",
    "absl_log": "absl_log.py:4] loss is nan",
    # Other forms of tracebacks, chains and groups
    "absl": "ValueError: loss is nan",
    "chained": "RuntimeError: config has no learning rate",
    "group": "ValueError: bad shard 3 (and 1 more)",
    "group_cause": "RuntimeError: The data pipeline has stopped",
    "hydra": "ValueError: loss is nan",
    "ipython": "RuntimeError: config has no learning rate",
    "ipython_syntax": "SyntaxError: '(' was never closed",
    "keyboard": "KeyboardInterrupt",
    "loader": "FileNotFoundError: /data/imagenet/0.jpg is missing",
    "mem": "MemoryError",
    "mp_pool": "ZeroDivisionError: integer division or modulo by zero",
    "mp_process": "ValueError: no shards in /data/imagenet",
    "multi_line": 'RuntimeError: Error(s) in loading state_dict for Net: Missing key(s) in state_dict: "fc.weight".',
    "notes": "ValueError: invalid literal for int() with base 10: 'x'",
    "oom": "RuntimeError: [enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: can't allocate memory: "
    "you tried to allocate 4503599627370496 bytes. Error code 12 (Cannot allocate memory)",
    "own_exception": "LossDiverged",
    "ray": "ValueError: shard 3 is empty",
    "spawn": "ValueError: rank 1 has no data",
    "syntax": "SyntaxError: '(' was never closed",
    "segv": "Fatal Python error: Segmentation fault",
    # Noise behind the cause
    "atexit_noise": "ValueError: loss is nan",
    "ignored": "ValueError: loss is nan",
    "task_noise": "ValueError: loss is nan",
    "thread_after": "ValueError: loss is nan",
    "thread_noise": "ValueError: loss is nan",
    "warn_after": "ValueError: loss is nan",
    # Launchers
    "accelerate_exc": "LossDiverged",
    "accelerate_usage": "ap.py: error: the following arguments are required: --data",
    "subproc": "LossDiverged",
    "subproc_silent": "subprocess.CalledProcessError: Command '['false']' returned non-zero exit status 1.",
    "make_fail": "make: pythn: No such file or directory",
    "torchrun_ddp": "ValueError: loss is nan at step 2",
    "torchrun_exit": "no training data in /data/imagenet",
    "torchrun_loguru": "RuntimeError: Loss is nan",
    "torchrun_nofile": "/home/ada/venv/bin/python3: can't open file '/home/ada/trian.py': "
    "[Errno 2] No such file or directory",
    "torchrun_oom": "local rank 1 was killed by SIGKILL",
    "torchrun_record": "ValueError: loss is nan at step 2",
    "torchrun_rich": "ValueError: model.forward failed",
    "torchrun_segv": "Fatal Python error: Segmentation fault",
    "torchrun_typer": "ValueError: learning rate 2.0 is too large",
    "torchrun_usage": "ddp_usage.py: error: the following arguments are required: --data",
    # Usage errors
    "absl_unknown": "FATAL Flags parsing error: Unknown command line flag 'rate'",
    "accelerate_flag": "Accelerate CLI tool: error: unrecognized arguments: --numprocesses",
    "ap": "ap.py: error: argument --lr: invalid float value: 'x'",
    "ap_missing": "ap.py: error: the following arguments are required: --data",
    "ap_sub": "ap_sub.py train: error: argument --model: invalid choice: 'resnet' (choose from 'resnet50', 'vit')",
    "ap_unknown": "ap.py: error: unrecognized arguments: --rate 3",
    "ck": "Error: Invalid value for '--lr': 'x' is not a valid float.",
    "ck_abort": "Aborted!",
    "ck_exc": "Error: the learning rate is too large",
    "ck_missing": "Error: Missing argument 'DATA'.",
    "ck_path": "Error: Invalid value for 'DATA': Path '/data/none' does not exist.",
    "fire": "ERROR: The function received no value for the required argument: lr",
    "hydra_key": "Could not override 'lr'.",
    "hydra_override": "Error parsing override 'lr=='",
    "jsonarg": "error: Parser key \"lr\": Expected a <class 'float'>. Got value: x",
    "torchrun_flag": "torchrun: error: ambiguous option: --nproc could match --nproc-per-node, --nproc_per_node",
    "torchrun_flag2": "ValueError: Unsupported nproc_per_node value: two",
    "ty": "Missing from ty.py: --data STR (required)",
    "ty_type": "Error parsing --lr: could not convert string to float: 'abc'",
    "ty_unknown": "Unrecognized options: --rate, 3",
    "typer_usage": "Invalid value for '--lr': Input should be a valid number, unable to parse string as a number",
    "typer_usage2": "No such option: --rate (Possible options: --lr, --steps)",
    # Shells and programs
    "bash_denied": "bash: line 1: ./noexec.sh: Permission denied",
    "bash_nofile": "bash: line 1: cd: /data/imagenet: No such file or directory",
    "bash_notfound": "bash: line 1: pythn: command not found",
    "bash_script": "job.sh: line 3: modul: command not found",
    "cat_nofile": "cat: /data/imagenet/index.txt: No such file or directory",
    "cp_denied": "cp: cannot stat 'x': No such file or directory",
    "env_nofile": "env: ‘pythn’: No such file or directory",
    "exit_print": "Delete /home/ada/ckpt and start again.",
    "exit_text": "no training data in /data/imagenet: run prepare.py first",
    "git_fail": "fatal: repository '/data/none.git' does not exist",
    "py_dir": "/home/ada/venv/bin/python3: can't find '__main__' module in '/home/ada/'",
    "py_nofile": "/home/ada/venv/bin/python3: can't open file '/home/ada/trian.py': "
    "[Errno 2] No such file or directory",
    "py_nomodule": "/home/ada/venv/bin/python3: Error while finding module specification for 'trainer.main' "
    "(ModuleNotFoundError: No module named 'trainer')",
    "py_option": "unknown option --verison",
    "sh_notfound": "sh: 1: pythn: not found",
    "tar_gone": "tar: /data/imagenet.tar: Cannot open: No such file or directory",
}


@pytest.mark.parametrize(("name", "sentence"), SENTENCES.items(), ids=str)
def test_sentence_of_a_recorded_failure(name, sentence):
    assert explain_output(_text(name, "stderr"), _text(name, "stdout")).sentence == sentence


def test_every_recording_has_its_sentence():
    assert {path.stem for path in RECORDINGS.iterdir()} <= {*SENTENCES}


def _text(name, stream):
    path = RECORDINGS / f"{name}.{stream}"
    return path.read_text(encoding="utf-8") if path.exists() else ""


TRACEBACK = """\
Traceback (most recent call last):
  File "train.py", line 3, in <module>
    main()
ValueError: bad
"""


def prefixed(prefix):
    return "".join(f"{prefix}{line}\n" for line in TRACEBACK.splitlines())


@pytest.mark.parametrize(
    "prefix",
    [
        "[rank1]: ",
        "[default1]:[rank1]: ",
        "(load pid=15681) ",
        "\x1b[36m(RayTrainWorker pid=31, ip=10.0.0.2)\x1b[0m ",
        "[1,3]<stderr>:",
        "3: ",
        "2026-01-01 10:00:00,123 - trainer - ERROR - ",
        "[2026-01-01 10:00:00,123][main][ERROR] - ",
    ],
)
def test_a_prefix_of_every_line_is_no_part_of_the_error(prefix):
    found = explain_output(prefixed(prefix))
    assert found.sentence == "ValueError: bad"
    assert found.quote == TRACEBACK.rstrip("\n")


@pytest.mark.parametrize(
    ("stderr", "sentence"),
    [
        # The bar is not ended by a line break.
        (" 40%|####      | 4/10 [00:01<00:02,  3.1it/s]" + TRACEBACK, "ValueError: bad"),
        (TRACEBACK.replace("bad", "one") + TRACEBACK, "ValueError: bad"),
        # Two ranks by themselves: the first one.
        (
            "".join(
                f"[rank{n}]: {line}\n" for n in (0, 1) for line in TRACEBACK.replace("bad", f"at {n}").splitlines()
            ),
            "ValueError: at 0",
        ),
        (
            "[ERROR] [launch.py:325:sigkill_handler] ['python', 'x.py'] exits with return code = 1\n" + TRACEBACK,
            "ValueError: bad",
        ),
        (TRACEBACK + "srun: error: node1: task 0: Exited with exit code 1\n", "ValueError: bad"),
        (
            TRACEBACK + "mpirun detected that one or more processes exited with non-zero status, thus causing\n",
            "ValueError: bad",
        ),
        (TRACEBACK + "terminate called without an active exception\nAborted (core dumped)\n", "ValueError: bad"),
        (
            "slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2026-01-01T10:00:00 DUE TO TIME LIMIT ***\n",
            "slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2026-01-01T10:00:00 DUE TO TIME LIMIT ***",
        ),
        ("Epoch 3: loss 0.2\n 40%|####      | 4/10 [00:01<00:02,  3.1it/s]\n", ""),
        ("2026-01-01 10:00:00 INFO saved\nUserWarning: old\n", ""),
        ("", ""),
    ],
)
def test_sentence_of_an_output(stderr, sentence):
    assert explain_output(stderr).sentence == sentence


def test_the_last_lines_are_quoted_where_nothing_is_recognised():
    found = explain_output("".join(f"line {number}\n" for number in range(9)))
    assert (found.sentence, found.quote) == ("line 8", "line 4\nline 5\nline 6\nline 7\nline 8")
    assert explain_output("line 1\n", guess=False).sentence == ""


def test_what_a_job_prints_cannot_drive_the_terminal():
    found = explain_output(TRACEBACK.replace("bad", "\x1b]0;title\x07bad\x1b[31m"))
    assert found.sentence == "ValueError: bad"
    assert "\x1b" not in found.quote


def test_message_that_goes_on_after_a_comma_is_joined():
    text = 'Traceback (most recent call last):\n  File "/x/a.py", line 3, in <module>\n    load()\n'
    text += "ValueError: size mismatch: copying a shape [3] from checkpoint,\nthe current model has [4].\nmore\n"
    sentence = "ValueError: size mismatch: copying a shape [3] from checkpoint, the current model has [4]."
    assert explain_output(text).sentence == sentence
