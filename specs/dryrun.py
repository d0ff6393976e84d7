"""What would be sent to a scheduler, before it is sent."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from .roles import AppDef

T = TypeVar("T")


class AppDryRunInfo(Generic[T]):
    """A scheduler's own request for an app. `str()` of it is for people to read.

    Args:
        request: What the scheduler will be given.
        fmt: Makes the readable text of the request.
    """

    def __init__(self, request: T, fmt: Callable[[T], str]) -> None:
        self.request = request
        self.app: AppDef | None = None
        self.cfg: Mapping[str, Any] = {}
        self.notes: list[str] = []
        """What the request does not say, such as an image that is built before; comments in its text."""
        self._fmt = fmt
        self._scheduler: str | None = None

    # The names that schedulers written for earlier TorchX set and read.
    @property
    def _app(self) -> AppDef | None:
        return self.app

    @_app.setter
    def _app(self, app: AppDef | None) -> None:
        self.app = app

    @property
    def _cfg(self) -> Mapping[str, Any]:
        return self.cfg

    @_cfg.setter
    def _cfg(self, cfg: Mapping[str, Any]) -> None:
        self.cfg = cfg

    def __repr__(self) -> str:
        return "".join(f"# {note}\n" for note in self.notes) + self._fmt(self.request)
