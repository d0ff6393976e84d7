"""The command `torchx-tui`: what the dashboard does, for scripts and for screen readers."""
