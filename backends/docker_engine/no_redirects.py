"""Docker's client, without following redirects: an engine sends none, and they may lead to any address."""

from __future__ import annotations

from typing import Any

import docker
import requests


class _DirectApi(docker.APIClient):
    def get_redirect_target(self, resp: requests.Response) -> None:
        """Refuse to follow a response elsewhere.

        Raises:
            requests.TooManyRedirects: it is a redirect.
        """
        if resp.is_redirect:
            raise requests.TooManyRedirects(f"HTTP {resp.status_code} leads elsewhere", response=resp)


class DirectDockerClient(docker.DockerClient):
    """A client of one engine; the arguments are those of `docker.APIClient`."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.api = _DirectApi(*args, **kwargs)
