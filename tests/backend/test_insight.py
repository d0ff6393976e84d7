"""What a launch adds to a role's environment, so that ranks can be asked why they hang."""

import subprocess
from pathlib import Path

import pytest

from torchx_tui.backends.shared.insight import HOOK, insight_environment, insight_exports


def test_ranks_know_where_to_answer():
    assert insight_environment(Path("/run/1"), {}) == {
        "TORCHX_TUI_INSIGHT": "/run/1",
        "TORCH_FR_BUFFER_SIZE": "2000",
        "TORCH_FR_DUMP_TEMP_FILE": "/run/1/fr_",
        "TORCH_NCCL_DEBUG_INFO_TEMP_FILE": "/run/1/fr_",
        "TORCH_NCCL_DEBUG_INFO_PIPE_FILE": "/run/1/fr_pipe_",
        "PYTHONPATH": str(HOOK),
    }


@pytest.mark.parametrize(
    ("given", "differs"),
    [
        ({"PYTHONPATH": "/mine"}, {"PYTHONPATH": f"{HOOK}:/mine"}),
        ({"TORCH_FR_BUFFER_SIZE": "5"}, {"TORCH_FR_BUFFER_SIZE": "5"}),
        ({"TORCH_FR_DUMP_TEMP_FILE": ""}, {"TORCH_FR_DUMP_TEMP_FILE": ""}),
        ({"TORCHX_TUI_INSIGHT": "0"}, None),
    ],
)
def test_users_values_stay_in_python_and_shell(tmp_path, given, differs):
    folder = tmp_path / "a b"
    wanted = given if differs is None else {**insight_environment(folder, {}), **differs}
    assert {**given, **insight_environment(folder, given)} == wanted
    script = "\n".join([*insight_exports('"$HERE/a b"'), "env -0"])
    around = {"PATH": "/usr/bin:/bin", "HERE": str(tmp_path)}
    ran = subprocess.run(["sh", "-c", script], env={**around, **given}, capture_output=True, text=True, check=True)
    found = dict(line.split("=", 1) for line in ran.stdout.split("\0") if line)
    of_shell = {*around, "PWD", "_", "OLDPWD", "SHLVL"}
    assert {name: value for name, value in found.items() if name not in of_shell} == wanted
    assert folder.exists() == (differs is not None)
    assert differs is None or folder.stat().st_mode & 0o777 == 0o700
