"""What is set up here, what is wrong with it, and what to do: for the command doctor and for the screen."""

from collections.abc import Iterator

from ..backends.types import Finding

Findings = Iterator[Finding]
