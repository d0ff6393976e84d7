"""The file that loggers write to."""

import logging

from torchx_tui.cli import main as cli


def test_a_process_keeps_one_log_file_open():
    root = logging.getLogger()
    before, level = list(root.handlers), root.level
    try:
        for _ in range(3):
            cli.log_to_file(False)
        assert [one.get_name() for one in root.handlers].count("torchx-tui.log") == 1
    finally:
        root.setLevel(level)
        for one in set(root.handlers) - set(before):
            root.removeHandler(one)
            one.close()
        logging.captureWarnings(False)
