"""Train a small classifier of handwritten digits with Hugging Face's Trainer, on the CPU.

The Trainer prints a dictionary of metrics every ten steps, writes TensorBoard events as it goes, and a
`trainer_state.json` with each checkpoint, below `--output-dir`. The data is scikit-learn's: 1,797 images of 8x8 grey
values, nothing is fetched.
"""

# pyright: reportMissingImports=false
# transformers, torch and scikit-learn come with the extra `examples`.

from __future__ import annotations

import argparse
import time

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import Dataset, random_split
from transformers import EvalPrediction, Trainer, TrainerCallback, TrainingArguments

GREY_LEVELS = 16.0
PIXELS = 64
DIGITS = 10


class Digits(Dataset):
    """The images with the digits that they show."""

    def __init__(self) -> None:
        digits = load_digits()
        self.pixels = torch.tensor(digits.data, dtype=torch.float32) / GREY_LEVELS
        self.labels = torch.tensor(digits.target, dtype=torch.long)

    def __len__(self) -> int:
        """Return the number of images."""
        return len(self.labels)

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        """Return an image and its digit, by the names of the model's arguments."""
        return {"pixels": self.pixels[index], "labels": self.labels[index]}


class Classifier(nn.Module):
    """Two layers."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(PIXELS, 128), nn.ReLU(), nn.Linear(128, DIGITS))

    def forward(self, pixels: torch.Tensor, labels: torch.Tensor) -> dict[str, torch.Tensor]:
        """Return the loss and the logits, as the Trainer wants them."""
        logits = self.layers(pixels)
        return {"loss": nn.functional.cross_entropy(logits, labels), "logits": logits}


class Pause(TrainerCallback):
    """Waits after each step, to leave time for watching."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def on_step_end(self, *_arguments: object, **_more: object) -> None:
        """Wait."""
        time.sleep(self.seconds)


def accuracy(prediction: EvalPrediction) -> dict[str, float]:
    """Return the share of images that the model reads rightly."""
    return {"accuracy": float((prediction.predictions.argmax(axis=1) == prediction.label_ids).mean())}


def arguments() -> argparse.Namespace:
    """Return the arguments of the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=10, help="passes over the data")
    parser.add_argument("--lr", type=float, default=0.01, help="learning rate")
    parser.add_argument("--output-dir", default="outputs/hf_digits", help="where checkpoints and events are written")
    parser.add_argument("--step-seconds", type=float, default=0.0, help="seconds to wait after each step")
    return parser.parse_args()


def main() -> None:
    """Train, and evaluate after each epoch."""
    args = arguments()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    train, test = random_split(Digits(), [0.8, 0.2], generator=torch.Generator().manual_seed(0))
    trainer = Trainer(
        model=Classifier(),
        args=TrainingArguments(
            output_dir=args.output_dir,
            num_train_epochs=args.epochs,
            learning_rate=args.lr,
            per_device_train_batch_size=32,
            logging_steps=10,
            eval_strategy="epoch",
            save_strategy="epoch",
            report_to="tensorboard",
            use_cpu=True,
        ),
        train_dataset=train,
        eval_dataset=test,
        compute_metrics=accuracy,
        callbacks=[Pause(args.step_seconds)],
    )
    trainer.train()


if __name__ == "__main__":
    main()
