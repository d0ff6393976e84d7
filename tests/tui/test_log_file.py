"""The file that loggers write to."""

import logging

from torchx_tui.cli import main as cli


def test_a_process_keeps_one_log_file_open(monkeypatch):
    monkeypatch.setattr(logging.root, "handlers", [])
    monkeypatch.setattr(logging, "raiseExceptions", logging.raiseExceptions)
    level = logging.root.level
    try:
        for _ in range(3):
            cli.log_to_file(False)
        (handler,) = logging.root.handlers
        assert isinstance(handler, logging.FileHandler)
        handler.close()
    finally:
        logging.root.setLevel(level)
        logging.captureWarnings(False)
