"""``python -m torchx_tui.cli`` is the command ``torchx-tui``."""

import sys

from .main import main

sys.exit(main())
