"""What `log` and `run` print of logs, into pipes and on terminals, and what a job reads from the terminal."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys

import pytest
from support.shell import shell
from support.terminal import COMMAND, Terminal
from support.waiting import PATIENCE, wait_until

RUN = [COMMAND, "run", "-s", "local_cwd"]
ODD = b"bad \xff\xfe\r\n 10%\r 20%\r\n\x1b[1mbold\x1b[0m\x00\ttab\n\n\xc3\xa9 no end"
WRITE_ODD = f"import sys; sys.stdout.buffer.write({ODD!r})"
PREFIXED = b"python/0 " + ODD.replace(b"\n", b"\npython/0 ")
PDB = """
def double(x):
    breakpoint()
    return 2 * x
print("result", double(21), flush=True)
"""


def python(code: str, *flags: str) -> list[str]:
    """Return the command line that runs a program text as a job of one replica."""
    return [*RUN, *flags, "utils.python", "-c", code]


def sh(script: str, *flags: str) -> list[str]:
    """Return the command line that runs a script of the shell as a job."""
    return [*RUN, *flags, "utils.sh", "--", "sh", "-c", script]


def ended_job(code: str) -> str:
    """Run a program as a job, wait for its end and return its handle."""
    ran = subprocess.run(
        python(code), stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=PATIENCE
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.strip()


def log_bytes(*arguments: str) -> bytes:
    """Return what `log` prints into a pipe."""
    return subprocess.run([COMMAND, "log", *arguments], capture_output=True, check=True, timeout=PATIENCE).stdout


@pytest.mark.parametrize("stream", ["stdout", "combined"])
def test_log_into_a_pipe_keeps_every_byte(stream):
    handle = ended_job(WRITE_ODD)
    assert log_bytes(handle, "--streams", stream) == PREFIXED


def test_run_into_a_pipe_keeps_every_byte_of_a_line():
    ran = subprocess.run(python(WRITE_ODD), stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE)
    assert ran.stderr == PREFIXED + b"\n"


def test_log_regex_into_a_pipe_keeps_every_byte():
    assert log_bytes(ended_job(WRITE_ODD), "--regex", "bad|20") == b"python/0 bad \xff\xfe\r\npython/0  10%\r 20%\r\n"


@pytest.mark.parametrize(
    ("count", "flags", "lines"),
    [
        ("2", [], [b"399", b"end"]),
        ("2", ["--streams", "stdout"], [b"399", b"end"]),
        ("2", ["--regex", "^1?7$"], [b"7", b"17"]),
        ("0", [], []),
        ("1000", [], [b"%d" % number for number in range(400)] + [b"end"]),
    ],
)
@pytest.mark.parametrize("follow", [[], ["--tail"]], ids=["", "following"])
def test_log_prints_the_last_lines(count, flags, lines, follow):
    handle = ended_job("[print(number) for number in range(400)]; print('end', end='')")
    printed = log_bytes(handle, "-n", count, *flags, *follow).splitlines()
    assert printed == [b"python/0 " + line for line in lines]


def test_log_follows_behind_the_last_lines(tmp_path):
    go = tmp_path / "go"
    wait = f"import os,time\nwhile not os.path.exists({str(go)!r}): time.sleep(.01)"
    code = f"print('a'); print('b', flush=True)\n{wait}\nprint('c')"
    handle = subprocess.run(python(code, "--detach"), capture_output=True, text=True, timeout=PATIENCE).stdout.strip()
    command = [COMMAND, "log", "--tail", "-n", "1", handle]
    wait_until(lambda: log_bytes(handle).endswith(b"b\n"), "two lines")
    with subprocess.Popen(command, stdout=subprocess.PIPE) as followed:
        assert followed.stdout is not None
        assert followed.stdout.readline() == b"python/0 b\n"
        go.touch()
        assert followed.stdout.read() == b"python/0 c\n"


def test_log_json_keeps_carriage_returns():
    lines = [json.loads(line)["line"] for line in log_bytes(ended_job(WRITE_ODD), "--json").splitlines()]
    assert lines[:2] == ["bad \ufffd\ufffd\r", " 10%\r 20%\r"]
    assert lines[-1] == "é no end"


def test_log_on_a_terminal_prints_the_last_frame():
    frames = "import sys; sys.stderr.write(''.join(f'\\r{k:>9} of 99999' for k in range(100000)) + '\\nnext\\n')"
    handle = ended_job(frames)
    with Terminal([COMMAND, "log", handle]) as app:
        app.wait(r"^python/0     99999 of 99999\npython/0 next$")
        assert app.wait_for_end() == 0
        assert len(app.raw) < 1000


def test_tail_shows_an_unfinished_line_and_redraws_it(tmp_path):
    code = (
        "import sys, time, pathlib\n"
        f"go = pathlib.Path({str(tmp_path)!r})\n"
        "def wait(name):\n    while not (go / name).exists(): time.sleep(0.02)\n"
        "for step in ('one', 'two', 'three'):\n"
        "    sys.stderr.write(f'\\r\\x1b[2J{step} ...'); sys.stderr.flush(); wait(step)\n"
        "sys.stderr.write('\\nend\\n')"
    )
    handle = shell("run", "-s", "local_cwd", "--detach", "utils.python", "-c", code).stdout.strip()
    with Terminal([COMMAND, "log", "--tail", handle]) as app:
        for step in ("one", "two", "three"):
            app.wait(rf"^python/0 {step} \.\.\.( *)$")
            (tmp_path / step).touch()
        app.wait("^python/0 three ...\npython/0 end$")
        assert app.wait_for_end() == 0
    assert b"\x1b[2J" not in app.raw


def test_wide_unfinished_line_stays_in_its_row(tmp_path):
    code = (
        "import sys, time, pathlib\n"
        "sys.stderr.write('a' * 95 + '\u4e2d' * 30); sys.stderr.flush()\n"
        f"while not pathlib.Path({str(tmp_path / 'go')!r}).exists(): time.sleep(0.02)\n"
        "sys.stderr.write('b\\n')"
    )
    with Terminal(python(code), size=(80, 30)) as app:
        app.wait(r"^python/0 a{70}$")
        (tmp_path / "go").touch()
        app.wait(r"^python/0 a{71}\na{24}(\u4e2d *){28}\n(\u4e2d *){2}b$")
        assert app.wait_for_end() == 0


# Standard input


def test_run_passes_stdin_to_one_replica():
    ran = subprocess.run([*RUN, "utils.sh", "cat"], input=b"one\ntwo\n", capture_output=True, timeout=PATIENCE)
    assert (ran.returncode, ran.stderr) == (0, b"sh/0 one\nsh/0 two\n")


def test_run_leaves_stdin_that_its_job_does_not_read():
    script = '"$@" >&2; cat'
    ran = subprocess.run(
        ["sh", "-c", script, "sh", *sh("true")], input=b"the rest\n", capture_output=True, timeout=PATIENCE
    )
    assert (ran.returncode, ran.stdout) == (0, b"the rest\n")


@pytest.mark.parametrize("flags", [["--detach"], ["--set", "sh.num_replicas=2"]])
def test_other_jobs_have_no_stdin(flags):
    argv = sh("cat; echo end", *flags)
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as run:
        assert run.stdout is not None
        handle = run.stdout.readline().decode().strip()
        # The pipe is open still: a job that reads it would not end.
        assert shell("wait", handle).returncode == 0
    lines = log_bytes(handle).splitlines()
    assert {line.partition(b" ")[2] for line in lines} == {b"end"}


def test_pdb_can_be_used_in_run():
    with Terminal(python(PDB)) as app:
        app.wait(r"^python/0 \(Pdb\)( *)$")
        app.press("p x", "enter", wait=r"^python/0 \(Pdb\) p x\n21\npython/0 \(Pdb\)( *)$")
        app.press("c", "enter", wait=r"^python/0 \(Pdb\) c\nresult 42$")
        assert app.wait_for_end() == 0


def test_ctrl_d_ends_the_input_of_a_job():
    with Terminal(sh("cat; echo end")) as app:
        app.wait("^local_cwd://")
        app.press("text", "enter", "ctrl+d", wait="^sh/0 text\nsh/0 end$")
        assert app.wait_for_end() == 0


def test_ctrl_c_at_a_prompt_cancels_the_job():
    with Terminal(python("input('really? ')")) as app:
        app.wait(r"^python/0 really\?( *)$")
        app.press("ctrl+c", wait="^torchx-tui: cancelled local_cwd://")
        assert app.wait_for_end() == 130


@pytest.mark.skipif(sys.platform != "linux", reason="needs the shell's job control")
def test_ctrl_z_suspends_the_job_that_reads_the_terminal():
    with Terminal(["bash", "--norc", "--noprofile", "-i"], environ={"PS1": "> ", "PATH": os.environ["PATH"]}) as app:
        app.press(shlex.join(python("print('got', input('name? '))")), "enter", wait=r"^python/0 name\?( *)$")
        app.press("ctrl+z", wait="Stopped")
        app.press("echo a$((1 + 1))", "enter", wait="^a2$")
        app.press("fg", "enter", wait="^> fg$")
        app.press("me", "enter", wait="got me$")
        app.press("exit", "enter")
        assert app.wait_for_end() == 0


@pytest.mark.skipif(sys.platform != "linux", reason="needs the shell's job control")
def test_job_in_the_background_leaves_the_terminal_alone():
    with Terminal(["bash", "--norc", "--noprofile", "-i"], environ={"PS1": "> ", "PATH": os.environ["PATH"]}) as app:
        app.press(f"{shlex.join(sh('cat; echo no input'))} &", "enter", wait="sh/0 no input")
        app.press("echo a$((1 + 1))", "enter", wait="^a2$")
