"""What people get wrong: every mistake is answered in words, nothing is launched, and what was typed is kept."""

import json
import os
import re
import socket
import subprocess
from contextlib import suppress

import pytest
from actions import fill, open_form, submit, wait_top
from support.component_files import ComponentFile
from support.shell import jobs, launches, shell

HEADER = "import sys\nfrom torchx_tui.specs import AppDef, Role\n"
GOOD = '''
def job(size: int, flag: bool = False, replicas: int = 1) -> AppDef:
    """Do a job.

    Args:
        size: how large
        flag: whether
        replicas: how many
    """
    return AppDef("job", roles=[Role("r", image="", entrypoint="true", num_replicas=replicas)])
'''
SLASH = '''
def job(size: int = 0, flag: bool = False, replicas: int = 1) -> AppDef:
    """Do a job."""
    return AppDef("a/b", roles=[Role("r", image="", entrypoint="true")])
'''


@pytest.fixture
def component_file(tmp_path):
    return ComponentFile(tmp_path / "jobs.py")


def assert_nothing_launched():
    assert jobs() == {}
    assert launches() == []


# A file that cannot be run

BROKEN = {
    "sys.exit": ("sys.exit(3)\n" + GOOD, r"jobs\.py:3: it called sys\.exit\(3\)"),
    "raises": ("raise ValueError('no data here')\n" + GOOD, r"jobs\.py:3: ValueError: no data here"),
    "interrupt": ("raise KeyboardInterrupt\n" + GOOD, r"jobs\.py:3: KeyboardInterrupt"),
}
SYNTAX = "def job(size: int) -> AppDef:\n    return AppDef(\n"


@pytest.mark.slow
def test_file_with_a_syntax_error_cannot_be_chosen(terminal, component_file):
    component_file.write(SYNTAX, HEADER)
    app = terminal()
    app.wait("No jobs yet")
    app.press("n")
    app.wait("Component")
    app.press("jobs")
    app.wait(r"(?s)This component cannot be used.*syntax error")
    app.press("enter")
    app.wait("jobs.py: syntax error")
    assert "Run options" not in app.text()
    app.press("escape")
    app.wait("No jobs yet")
    assert_nothing_launched()


@pytest.mark.slow
def test_a_file_that_raises_leaves_the_form_as_it_is(terminal, component_file):
    component_file.write(next(iter(BROKEN.values()))[0], HEADER)
    app = terminal()
    app.wait("No jobs yet")
    open_form(app, "jobs.py:job")
    for number, (text, words) in enumerate(BROKEN.values()):
        component_file.write(text, HEADER)
        fill(app, {"size": f"7{number}"})
        # Long paths are wrapped.
        app.wait(
            lambda shown, words=words: re.search(
                words, "".join(line.partition("│")[0].strip() for line in shown.splitlines())
            )
        )
        app.wait("the request could not be made")
        app.press("ctrl+s")
        app.wait("Not launched")
        assert re.search(rf"size \*\s+7{number}\b", app.text())
        assert_nothing_launched()
    # The file mended, the same form launches.
    component_file.write(GOOD, HEADER)
    fill(app, {"size": "8"})
    submit(app)
    wait_top(app, "Succeeded")


def test_form_keeps_wrong_input(terminal, component_file):
    component_file.write(GOOD, HEADER)
    app = terminal()
    app.wait("No jobs yet")
    open_form(app, "jobs.py:job")
    app.wait("size is missing")
    app.press("ctrl+s")
    app.wait("Not launched: size: ")
    fill(app, {"size": "big"})
    app.wait("`big` is not a whole number")
    app.press("ctrl+s")
    app.wait("Not launched: size: ")
    fill(app, {"size": "7", "replicas": "-1"})
    app.wait("-1 replicas: at least 1")
    app.press("ctrl+s")
    app.wait("Not launched")
    text = app.text()
    assert re.search(r"size \*\s+7\b", text)
    assert re.search(r"replicas\s+-1\b", text)
    assert_nothing_launched()
    # A name with a slash is known once the component was run.
    component_file.write(SLASH, HEADER)
    app.press("escape")
    app.wait("Component")
    app.press("escape")
    app.wait("No jobs yet")
    open_form(app, "jobs.py:job")
    app.wait("name a/b")
    app.press("ctrl+s")
    app.wait("Not launched")
    assert_nothing_launched()


# A program that is not there


@pytest.mark.slow
def test_an_entrypoint_that_does_not_exist_fails_in_words(terminal):
    app = terminal()
    app.wait("No jobs yet")
    open_form(app, "utils.binary")
    fill(app, {"entrypoint": "no-such-program"})
    # Warned of before, launched all the same: the program may come.
    app.wait("no such command: no-such-program")
    submit(app)
    wait_top(app, "Failed")
    app.wait("no such command: no-such-program")
    app.press("enter")
    app.wait(r"(?s)Why.*no such command: no-such-program")


# Ports


@pytest.fixture
def taken_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield listener.getsockname()[1]


@pytest.mark.slow
def test_a_taken_port_is_warned_of_before_the_launch(terminal, taken_port):
    told = shell(
        "run", "--dryrun", "dist.torchrun", "--script", "x.py", "-j", "2x2", "--rdzv_port", str(taken_port)
    )  # fmt: skip
    assert told.returncode == 0
    assert f"port {taken_port}" in told.stderr
    assert "taken" in told.stderr
    app = terminal(size=(120, 60))
    app.wait("No jobs yet")
    open_form(app, "dist.torchrun")
    fill(app, {"script": "x.py", "j": "2x2", "rdzv_port": str(taken_port)})
    app.wait(rf"port {taken_port}.* is taken")
    assert_nothing_launched()


# Folders that cannot be written


@pytest.fixture
def mounted(tmp_path, require):
    """Return a function that mounts something on a folder of its own, or skips."""
    made = []

    def mount(*arguments: str) -> str:
        folder = tmp_path / f"mount{len(made)}"
        folder.mkdir()
        command = ["mount", *[str(folder) if argument == "HERE" else argument for argument in arguments], str(folder)]
        done = subprocess.run(command, capture_output=True, text=True, check=False) if os.geteuid() == 0 else None
        words = done.stderr.strip() if done else "only root may"
        require("mount", done is not None and done.returncode == 0, f"this machine lets no test mount: {words}")
        made.append(folder)
        return str(folder)

    yield mount
    for folder in made:
        subprocess.run(["umount", "--lazy", str(folder)], check=False)


@pytest.fixture
def read_only_folder(mounted):
    folder = mounted("--bind", "HERE")
    subprocess.run(["mount", "-o", "remount,bind,ro", folder], check=True)
    return folder


@pytest.fixture
def full_folder(mounted):
    folder = mounted("-t", "tmpfs", "-o", "size=64k", "tmpfs")
    with open(f"{folder}/ballast", "wb", buffering=0) as ballast:
        fill_up(ballast)
    return folder


def fill_up(ballast):
    with suppress(OSError):
        while ballast.write(bytes(4096)):
            pass


@pytest.mark.slow
def test_a_log_folder_that_cannot_be_written(terminal, read_only_folder, full_folder):
    told = shell("run", "-cfg", f"log_dir={read_only_folder}", "utils.echo", "--msg", "hello")
    assert told.returncode == 2
    assert "Read-only file system" in told.stderr
    assert read_only_folder in told.stderr
    assert "Traceback" not in told.stderr
    assert jobs() == {}
    app = terminal(size=(120, 60))
    app.wait("No jobs yet")
    open_form(app, "utils.echo")
    fill(app, {"msg": "kept"})
    for folder, words in ((read_only_folder, "Read-only file system"), (full_folder, "No space")):
        fill(app, {"log_dir": folder})
        app.wait("ready")
        app.press("ctrl+s")
        app.wait(f"Not launched.*{words}")
        assert re.search(r"msg\s+kept\b", app.text())
        assert jobs() == {}
    # The launches that failed are in the history with their reason, never as jobs.
    assert all(json.loads(path.read_bytes())["error"] for path in launches())


def test_a_state_folder_that_cannot_be_written(terminal, read_only_folder):
    environ = {"XDG_STATE_HOME": read_only_folder}
    told = shell("run", "utils.echo", "--msg", "hello", environ=environ)
    assert told.returncode == 2
    assert "Read-only file system" in told.stderr
    assert "nothing was launched" in told.stderr
    app = terminal(environ=environ, size=(156, 40))
    app.wait("cannot be written")
    open_form(app, "utils.echo")
    fill(app, {"msg": "kept"})
    app.wait("ready")
    app.press("ctrl+s")
    app.wait("Not launched.*nothing was launched")
    assert re.search(r"msg\s+kept\b", app.text())
