"""The SDK's client, with answers that are bounded in size and in time."""

from __future__ import annotations

import io
import time
from functools import partial
from typing import Any

import requests
from docker import APIClient

from ...specs.calls import LimitedCaller
from ..shared.bounded_answer import read_answer

# Seconds for a whole answer where the client has no limit, because it also takes answers that come bit by bit.
_TIMEOUT_S = 60.0


class BoundedApi(APIClient):
    """A client whose requests end in time, from the connection to the last byte.

    What comes bit by bit is bounded until it begins; its reader bounds the rest.

    Args:
        caller: makes the requests; shared by all clients of an engine, so that few threads hang with it.
        settings: those of the SDK's client.
    """

    def __init__(self, caller: LimitedCaller, **settings: Any) -> None:
        self._caller = caller  # first: the SDK asks for the engine's version before it returns
        super().__init__(**settings)

    def send(self, request: requests.PreparedRequest, **settings: Any) -> requests.Response:
        """Send a request; see `requests.Session.send`.

        Raises:
            NoAnswerError: there is no answer in time.
            AnswerError: the answer is too large, or compressed.
            requests.TooManyRedirects: it is a redirect, which no engine sends.
        """
        is_stream = settings.get("stream", False)
        settings["stream"] = True
        request.headers["Accept-Encoding"] = "identity"
        timeout = settings.get("timeout")
        limit = timeout if isinstance(timeout, (int, float)) else _TIMEOUT_S
        ask = partial(self._answer, request, settings, is_stream, time.monotonic() + limit)
        # A build or a pull may begin to answer when it likes; who waits for it can end it.
        return ask() if is_stream and timeout is None else self._caller.call(ask, limit)

    def get_redirect_target(self, resp: requests.Response) -> str | None:
        """Follow no redirect: its body would be read without a limit."""
        return None

    def _answer(
        self, request: requests.PreparedRequest, settings: dict[str, Any], is_stream: bool, deadline: float
    ) -> requests.Response:
        response = super().send(request, **settings)
        if response.is_redirect:
            response.close()
            raise requests.TooManyRedirects(f"HTTP {response.status_code} leads elsewhere", response=response)
        if not is_stream or not response.ok:
            response.raw = io.BytesIO(read_answer(response.raw, deadline))
        return response
