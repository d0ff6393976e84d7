"""Components and `.torchxconfig` of another user: refused without a terminal, asked about on one."""

import os

import pytest
from support.component_files import ComponentFile
from support.terminal import COMMAND, Terminal

from torchx_tui.base.trust import trust_folder, trusted_list

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")

JOB = """
def job(msg: str = "hi") -> AppDef:
    \"\"\"Do.\"\"\"
    return AppDef("job", [Role("r", "", entrypoint="echo", args=[msg])])
"""
DRYRUN = ("dryrun", "-s", "local_cwd", "jobs.py:job")
OTHER = 12345


@pytest.fixture
def folder(tmp_path):
    """Return a folder with a component and a `.torchxconfig`; a test gives one of them away."""
    ComponentFile(tmp_path / "jobs.py").write(JOB)
    (tmp_path / ".torchxconfig").write_text("[component:jobs.py:job]\nmsg = configured\n")
    return tmp_path


@pytest.mark.parametrize("name", ["jobs.py", ".torchxconfig"])
def test_file_of_another_user_is_refused_without_terminal(command, folder, name):
    os.chown(folder / name, OTHER, OTHER)
    ended = command(*DRYRUN)
    assert (ended.code, ended.out) == (2, "")
    assert f"{folder / name} belongs to the user {OTHER}, so it is not used." in ended.err
    assert f"add this folder as a line to {trusted_list()}" in ended.err
    trust_folder(folder)
    ended = command(*DRYRUN)
    assert (ended.code, "configured" in ended.out) == (0, True)


def test_torchxconfig_of_another_user_can_be_ignored(command, folder):
    os.chown(folder / ".torchxconfig", OTHER, OTHER)
    ended = command(*DRYRUN, "--ignore-config")
    assert (ended.code, "configured" in ended.out) == (0, False)


def test_torchxconfig_that_the_environment_names_is_used(command, folder, monkeypatch):
    os.chown(folder / ".torchxconfig", OTHER, OTHER)
    monkeypatch.setenv("TORCHXCONFIG", str(folder / ".torchxconfig"))
    assert "configured" in command(*DRYRUN).out


def test_listing_and_doctor_say_that_torchxconfig_is_not_used(command, folder):
    (folder / ".torchxconfig").write_text("[cli:list]\nscheduler = gone\n")
    os.chown(folder / ".torchxconfig", OTHER, OTHER)
    ended = command("list", "-s", "local_cwd")
    assert (ended.code, "so it is not used" in ended.err) == (0, True)
    assert "so it is not used" in command("doctor").out


@pytest.mark.parametrize("name", ["jobs.py", ".torchxconfig"])
def test_terminal_asks_once(folder, name):
    os.chown(folder / name, OTHER, OTHER)
    question = f"{folder / name} belongs to the user {OTHER}.*Trust everything in {folder} from now on"
    for answer, code in (("n", 2), ("y", 0), ("", 0)):
        with Terminal([COMMAND, *DRYRUN], size=(400, 40), cwd=folder) as shell:
            if answer:
                shell.wait(question)
                shell.press(answer, "enter")
            assert shell.wait_for_end() == code
            assert ("configured" in shell.text(), "from now on" in shell.text()) == (code == 0, answer != "")
        assert trusted_list().exists() == (code == 0)
