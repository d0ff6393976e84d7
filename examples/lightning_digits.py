"""Train a small classifier of handwritten digits with Lightning, on the CPU.

Lightning draws a progress bar, and writes `metrics.csv` and TensorBoard events below `--folder`. The data is
scikit-learn's: 1,797 images of 8x8 grey values, nothing is fetched.
"""

# pyright: reportMissingImports=false
# lightning, torch and scikit-learn come with the extra `examples`.

from __future__ import annotations

import argparse
import time

import lightning
import torch
from lightning.pytorch.loggers import CSVLogger, TensorBoardLogger
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

GREY_LEVELS = 16.0
PIXELS = 64
DIGITS = 10


class Classifier(lightning.LightningModule):
    """Two layers, and how they are trained."""

    def __init__(self, lr: float, step_seconds: float) -> None:
        super().__init__()
        self.lr = lr
        self.step_seconds = step_seconds
        self.layers = nn.Sequential(nn.Linear(PIXELS, 128), nn.ReLU(), nn.Linear(128, DIGITS))

    def training_step(self, batch: list[torch.Tensor], _number: int) -> torch.Tensor:
        """Return the loss of a batch."""
        pixels, labels = batch
        loss = nn.functional.cross_entropy(self.layers(pixels), labels)
        self.log("train_loss", loss, prog_bar=True)
        time.sleep(self.step_seconds)
        return loss

    def validation_step(self, batch: list[torch.Tensor], _number: int) -> None:
        """Log the loss and the accuracy of a batch."""
        pixels, labels = batch
        logits = self.layers(pixels)
        self.log("val_loss", nn.functional.cross_entropy(logits, labels))
        self.log("val_acc", (logits.argmax(dim=1) == labels).float().mean(), prog_bar=True)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """Return the optimizer."""
        return torch.optim.Adam(self.parameters(), lr=self.lr)


def arguments() -> argparse.Namespace:
    """Return the arguments of the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=10, help="passes over the data")
    parser.add_argument("--lr", type=float, default=0.01, help="learning rate")
    parser.add_argument("--folder", default="lightning_logs", help="where metrics and checkpoints are written")
    parser.add_argument("--step-seconds", type=float, default=0.0, help="seconds to wait after each step")
    return parser.parse_args()


def main() -> None:
    """Train, and validate after each epoch."""
    args = arguments()
    lightning.seed_everything(0)
    torch.set_num_threads(1)
    digits = load_digits()
    pixels = torch.tensor(digits.data, dtype=torch.float32) / GREY_LEVELS
    whole = TensorDataset(pixels, torch.tensor(digits.target, dtype=torch.long))
    train, test = random_split(whole, [0.8, 0.2])
    trainer = lightning.Trainer(
        accelerator="cpu",
        max_epochs=args.epochs,
        log_every_n_steps=10,
        logger=[CSVLogger(args.folder, name="csv"), TensorBoardLogger(args.folder, name="events")],
        enable_checkpointing=False,
    )
    loaders = DataLoader(train, batch_size=32, shuffle=True), DataLoader(test, batch_size=180)
    trainer.fit(Classifier(args.lr, args.step_seconds), *loaders)


if __name__ == "__main__":
    main()
