"""Metric files of containers: through the container's own root, and through folders of this machine that it has."""

import os
from functools import partial

from support.waiting import wait_until

from torchx_tui.backends.runner import Runner
from torchx_tui.diagnosis.metrics.find import find_metric_files
from torchx_tui.diagnosis.progress.activity import job_place
from torchx_tui.diagnosis.progress.reader import ActivityReader
from torchx_tui.specs.mounts import BindMount
from torchx_tui.specs.roles import AppDef
from torchx_tui.specs.status import AppState

# Metrics in the container's own files; links that would lead out of it; more of them in a folder of this machine.
SCRIPT = """
mkdir -p /work/runs /out/mine; cd /work
ln -s {outside} runs/link; ln -s {outside}/metrics.csv runs/progress.csv; ln -s {outside} /named
printf 'step,loss\\n1,2.5\\n2,2.25\\n' > runs/metrics.csv
printf '{{"step": 1, "acc": 0.5}}\\n' > /out/mine/metrics.jsonl
sleep 1000
"""
ARGUMENTS = ["sh", "--out=/out/mine", "--log=/named", "--up=/../../out"]


def test_files_in_a_container_and_in_its_mounts(docker, tmp_path):
    """Each value as it was written, nothing of this machine through a link; files in a mount outlive the container."""
    outside, shared = tmp_path / "outside", tmp_path / "shared"
    outside.mkdir()
    shared.mkdir()
    (outside / "metrics.csv").write_text("step,secret\n1,1.0\n")
    role = docker.role("", mounts=[BindMount(str(shared), "/out")])
    role.args = ["-c", SCRIPT.format(outside=outside), *ARGUMENTS]
    with Runner(docker.session) as runner:
        handle = runner.run(AppDef("metrics", [role]), "local_docker", {"pull": False})

        def described(state):
            def reached():
                found = runner.job(handle).describe()
                return found if found is not None and found.state is state else None

            return wait_until(reached, state.name)

        running = described(AppState.RUNNING)
        reader = ActivityReader(handle, [], partial(job_place, runner, handle, running), lambda: None)
        reader.start()
        try:
            # Only root sees the files of a container's processes.
            wanted = {"acc", "loss"} if os.geteuid() == 0 else {"acc"}

            def read():
                return reader.latest if reader.latest.series.keys() >= wanted else None

            series = wait_until(read, "the values").series
            assert {name: found.last for name, found in series.items()} == {
                name: {"acc": 0.5, "loss": 2.25}[name] for name in wanted
            }
        finally:
            reader.close()
        runner.job(handle).cancel()
        place = job_place(runner, handle, described(AppState.CANCELLED))
    found = find_metric_files([], place.folders, place.arguments, place.since, place.until)
    assert found == [shared / "mine/metrics.jsonl"]
