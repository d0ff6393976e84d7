"""Jobs that wait on a real cluster, each for a reason of its own; limits, reservations and nodes are real ones."""

import time

import pytest
from support.waiting import PATIENCE, wait_until

from torchx_tui.backends.slurm import cluster as cluster_module

pytestmark = pytest.mark.slow

PARTITIONS = {
    "short": "Nodes=n1 MaxTime=1",
    "single": "Nodes=n[1-3] MaxNodes=1",
    "closed": "Nodes=n1 State=DOWN",
    "asleep": "Nodes=n1 State=DOWN",
    "shrunk": "Nodes=n[1-2] State=DOWN",
    "quiet": "Nodes=n[1-2]",
    "broken": "Nodes=n3",
    "arrays": "Nodes=n[1-2]",
}
ACCOUNTS = {
    "jobs": "GrpJobs=1",
    "cpus": "GrpTRES=cpu=2",
    "walls": "MaxWall=30",
    "large": "MaxTRES=cpu=2",
    "running": "GrpTRESRunMins=cpu=100",
    "single": "MaxJobs=1",
}
QOS = {
    "user": "MaxTRESPerUser=cpu=2",
    "wall": "MaxWall=10",
    "job": "MaxTRESPerJob=cpu=2",
    "most": "MaxJobsPerUser=1",
    "group": "GrpJobs=1",
    "groupcpu": "GrpTRES=cpu=2",
}


@pytest.fixture
def submit(cluster):
    """Return a function that submits a job with options of sbatch; it runs for longer than any test."""

    def act(*options):
        return cluster.run("sbatch", "--parsable", "--time=30", *options, "--wrap=sleep 1800")

    return act


@pytest.fixture
def limited(cluster):
    """Make partitions, accounts and QOS with limits."""
    for name, options in PARTITIONS.items():
        cluster.run("scontrol", "create", f"PartitionName={name}", *options.split())
    for name, limits in ACCOUNTS.items():
        cluster.run("sacctmgr", "-i", "add", "account", name, *limits.split())
        cluster.run("sacctmgr", "-i", "add", "user", "root", f"account={name}")
    for name, limits in QOS.items():
        cluster.run("sacctmgr", "-i", "add", "qos", name, *limits.split())
    cluster.run("sacctmgr", "-i", "modify", "user", "root", "set", f"qos+={','.join(QOS)}")
    return cluster


def test_twenty_six_reasons(limited, real, submit, monkeypatch):
    # Accounting tells the controller of accounts and limits a moment later.
    show = ("scontrol", "--oneliner", "show", "assoc_mgr")
    wait_until(lambda: "QOS=groupcpu(" in limited.run(*show, "flags=qos"), "the QOS")
    wait_until(lambda: "Account=single UserName=root" in limited.run(*show, "flags=assoc"), "the accounts")
    running = {
        submit(*options)
        for options in (["-A", "jobs"], ["-A", "cpus", "-n2"], ["-A", "single"], ["-q", "most"], ["-q", "group"])
    }
    running |= {submit("-q", "user", "-n2"), submit("-q", "groupcpu", "-n2")}
    first = submit()
    failed = limited.run("sbatch", "--parsable", "--wrap=exit 3")
    array = submit("-p", "arrays", "--array=0-9%1")
    running.add(first)
    wait_until(
        lambda: running <= set(limited.run("squeue", "-h", "-t", "R", "-o", "%i").split()), "the jobs that hold limits"
    )
    limited.run("scontrol", "update", "nodename=n3", "state=drain", "reason=bad fan")
    asleep = submit("-p", "asleep")
    limited.run("scontrol", "update", "partition=asleep", "state=inactive")
    # Slurm 24.11 refuses a job that is too large for its partition.
    large = submit("-p", "shrunk", "-n", "12")
    limited.run("scontrol", "update", "partition=shrunk", "nodes=n1", "state=up")
    limited.run(
        "scontrol", "create", "reservation", "ReservationName=later", "StartTime=now+1hours", "Duration=60",
        "Nodes=n1", "Users=root",
    )  # fmt: skip
    expected = {
        submit("--hold"): "it is held by its user: release it",
        submit("--begin=now+2hours"): "its begin time has not come; it may start at ",
        submit(f"--dependency=afterok:{first}"): f"until wrap ({first}), which is RUNNING, has succeeded",
        submit(f"--dependency=afterok:{failed}"): "so it never starts: cancel it",
        array: "its array runs as many tasks as it may at once: raise the array's limit (%N); 1 at once",
        submit("-p", "quiet", "--reservation=later"): "the reservation later begins at ",
        submit("-p", "broken", "-w", "n3"): " (bad fan)",
        submit("-p", "short"): "it asks for 30m, and the partition short allows 1m",
        submit("-p", "single", "-N2"): "it asks for 2 nodes, and the partition single allows",
        submit("-p", "closed"): "the partition closed is DOWN",
        asleep: "the partition asleep is INACTIVE",
        large: "it asks for 12 CPUs",
        submit("-A", "jobs"): "GrpJobs of the account jobs: 1 of 1 jobs in use",
        submit("-A", "cpus"): "GrpTRES of the account cpus: 2 of 2 CPUs in use",
        submit("-A", "walls", "--time=60"): "MaxWallPJ of the account walls: 30 minutes",
        submit("-A", "large", "-n3"): "MaxTRESPJ of the account large: 2 CPUs",
        submit("-A", "running", "--time=1000"): "100 CPU minutes, and it alone asks for 1,000: it can never start",
        submit("-A", "single"): "MaxJobs of the account single: 1 of 1 jobs in use",
        submit("-q", "user"): "MaxTRESPU of the QOS user: 2 of 2 CPUs in use",
        submit("-q", "wall", "--time=60"): "MaxWallPJ of the QOS wall: 10 minutes",
        submit("-q", "job", "-n3"): "MaxTRESPJ of the QOS job: 2 CPUs",
        submit("-q", "most"): "MaxJobsPU of the QOS most: 1 of 1 jobs in use",
        submit("-q", "group"): "GrpJobs of the QOS group: 1 of 1 jobs in use",
        submit("-q", "groupcpu"): "GrpTRES of the QOS groupcpu: 2 of 2 CPUs in use",
        submit("-p", "main", "-N2", "--exclusive", "--nice=-100"): " whole nodes; it asks for ",
    }  # fmt: skip
    last = submit("-p", "main", "-N2", "--exclusive", "--nice=5000")
    expected[last] = "jobs that wait in main are ahead of it; its priority is "
    told = {}
    monkeypatch.setattr(cluster_module, "KEPT_S", 0.5)
    deadline = time.monotonic() + PATIENCE
    # Slurm changes a job's reason with each pass of its schedulers: each must be told once.
    while expected and time.monotonic() < deadline:
        for job_id, text in list(expected.items()):
            described = real.describe(job_id)
            told[job_id] = described.msg if described is not None else ""
            if text in told[job_id]:
                del expected[job_id]
        time.sleep(1)
    assert {job_id: told[job_id] for job_id in expected} == {}
    # None of Slurm's words are left unexplained, also in the rows.
    assert not [row.msg for row in real.list() if "Slurm says" in row.msg]
    limited.run("scancel", "--user=root")
