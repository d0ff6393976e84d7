"""Ports that a running job named in its log, and the ssh lines to them."""

import platform

import pytest

from torchx_tui.base.files import user_name

LOGIN = f"{user_name()}@{platform.node()}"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("TensorBoard 2.16 at http://n1:6006/ (Press CTRL+C to quit)", [f"ssh -N -L 6006:n1:6006 {LOGIN}"]),
        ("    http://n1.cluster.org:8888/lab?token=abc", [f"ssh -N -L 8888:n1:8888 {LOGIN}"]),
        ("Serving at http://0.0.0.0:8000", [f"ssh -N -L 8000:n1:8000 {LOGIN}"]),
        ("http://127.0.0.1:8888/lab", [f"ssh -N -L 8888:localhost:8888 -J {LOGIN} {user_name()}@n1"]),
        ("http://n1:6006/ and again http://n1:6006/", [f"ssh -N -L 6006:n1:6006 {LOGIN}"]),
        # Not its own, no port, no number of a port.
        ("wandb: http://wandb.example.com:8080/run, http://n1/, http://n1:99999/, tcp://n1:29500", []),
    ],
)
def test_a_url_in_the_log(slurm, commands, tmp_path, line, expected):
    log = tmp_path / "job.out"
    log.write_text(f"begin\n{line}\n" + "step\n" * 200_000)
    commands.queue({"STDOUT": str(log)})
    assert [port.command for port in slurm.describe("7").ports] == expected


def test_a_job_that_has_ended_serves_nothing(slurm, commands, tmp_path):
    (tmp_path / "job.out").write_text("http://n1:6006/\n")
    commands.queue({"STDOUT": str(tmp_path / "job.out"), "State": "COMPLETED", "EndTime": "1795258110"})
    assert slurm.describe("7").ports == []
