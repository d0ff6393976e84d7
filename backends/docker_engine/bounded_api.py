"""The API client of Docker's SDK with limits on the size and the duration of responses."""

from __future__ import annotations

import io
import time
from functools import partial
from typing import Any

import requests
from docker import APIClient

from ...base.timeouts import LimitedCaller
from ..shared.bounded_answer import read_answer

# Limit for a complete response (s) if the client has no timeout, as it also reads streams.
_TIMEOUT_S = 60.0


class BoundedApi(APIClient):
    """A client whose timeout covers the whole request, from the connection to the last byte.

    For a stream the timeout ends with the response headers; the reader of the stream limits the rest.

    Args:
        caller: runs the requests in threads; all clients of an engine share it, so that few threads hang.
        settings: the arguments of the SDK's client.
    """

    def __init__(self, caller: LimitedCaller, **settings: Any) -> None:
        self._caller = caller  # set first: the SDK's constructor requests the version of the engine
        super().__init__(**settings)

    def send(self, request: requests.PreparedRequest, **settings: Any) -> requests.Response:
        """Send a request; see `requests.Session.send`.

        Raises:
            NoAnswerError: the request timed out.
            AnswerError: the response is too large, or compressed.
            requests.TooManyRedirects: the response is a redirect, which no engine sends.
        """
        is_stream = settings.get("stream", False)
        settings["stream"] = True
        request.headers["Accept-Encoding"] = "identity"
        timeout = settings.get("timeout")
        limit = timeout if isinstance(timeout, (int, float)) else _TIMEOUT_S
        exchange = partial(self._exchange, request, settings, is_stream, time.monotonic() + limit)
        # No limit for a build or a pull: its first byte may take long, and the user can cancel it.
        return exchange() if is_stream and timeout is None else self._caller.call(exchange, limit)

    def get_redirect_target(self, resp: requests.Response) -> str | None:
        """Follow no redirect: requests would read its body without a limit."""
        return None

    def _exchange(
        self, request: requests.PreparedRequest, settings: dict[str, Any], is_stream: bool, deadline: float
    ) -> requests.Response:
        response = super().send(request, **settings)
        if response.is_redirect:
            response.close()
            raise requests.TooManyRedirects(f"HTTP {response.status_code} is a redirect", response=response)
        if not is_stream or not response.ok:
            response.raw = io.BytesIO(read_answer(response.raw, deadline))
        return response
