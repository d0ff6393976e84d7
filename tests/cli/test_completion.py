"""Completion: what each shell is told to do, and what it is answered."""

import subprocess

import pytest
from support.completion import completed
from support.component_files import ComponentFile

from torchx_tui.cli.commands import COMMANDS


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_shell_gets_its_text(command, shell):
    ended = command("completion", shell)
    assert (ended.code, "torchx-tui" in ended.out, "_ARGCOMPLETE" in ended.out) == (0, True, True)


def test_bash_takes_the_text(command, tmp_path):
    (tmp_path / "completion.bash").write_text(command("completion", "bash").out)
    told = subprocess.run(
        ["bash", "--norc", "-c", "source ./completion.bash && complete -p torchx-tui"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (told.returncode, "_python_argcomplete torchx-tui" in told.stdout) == (0, True)


def test_commands_flags_and_choices(tmp_path):
    assert {"run", "runopts"} == completed("torchx-tui ru", tmp_path)
    # Flags are offered where one is begun.
    assert completed("torchx-tui ", tmp_path) == set(COMMANDS)
    assert {"--profile", "--theme"} <= completed("torchx-tui --", tmp_path)
    assert {"--regex", "--roles"} & completed("torchx-tui log --re", tmp_path) == {"--regex"}
    assert completed("torchx-tui log --streams s", tmp_path) == {"stdout", "stderr"}
    assert completed("torchx-tui run -s local_", tmp_path) == {"local_docker", "local_cwd"}


def test_components_and_their_flags(tmp_path):
    ComponentFile(tmp_path / "jobs.py").write('def mine(size: int) -> AppDef:\n    """Do."""\n    return AppDef("a")\n')
    assert {"utils.echo", "dist.ddp", "jobs.py:mine"} <= completed("torchx-tui run ", tmp_path)
    assert {"--msg", "--num_replicas", "--wait", "--detach"} <= completed("torchx-tui run utils.echo --", tmp_path)
    assert completed("torchx-tui run jobs.py:mine --si", tmp_path) == {"--size"}


def test_handles_and_profiles(command, tmp_path, user_config):
    handle = command("run", "-s", "local_cwd", "utils.echo").out.strip()
    assert completed("torchx-tui status local_cwd:", tmp_path) == {handle}
    user_config.write_text("[profiles.small]\n[profiles.large]\n")
    assert completed("torchx-tui --profile ", tmp_path) == {"small", "large"}
