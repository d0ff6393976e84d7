"""Jobs that were queued behind others: what is remembered of it, and what it is read from."""

import pytest
from support.tables import tables

table = tables(__file__)


def job(job_id, dependency="(null)", **more):
    """Return what differs of a job that waits."""
    waits = {"State": "PENDING", "StartTime": "N/A", "Reason": "Dependency"} if dependency != "(null)" else {}
    at = {"SubmitTime": str(1795258000 + job_id)}
    return {"JobID": str(job_id), "Dependency": dependency, **waits, **at, **more}


def after(slurm):
    return {row.app_id: row.after for row in slurm.list() if row.after}


@table("dependency", "dependency expected")
def test_a_dependency(slurm, commands, dependency, expected):
    commands.queue(job(7), job(8), job(9, dependency))
    assert after(slurm) == ({"9": expected} if expected else {})


def test_another_users_job_is_no_link(slurm, commands):
    commands.queue(job(7, UserName="bob"), job(9, "afterok:7"))
    assert after(slurm) == {}


@pytest.mark.parametrize("dependency", ["afterok:7(unfulfilled)", "singleton(unfulfilled)"])
def test_a_dependency_that_is_fulfilled_is_remembered(slurm, commands, dependency):
    commands.queue(job(7), job(8, dependency))
    assert after(slurm) == {"8": ["7"]}
    commands.queue(job(7, State="COMPLETED", EndTime="1795258050"), job(8))
    assert after(slurm) == {"8": ["7"]}
    # Ids begin anew: another job has no part in it.
    commands.queue(job(7), job(8, SubmitTime="1799999999"))
    assert after(slurm) == {}


def test_the_command_of_a_job_tells_it(slurm, commands):
    commands.accounted(
        {"JobIDRaw": "7"},
        {"JobIDRaw": "8", "State": "RUNNING", "End": "Unknown", "SubmitLine": "sbatch -d afterok:7 train.sh"},
        {"JobIDRaw": "9", "SubmitLine": "sbatch --dependency=afterany:8 train.sh"},
    )
    commands.queue(job(8))
    assert after(slurm) == {"8": ["7"], "9": ["8"]}
