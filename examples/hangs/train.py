"""A small training job over gloo on the CPU, with DDP or without, that hangs, fails or is only slow in a chosen way.

    RANK=0 WORLD_SIZE=4 MASTER_ADDR=127.0.0.1 MASTER_PORT=29500 python train.py --kind sleep --seed 1

The seed chooses the rank that is to blame, and the step at which it happens; `python kinds.py --list` names the kinds.
"""

from __future__ import annotations

import argparse
import datetime
import os
import queue
import random
import signal
import socket
import subprocess
import sys
import threading
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset

RANK, WORLD = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
FOREVER = 3600.0


class Job:
    """What the parts of the training share: who is to blame, when, and how."""

    def __init__(self, kind: str, seed: int) -> None:
        chance = random.Random(f"{kind} {seed}")
        self.kind = kind
        self.culprit = 0 if kind == "checkpoint" else chance.randrange(WORLD)
        self.step = chance.randrange(6, 16)
        self.other = (self.culprit + 1) % WORLD
        self.is_mine = self.culprit == RANK


class Samples(Dataset):
    def __init__(self, job: Job, batches: int) -> None:
        self.job, self.batches = job, batches

    def __len__(self) -> int:
        return 8 * self.batches

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        if self.job.is_mine and index >= 8 * self.job.step and self.job.kind in ("loader", "loader_worker"):
            read_shard()
        return torch.randn(16), torch.randn(1)


def read_shard() -> None:
    time.sleep(FOREVER)


def save_checkpoint(model: torch.nn.Module) -> None:
    time.sleep(FOREVER)
    torch.save(model.state_dict(), os.devnull)


# Healthy jobs that look like hangs for a while.


def compute(seconds: float) -> None:
    """Use the CPU for some seconds, in Python and in torch."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        tokenise("a line of text that becomes tokens " * 20)
        torch.randn(64, 64) @ torch.randn(64, 64)


def tokenise(text: str) -> list[int]:
    return [hash(word) for word in text.split()]


def evaluate_model() -> None:
    for _ in range(40):
        time.sleep(0.5)


def write_model() -> None:
    time.sleep(6)


def prepare(job: Job) -> None:
    """Do what takes long before the first step."""
    if job.kind == "imports" and not job.is_mine:
        import slow_import  # noqa: F401
    elif job.kind == "preparing":
        if RANK == 0:
            compute(15)
        dist.barrier()


def delay(job: Job, step: int, chance: random.Random) -> None:
    """Do what makes a step of a healthy job long."""
    if job.kind == "long_steps":
        time.sleep(6)
    elif job.kind == "varied":
        time.sleep(chance.uniform(0.1, 5))
    elif job.kind == "tokenising" and step == job.step:
        compute(chance.uniform(6, 15))
    elif job.kind == "evaluation" and step == job.step:
        if RANK == 0:
            evaluate_model()
        dist.barrier()
    elif job.kind == "checkpoints" and step % 6 == 5:
        if RANK == 0:
            write_model()
        dist.barrier()
    elif job.kind == "slow_rank" and job.is_mine:
        time.sleep(1.2)


def average_gradients(model: torch.nn.Module) -> None:
    for parameter in model.parameters():
        dist.all_reduce(parameter.grad)
        parameter.grad /= WORLD


def train_step(model: torch.nn.Module, optimizer: torch.optim.Optimizer, x: torch.Tensor, y: torch.Tensor) -> float:
    optimizer.zero_grad()
    loss = torch.nn.functional.mse_loss(model(x), y)
    loss.backward()
    if not isinstance(model, DistributedDataParallel):
        average_gradients(model)
    optimizer.step()
    total = loss.detach().clone()
    dist.all_reduce(total)
    return total.item() / WORLD


# What the rank to blame does instead of its step. The others go on to the next collective and wait there.


def wait_for_lock() -> None:
    lock = threading.Lock()
    lock.acquire()
    lock.acquire()


def read_pipe() -> None:
    read, _ = os.pipe()
    os.read(read, 1)


def wait_for_queue() -> None:
    queue.Queue().get()


def run_program() -> None:
    subprocess.run(["sleep", str(FOREVER)], check=False)


def read_socket() -> None:
    here, _there = socket.socketpair()
    here.recv(1)


def spin() -> None:
    while True:
        pass


def join_thread() -> None:
    thread = threading.Thread(target=time.sleep, args=(FOREVER,), daemon=True)
    thread.start()
    thread.join()


def swallow_error() -> None:
    try:
        raise ValueError("a bad sample")
    except ValueError:
        time.sleep(FOREVER)


def run_out_of_memory() -> None:
    import resource

    used = int(open("/proc/self/statm").read().split()[0]) * 4096
    resource.setrlimit(resource.RLIMIT_AS, (used + (1 << 28), used + (1 << 28)))
    torch.zeros(1 << 32)


def call_other_size() -> None:
    dist.all_reduce(torch.zeros(7))


def gather_instead() -> None:
    dist.all_gather([torch.zeros(3) for _ in range(WORLD)], torch.zeros(3))


INSTEAD = {
    "sleep": lambda: time.sleep(FOREVER),
    "lock": wait_for_lock,
    "pipe": read_pipe,
    "queue": wait_for_queue,
    "program": run_program,
    "socket": read_socket,
    "spin": spin,
    "join": join_thread,
    "swallowed": swallow_error,
    "stopped": lambda: os.kill(os.getpid(), signal.SIGSTOP),
    "other_collective": lambda: dist.broadcast(torch.zeros(3), 0),
    "gather_instead": gather_instead,
    "other_source": lambda: dist.broadcast(torch.zeros(3), RANK),
    "extra_barrier": dist.barrier,
    "other_size": call_other_size,
    "exit_0": lambda: os._exit(0),
    "exit_1": lambda: sys.exit(1),
    "killed": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "memory": run_out_of_memory,
}


def go_wrong(job: Job, model: torch.nn.Module, groups: list[dist.ProcessGroup]) -> None:
    """Do what the kind asks for at its step."""
    if job.kind == "checkpoint" and job.is_mine:
        save_checkpoint(model)
    elif job.kind == "store":
        dist.distributed_c10d._get_default_store().wait(["nobody sets this"], datetime.timedelta(seconds=FOREVER))
    elif job.kind == "recv" and job.is_mine:
        dist.recv(torch.zeros(1), job.other)
    elif job.kind == "crossed" and RANK in (job.culprit, job.other):
        for group in groups if job.is_mine else reversed(groups):
            dist.all_reduce(torch.zeros(1), group=group)
    elif job.kind == "subgroup" and RANK in (job.culprit, job.other):
        if job.is_mine:
            read_shard()
        dist.all_reduce(torch.zeros(1), group=groups[0])
    elif job.kind in ("left_0", "left_killed"):
        # The others do not notice: what they wait for is the store of rank 0.
        if job.is_mine:
            os._exit(0) if job.kind == "left_0" else os.kill(os.getpid(), signal.SIGKILL)
        dist.distributed_c10d._get_default_store().wait(["never"], datetime.timedelta(seconds=FOREVER))
    elif job.kind == "other_source" and not job.is_mine:
        dist.broadcast(torch.zeros(3), job.other)
    elif job.is_mine and job.kind in INSTEAD:
        INSTEAD[job.kind]()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--kind", default="none")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=24)
    parser.add_argument("--plain", action="store_true", help="average the gradients by hand, without DDP")
    chosen = parser.parse_args()
    job = Job(chosen.kind, chosen.seed)
    if job.kind.startswith("left_") and job.culprit == 0:
        job.culprit = WORLD - 1  # rank 0 keeps the store
        job.is_mine = job.culprit == RANK
    if job.kind == "imports":
        prepare(job)
    dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=FOREVER))
    torch.manual_seed(0)
    torch.set_num_threads(1)
    pair = sorted((job.culprit, job.other))
    groups = [dist.new_group(pair), dist.new_group(pair)] if job.kind in ("crossed", "subgroup") else []
    model: torch.nn.Module = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1))
    if not chosen.plain:
        model = DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    batches = job.step if job.kind == "uneven" and job.is_mine else chosen.steps
    loader = DataLoader(Samples(job, batches), 8, num_workers=2 if job.kind == "loader_worker" else 0)
    prepare(job)
    chance = random.Random(f"{job.kind} {chosen.seed} {RANK}")
    for step, (x, y) in enumerate(loader):
        delay(job, step, chance)
        if step == job.step:
            go_wrong(job, model, groups)
        if job.kind == "slow" and job.is_mine:
            time.sleep(0.15)
        loss = train_step(model, optimizer, x, y)
        if RANK == 0:
            print(f"step {step}/{chosen.steps} loss {loss:.4f}", flush=True)
    dist.barrier()
    if job.kind == "slow":
        time.sleep(FOREVER)
    if job.kind == "ending" and job.is_mine:
        write_model()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
