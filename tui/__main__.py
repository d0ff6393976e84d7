"""``python -m torchx_tui.tui`` is the command ``torchx-tui``."""

import sys

from .cli import main

sys.exit(main())
