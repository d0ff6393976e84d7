"""``python -m torchx_tui.tui`` is the command ``torchx-tui``."""

import sys

from .main import main

sys.exit(main())
