"""A user's own scripts on a real cluster: steps as replicas, variables of the environment, chains by dependency."""

import pytest
from support.waiting import CLUSTER_PATIENCE, wait_until

from torchx_tui.backends.slurm.scheduler import SlurmScheduler
from torchx_tui.components.build import build_app
from torchx_tui.specs.status import AppState, is_terminal

pytestmark = pytest.mark.slow

STEPS = """#!/bin/sh
#SBATCH --ntasks=2 --nodes=2 --mem-per-cpu=32M --job-name=steps
srun --ntasks=1 --nodes=1 --output=first.log sh -c 'echo first'
srun --output=%x-%t-%s.log sh -c 'echo rank $SLURM_PROCID; exit 3'
"""
VALUES = '#!/bin/sh\n#SBATCH --mem-per-cpu=32M\necho "${GREETING:-hello}, ${WHO:?say who}"\n'


def ended(slurm, app_id):
    def look():
        described = slurm.describe(app_id)
        return described if described is not None and is_terminal(described.state) else None

    return wait_until(look, f"the end of {app_id}", CLUSTER_PATIENCE)


def test_steps_are_replicas(real, cluster, tmp_path):
    (tmp_path / "steps.sbatch").write_text(STEPS)
    app_id = cluster.run("sbatch", "--parsable", "steps.sbatch")
    ended(real, app_id)

    def look():
        # Accounting hears of the end of a step a moment later.
        described = real.describe(app_id)
        found = {
            status.role: [(each.state, each.exit_code) for each in status.replicas]
            for status in described.roles_statuses
        }
        return found if len(found) == 3 and all(state is not AppState.RUNNING for state, _ in found["step1"]) else None

    found = wait_until(look, "the steps", CLUSTER_PATIENCE)
    assert found["step0"] == [(AppState.SUCCEEDED, 0)]
    # What each task exited with is read from srun's messages.
    assert found["step1"] == [(AppState.FAILED, 3)] * 2
    assert [*real.log_iter(app_id, "step0", 0)] == ["first\n"]
    assert [[*real.log_iter(app_id, "step1", rank)] for rank in (0, 1)] == [["rank 0\n"], ["rank 1\n"]]


def test_variables_reach_the_job(real, cluster, tmp_path):
    (tmp_path / "values.sbatch").write_text(VALUES)
    app = build_app("values.sbatch", {"GREETING": "a, b=c\n$d", "WHO": "you"})
    app_id = real.submit(app, {})
    assert ended(real, app_id).state is AppState.SUCCEEDED
    assert "".join(real.log_iter(app_id, "batch", 0)) == "a, b=c\n$d, you\n"


def test_a_chain_is_known_also_by_a_new_session(real, cluster, tmp_path, monkeypatch):
    wait = ("--parsable", "--mem-per-cpu=32M", "--job-name=link", "--output=/dev/null")
    first = cluster.run("sbatch", *wait, "--wrap=true")
    second = cluster.run("sbatch", *wait, f"--dependency=afterany:{first}", "--wrap=true")
    third = cluster.run("sbatch", *wait, "-d", "singleton", "--wrap=true")
    ended(real, third)
    # Accounting hears of a job a moment later.
    wait_until(lambda: "singleton" in cluster.run("sacct", "-nXP", "--format=SubmitLine"), "its command")
    # The answers that sessions share are asked for anew, history too.
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    fresh = SlurmScheduler("torchx", interval=0.5, quick_interval=0.2)
    try:
        expected = {second: [first], third: [second]}
        wait_until(lambda: {row.app_id: row.after for row in fresh.list() if row.after} == expected, "the chain")
    finally:
        fresh.close()
