"""Train a small classifier of handwritten digits with DistributedDataParallel, on the CPU.

Run by torchrun, which starts the workers. Each prints its loss once an epoch, the first one the accuracy at the end.
The data is scikit-learn's: 1,797 pictures of 8x8 grey values, nothing is fetched.
"""

# pyright: reportMissingImports=false
# torch and scikit-learn come with the extra `examples`.

from __future__ import annotations

import argparse
import os
import signal
import sys
import time

import torch
import torch.distributed as dist
from sklearn.datasets import load_digits
from torch import nn
from torch.distributed.elastic.multiprocessing.errors import record
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset, random_split

GREY_LEVELS = 16.0
PIXELS = 64
DIGITS = 10


def say(text: str) -> None:
    """Print a line in one write, so that lines of several workers never mix."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def datasets() -> tuple[TensorDataset, TensorDataset]:
    """Return the pictures to train with and those to test with, the same on every rank."""
    digits = load_digits()
    pictures = torch.tensor(digits.data, dtype=torch.float32) / GREY_LEVELS
    labels = torch.tensor(digits.target, dtype=torch.long)
    whole = TensorDataset(pictures, labels)
    train, test = random_split(range(len(whole)), [0.8, 0.2], generator=torch.Generator().manual_seed(0))
    return TensorDataset(*whole[train.indices]), TensorDataset(*whole[test.indices])


def train_epoch(model: nn.Module, loader: DataLoader, optimizer: torch.optim.Optimizer, step_seconds: float) -> float:
    """Train once over this rank's share of the data and return the mean loss."""
    losses: list[float] = []
    for pictures, labels in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(pictures), labels)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        time.sleep(step_seconds)
    return sum(losses) / len(losses)


@torch.no_grad()
def accuracy(model: nn.Module, test: TensorDataset) -> float:
    """Return the share of the test pictures that the model reads rightly."""
    pictures, labels = test.tensors
    return (model(pictures).argmax(dim=1) == labels).float().mean().item()


def arguments() -> argparse.Namespace:
    """Return the arguments of the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=10, help="how often the data is gone through")
    parser.add_argument("--lr", type=float, default=0.01, help="learning rate, above 0")
    parser.add_argument("--batch", type=int, default=32, help="pictures in a batch of one worker")
    parser.add_argument("--step-seconds", type=float, default=0.0, help="seconds to wait after each batch")
    parser.add_argument("--stubborn", action="store_true", help="ignore SIGTERM, to see how cancelling deals with it")
    return parser.parse_args()


@record
def main() -> None:
    """Train, and print how it goes."""
    args = arguments()
    if args.stubborn:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if args.lr <= 0:
        raise ValueError(f"the learning rate is {args.lr}: it must be above 0")
    dist.init_process_group("gloo")
    rank, workers = dist.get_rank(), dist.get_world_size()
    say(f"rank {rank} of {workers} pid {os.getpid()}")
    torch.manual_seed(0)
    torch.set_num_threads(1)
    train, test = datasets()
    sampler = DistributedSampler(train, num_replicas=workers, rank=rank, seed=0)
    loader = DataLoader(train, batch_size=args.batch, sampler=sampler)
    model = DistributedDataParallel(nn.Sequential(nn.Linear(PIXELS, 128), nn.ReLU(), nn.Linear(128, DIGITS)))
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    for epoch in range(1, args.epochs + 1):
        sampler.set_epoch(epoch)
        loss = train_epoch(model, loader, optimizer, args.step_seconds)
        say(f"epoch {epoch}/{args.epochs} rank {rank} loss {loss:.4f}")
    dist.barrier()
    if rank == 0:
        say(f"accuracy {accuracy(model.module, test):.2f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
