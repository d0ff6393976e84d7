"""The request: options on the command line, the script on stdin, secrets on neither; and the script itself, run."""

import os
import re
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from torchx_tui.backends.shared.insight import HOOK
from torchx_tui.backends.slurm.script import launch_in
from torchx_tui.specs.batch_script import BatchScript
from torchx_tui.specs.errors import AppDefError, InvalidRunConfigException, SchedulerError
from torchx_tui.specs.resources import Resource
from torchx_tui.specs.roles import AppDef, Role, macros

ODD = "a,b c='q\"$HOME `x` \\ \n\ttwo\nEOF\N{SNOWMAN} *"


def role(name="trainer", **changes):
    changes.setdefault("resource", Resource(cpu=2, gpu=0, memMB=100))
    changes.setdefault("entrypoint", "true")
    return Role(name, changes.pop("image", ""), **changes)


def command(slurm, *roles, name="job", **cfg):
    return slurm.submit_dryrun(AppDef(name, list(roles)), cfg).request.command


def test_the_command(slurm, commands, tmp_path):
    made = command(
        slurm, role(num_replicas=4, resource=Resource(cpu=3, gpu=2, memMB=100)), name="my job",
        partition="gpu,cpu", time="1:00:00", comment="two words", job_dir=str(tmp_path), gres="gpu:a100:2",
        sbatch_args=["--hold", "--nice=100"],
    )  # fmt: skip
    key = next(word for word in made if word.startswith("--comment="))
    # Sites charge by it: nothing is added.
    assert key == "--comment=two words"
    made.remove(key)
    assert made[:2] == ["sbatch", "--parsable"]
    assert {*made[2:]} == {
        "--job-name=my job", f"--chdir={tmp_path}", "--output=slurm-%j.out", "--open-mode=append", "--ntasks=4",
        "--cpus-per-task=3", "--mem-per-cpu=34M", "--gpus-per-task=2", "--requeue", "--partition=gpu,cpu",
        "--time=1:00:00", "--gres=gpu:a100:2", "--hold", "--nice=100",
    }  # fmt: skip


def test_one_allocation_unless_resources_differ(slurm):
    small, large = Resource(cpu=1, gpu=0, memMB=1), Resource(cpu=4, gpu=1, memMB=1)
    made = command(slurm, role("a", resource=small, num_replicas=2), role("b", resource=small))
    assert ":" not in made
    assert "--ntasks=3" in made
    made = command(slurm, role("a", resource=small), role("b", resource=large), role("c", resource=small))
    first, second = made[: made.index(":")], made[made.index(":") + 1 :]
    assert {"--ntasks=2", "--cpus-per-task=1"} < {*first}
    assert {"--ntasks=1", "--cpus-per-task=4", "--gpus-per-task=1"} < {*second}
    roles = [role("a", resource=small), role("b", resource=large), role("c", resource=small)]
    script = slurm.submit_dryrun(AppDef("job", roles), {}).request.script
    assert re.findall(r"--job-name=(\w) --het-group=(\d)", script) == [("a", "0"), ("b", "1"), ("c", "0")]


def test_no_memory_where_nodes_do_not_name_theirs(slurm, commands):
    commands.answer("sinfo", "\x1emain*\x1fup\x1f3\x1f1\x1finfinite\n\x1ebig\x1fup\x1f3\x1f4000\x1f1-00:00:00\n")
    assert not [word for word in command(slurm, role()) if word.startswith("--mem")]
    assert [word for word in command(slurm, role(), partition="big") if word.startswith("--mem")]


@pytest.mark.parametrize("text", ["--output=x", "--array=1", "--wrap=x", "-p main", "rm", "--comment=x", "--test-only"])
def test_options_that_cannot_be_given_so(slurm, text):
    with pytest.raises(InvalidRunConfigException, match="sbatch_args"):
        command(slurm, role(), sbatch_args=[text])


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"name": "a/b"}, "no slash"),
        ({"env": {"a b": "x"}}, "cannot be exported"),
        ({"args": ["\0"]}, "NUL"),
        ({"args": ["x" * 130_000]}, "put them into a file"),
    ],
)
def test_apps_that_are_refused(slurm, changes, match):
    with pytest.raises(AppDefError, match=match):
        command(slurm, role(**changes))


def test_an_array_has_one_replica(slurm):
    assert "--array=0-19%2" in command(slurm, role(), array="0-19%2")
    with pytest.raises(AppDefError, match="one role of one replica"):
        command(slurm, role(num_replicas=2), array="0-19%2")


def test_secrets(slurm, commands, own_home):
    app = AppDef(
        "job",
        [
            role(
                env={"HF_TOKEN": "hunter2", "PER_TOKEN": f"hunter2-{macros.replica_id}"}, args=["--password", "hunter2"]
            )
        ],
    )
    info = slurm.submit_dryrun(app, {})
    assert "hunter2" not in str(info)
    assert "HF_TOKEN" in str(info)
    assert slurm.schedule(info) == "7"
    # It reaches the job in the script, never a command line that others see.
    assert "hunter2" in commands.script
    assert not [call for call in commands.calls("sbatch") if "hunter2" in " ".join(call)]
    kept = [path for path in own_home.rglob("*") if path.is_file() and b"hunter2" in path.read_bytes()]
    assert [path.stat().st_mode & 0o777 for path in kept] == [0o600]


def test_a_refusal_is_slurms_sentence(slurm, commands):
    commands.answer("sbatch", err="sbatch: error: Batch job submission failed: Invalid qos specification\n", code=1)
    with pytest.raises(
        SchedulerError, match=r"^sbatch failed: Batch job submission failed: Invalid qos specification$"
    ):
        slurm.submit(AppDef("job", [role()]), {})


def test_the_launch_is_in_the_script(slurm, commands):
    slurm.submit(AppDef("job", [role(args=[ODD])]), {"partition": "main"})
    launch = launch_in(commands.script)
    assert launch is not None
    assert (launch["name"], launch["roles"], launch["cfg"]["partition"]) == ("job", [["trainer", 1, 0]], "main")


# What stands for srun: it runs each task as Slurm does, with its output in the file that is named.
_SRUN = """#!/bin/bash
trap 'kill $(jobs -p); exit 143' TERM
for word in "$@"; do
    case $word in
        --ntasks=*) tasks=${word#*=} ;;
        --output=*) out=${word#*=} ;;
        --error=*) err=${word#*=} ;;
        --*) ;;
        *) break ;;
    esac
    shift
done
code=0
for ((task = 0; task < tasks; task++)); do
    SLURM_PROCID=$task "$@" >"${out//%t/$task}" 2>"${err//%t/$task}" &
    wait $! || code=$?
done
exit $code
"""


@pytest.fixture
def run(slurm, tmp_path):
    """Return what runs the batch script of some roles, with programs in the place of srun and scontrol."""
    programs = {"srun": _SRUN, "scontrol": f'#!/bin/sh\necho "$@" >>"{tmp_path}/requeued"\n'}
    for name, text in programs.items():
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o700)

    def run_script(*roles, variables=(), **cfg):
        script = slurm.submit_dryrun(AppDef("job", list(roles)), cfg).request.script
        env = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "SLURM_JOB_ID": "7", "HOME": "/nowhere", **dict(variables)}
        return subprocess.run(
            ["bash"], input=script, text=True, cwd=tmp_path, env=env, capture_output=True, check=False
        )

    return run_script


needs_bash = pytest.mark.skipif(shutil.which("bash") is None, reason="the script is one of bash")


@needs_bash
def test_values_arrive_as_they_are(run, tmp_path):
    program = (
        "import os, sys; read = os.environ.get; "
        "print(repr([sys.argv[1:], read('ODD'), read('OWN'), read('TORCHX_TUI_TASK')]))"
    )
    made = role(
        entrypoint="python3", args=["-c", program, ODD, macros.app_id, f"x{macros.replica_id}y", "", "$HOME"],
        env={"ODD": ODD, "OWN": f"{ODD}-{macros.replica_id}"}, num_replicas=2,
    )  # fmt: skip
    ended = run(made)
    assert (ended.returncode, ended.stderr) == (0, "")
    for task in range(2):
        told = (tmp_path / f"slurm-7-trainer-{task}.out").read_text()
        assert told == repr([[ODD, "7", f"x{task}y", "", "$HOME"], ODD, f"{ODD}-{task}", None]) + "\n"


@needs_bash
def test_ranks_can_be_asked_why_they_hang(run, tmp_path):
    code = "import os; print(*(os.environ.get(name) for name in ('TORCHX_TUI_INSIGHT', 'TORCH_FR_BUFFER_SIZE', \
'TORCH_FR_DUMP_TEMP_FILE', 'PYTHONPATH')), sep='\\n')"
    asked = role("own", entrypoint="python3", args=["-c", code], env={"PYTHONPATH": "/mine"})
    left = role("left", entrypoint="python3", args=["-c", code], env={"TORCHX_TUI_INSIGHT": "0"})
    run(asked, left, variables={"TORCH_FR_BUFFER_SIZE": "5"})
    folder, size, dumps, path = (tmp_path / "slurm-7-own-0.out").read_text().splitlines()
    assert Path(folder).parts[-3:] == ("insight", "7", "own")
    assert Path(folder).stat().st_mode & 0o777 == 0o700
    assert (size, dumps, path) == ("5", f"{folder}/fr_", f"{HOOK}:/mine")
    assert (tmp_path / "slurm-7-left-0.out").read_text().splitlines() == ["0", "5", "None", "None"]


@needs_bash
def test_a_failure_ends_the_others_and_is_the_jobs(run, tmp_path):
    ended = run(role("a", entrypoint="sleep", args=["600"]), role("b", entrypoint="sh", args=["-c", "exit 3"]))
    assert (ended.returncode, (tmp_path / "requeued").exists()) == (3, False)


@needs_bash
@pytest.mark.parametrize(
    ("variables", "requeued"),
    [({}, True), ({"SLURM_RESTART_COUNT": "1"}, True), ({"SLURM_RESTART_COUNT": "2"}, False)],
)
def test_retries(run, tmp_path, variables, requeued):
    roles = (role("a", entrypoint="false", max_retries=2), role("b", entrypoint="true", max_retries=5))
    ended = run(*roles, variables=variables)
    assert (ended.returncode, (tmp_path / "requeued").exists()) == (1, requeued)


@needs_bash
def test_a_script_of_an_array(run, tmp_path):
    made = role(entrypoint="echo", args=[macros.replica_id, macros.app_id])
    run(made, array="3-4", variables={"SLURM_ARRAY_JOB_ID": "5", "SLURM_ARRAY_TASK_ID": "3"})
    assert (tmp_path / "slurm-5-trainer-3.out").read_text() == "3 5\n"


@pytest.mark.parametrize(
    ("settings", "options", "cfg", "given"),
    [
        ({}, (), {}, "--comment=torchx-tui:"),
        # Sites charge by the comment: one of the user's stays as it is.
        ({"comment": "charge:a"}, (), {}, ""),
        ({"comment": "charge:b"}, ("--comment=charge:b",), {}, "--comment=charge:b"),
        ({"comment": "charge:a"}, (), {"comment": "charge:c"}, "--comment=charge:c"),
    ],
)
def test_the_comment_of_a_script(slurm, settings, options, cfg, given):
    own = BatchScript("#!/bin/sh\ntrue\n", options, settings=settings)
    made = slurm.submit_dryrun(AppDef("train", [own.role()]), cfg).request.command
    last = [word for word in made if word.startswith("--comment=")][-1:]
    assert [word[: len(given)] for word in last] == ([given] if given else [])
    assert given.endswith(":") or last == ([given] if given else [])


def test_a_launch_with_a_comment_of_the_users_is_known_again(slurm, commands):
    slurm.schedule(slurm.submit_dryrun(AppDef("job", [role("worker")]), {"comment": "charge:a"}))
    commands.queue({"Comment": "charge:a", "SubmitTime": f"{time.time():.0f}", "UserName": "alice"})
    (row,) = slurm.list()
    assert (row.name, row.foreign) == ("job", False)
