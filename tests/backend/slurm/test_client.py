"""The cache of Slurm's answers: how long they are kept, and what bounds it."""

from types import SimpleNamespace

import pytest

from torchx_tui.backends.slurm import client as client_module
from torchx_tui.backends.slurm import known_jobs
from torchx_tui.backends.slurm.client import REFUSED_S, Client
from torchx_tui.backends.slurm.commands import CommandError


@pytest.fixture
def seconds(monkeypatch):
    """Give the cache's clock, in a list."""
    now = [1000.0]
    monkeypatch.setattr(client_module, "time", SimpleNamespace(monotonic=lambda: now[0]))
    return now


def test_answer_is_kept_for_as_long_as_asked(commands, seconds):
    client = Client()
    for after, answer in ((0, "one"), (29, "one"), (2, "two")):
        commands.answer("sinfo", "one" if after == 0 else "two")
        seconds[0] += after
        assert client.ask(["sinfo"], keep_s=30) == answer


def test_answer_of_another_key_is_asked_for(commands):
    client = Client()
    for key in ("a", "b", "a"):
        client.ask(["sinfo", "-h"], keep_s=30, key=key)
    assert len(commands.calls("sinfo")) == 2


def test_refusal_is_kept_for_a_minute_at_most(commands, seconds):
    client = Client()
    commands.answer("scontrol", err="Access/permission denied", code=1)
    for _ in range(2):
        with pytest.raises(CommandError, match="permission denied"):
            client.ask(["scontrol", "ping"], keep_s=3600)
    assert len(commands.calls("scontrol")) == 1
    seconds[0] += REFUSED_S
    commands.answer("scontrol", "found")
    assert client.ask(["scontrol", "ping"], keep_s=3600) == "found"


def test_old_answers_make_room_for_new_ones(commands):
    client = Client(max_bytes=100_000)
    commands.answer("scontrol", "x" * 30_000)
    for name in ("a", "b", "c", "d", "a"):
        client.ask(["scontrol", name], keep_s=3600)
    assert [call[0] for call in commands.calls("scontrol")] == ["a", "b", "c", "d", "a"]
    client.ask(["scontrol", "d"], keep_s=3600)
    assert len(commands.calls("scontrol")) == 5


def test_answer_larger_than_the_cache_is_not_kept(commands):
    client = Client(max_bytes=1000)
    commands.answer("scontrol", "x" * 3000)
    for _ in range(2):
        assert len(client.ask(["scontrol"], keep_s=3600)) == 3000


def test_unknown_job_is_asked_for_again_after_a_while(slurm, commands, seconds):
    commands.answer("squeue", err="slurm_load_jobs error: Invalid job id specified", code=1)
    commands.answer("squeue-0", "")
    commands.queue()
    assert not slurm.exists("99")
    asked = len(commands.calls("sacct"))
    assert not slurm.exists("99")
    assert len(commands.calls("sacct")) == asked
    seconds[0] += 11
    commands.accounted({"JobIDRaw": "99"})
    assert slurm.exists("99")


def test_script_is_asked_for_again_after_a_refusal(slurm, commands, seconds):
    commands.queue({})
    commands.accounted({"State": "RUNNING", "SubmitLine": "sbatch train.sh"})
    commands.answer("scontrol-write-batch_script", err="slurm_write_batch_script error: Try again", code=1)
    assert not slurm.describe("7").roles
    commands.answer("scontrol-write-batch_script", "#!/bin/sh\nsleep 1\n")
    seconds[0] += REFUSED_S
    assert slurm.describe("7").roles


def test_departed_jobs_are_bounded(slurm, commands, monkeypatch):
    monkeypatch.setattr(known_jobs, "MAX_LEFT", 2)
    commands.answer("sacct", err="Slurm accounting storage is disabled", code=1)
    for number in range(1, 6):
        commands.queue({"JobID": str(number)})
        assert str(number) in {row.app_id for row in slurm.list()}
    ids = {row.app_id for row in slurm.list()}
    assert (len(ids), "5" in ids) == (3, True)


def test_cancel_asks_the_queue_alone(slurm, commands):
    commands.queue({"State": "PENDING", "Reason": "Priority", "StartTime": "N/A"})
    slurm.cancel("7")
    asked = {name: len(commands.calls(name)) for name in ("squeue", "scancel", "sacct", "scontrol", "sprio", "sinfo")}
    assert asked == {"squeue": 2, "scancel": 1, "sacct": 0, "scontrol": 0, "sprio": 0, "sinfo": 0}
