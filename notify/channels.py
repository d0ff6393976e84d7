"""The channels of notifications: a command, a webhook, mail. Each is tried a bounded number of times."""

from __future__ import annotations

import http.client
import json
import logging
import os
import re
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from email.message import EmailMessage
from functools import partial
from typing import TYPE_CHECKING
from urllib.error import HTTPError
from urllib.parse import SplitResult, urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from ..backends.shared.bounded_command import run_command
from ..backends.shared.secrets import mask_text
from ..base.backoff import Backoff
from ..base.errors import ConfigError
from ..base.files import user_name
from ..base.timeouts import AwaitedCall
from ..logs.text.sanitize import plain

if TYPE_CHECKING:
    from ..settings.config import NotifySettings
    from .message import Message

logger = logging.getLogger(__name__)

MOST_TRIES = 4
FIRST_WAIT_S = 1.0
"""Seconds before the second try; doubled for each further one."""
_LONGEST_WAIT_S = 15.0
_TRY_S = 10.0
# Limit of all tries of all channels together.
DEADLINE_S = 90.0
_MOST_OUTPUT = 1 << 20
_VARIABLE = re.compile(r"\$(?:(\w+)|\{(\w+)\})")
# Where sendmail is, which is not on the PATH of most users.
_SENDMAIL_PATH = ("/usr/sbin", "/usr/lib")
# Answers of a server that asks for another try.
_TRANSIENT = (408, 425, 429)


class PermanentError(Exception):
    """An error that a retry would repeat."""


class _NoRedirect(HTTPRedirectHandler):
    """Refuse redirects: the secret of a URL or header is for one server."""

    def redirect_request(self, *_: object, **__: object) -> None:  # pyrefly: ignore[bad-override]
        return None


def channels(settings: NotifySettings) -> dict[str, Callable[[Message], None]]:
    """Return the functions that send a message, by names without secrets; they raise an exception on failure."""
    found: dict[str, Callable[[Message], None]] = {}
    if settings.command:
        found[f"command {settings.command[0]}"] = partial(_run, settings)
    if settings.webhook:
        found[f"webhook {_split_url(settings.webhook).hostname or ''}".rstrip()] = partial(_post, settings)
    if settings.mail:
        found[f"mail to {settings.mail}"] = partial(_mail, settings)
    return found


def _split_url(url: str) -> SplitResult:
    """Split a URL; one that cannot be parsed has no host."""
    try:
        return urlsplit(url)
    except ValueError:
        return SplitResult("", "", "", "", "")


def deliver(
    message: Message, settings: NotifySettings, *, tries: int = MOST_TRIES, deadline_s: float = DEADLINE_S
) -> dict[str, str]:
    """Send a message on all channels at once; return the error of each channel, empty if it was sent.

    Args:
        message: the message.
        settings: the table ``[notify]``.
        tries: the maximum number of tries on each channel.
        deadline_s: seconds after which a channel that hangs is given up.
    """
    stop = threading.Event()
    calls = {
        name: AwaitedCall(partial(_try, send, message, tries, stop), name) for name, send in channels(settings).items()
    }
    late, until = f"no answer within {deadline_s:.0f} s", time.monotonic() + deadline_s
    results = {
        name: call.result() if call.wait(max(0.0, until - time.monotonic())) else late for name, call in calls.items()
    }
    stop.set()
    return results


def _try(send: Callable[[Message], None], message: Message, tries: int, stop: threading.Event) -> str:
    """Send a message, with retries after growing waits if they may help; return the last error."""
    backoff, failed = Backoff(FIRST_WAIT_S, _LONGEST_WAIT_S), ""
    for number in range(1, tries + 1):
        try:
            send(message)
            return ""
        except (PermanentError, ConfigError) as error:
            return _shown(error)
        except Exception as error:
            failed = _shown(error)
        if number < tries and backoff.wait(stop):
            break
    return f"{failed}; tried {tries} times" if tries > 1 else failed


def _shown(error: Exception) -> str:
    """Return the text of an error without secrets and control characters: a command or server may have written it."""
    return mask_text("", plain(str(error) or type(error).__name__))


def fill_in(text: str) -> str:
    """Replace ``$NAME`` and ``${NAME}`` by values of the environment.

    Raises:
        ConfigError: a variable is not set.
    """
    for name in variables(text):
        if not os.environ.get(name):
            raise ConfigError(f"the variable {name} is not set: notify.webhook or notify.headers uses it")
    return _VARIABLE.sub(lambda found: os.environ[found[1] or found[2]], text)


def used_variables(settings: NotifySettings) -> list[str]:
    """List the names of the variables that the webhook uses, each once."""
    texts = (settings.webhook, *settings.headers.values())
    return list(dict.fromkeys(name for text in texts for name in variables(text)))


def variables(text: str) -> Iterator[str]:
    """Yield the names of the variables in a text."""
    for found in _VARIABLE.finditer(text):
        yield found[1] or found[2]


def _run(settings: NotifySettings, message: Message) -> None:
    facts = asdict(message)
    environ = {f"TORCHX_TUI_{name.upper()}": str(value) for name, value in facts.items() if name != "lines"}
    _run_program(list(settings.command), json.dumps(facts).encode(), {**os.environ, **environ})


def _run_program(argv: list[str], stdin: bytes, env: Mapping[str, str] | None = None) -> None:
    try:
        done = run_command(argv, timeout_s=_TRY_S, max_bytes=_MOST_OUTPUT, stdin=stdin, env=env, cwd="/")
    except OSError as error:
        raise PermanentError(f"{argv[0]} cannot be started: {error.strerror}") from error
    if done.code:
        said = done.err.decode("utf-8", "replace").strip().rpartition("\n")[2][:200]
        raise RuntimeError(f"{argv[0]} ended with exit code {done.code}{f': {said}' if said else ''}")
    if done.code is None:
        raise TimeoutError(f"{argv[0]} did not end within {_TRY_S:.0f} s")


def webhook_body(host: str, message: Message) -> dict[str, object]:
    """Return the body to post: in the form of Slack or Discord for their hosts, else all facts and ``text``.

    Source: api.slack.com/messaging/webhooks, discord.com/developers/docs/resources/webhook.
    """
    if host.endswith("slack.com"):
        # Slack reads <!channel> and links in a text.
        text = message.text().replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
        return {"text": text}
    if host.endswith(("discord.com", "discordapp.com")):
        return {"content": message.text()[:1900], "allowed_mentions": {"parse": []}}
    return {**asdict(message), "text": message.text()}


def _post(settings: NotifySettings, message: Message) -> None:
    url = fill_in(settings.webhook)
    parts = _split_url(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigError("notify.webhook is not a URL that begins with http:// or https://")
    headers = {"Content-Type": "application/json", "User-Agent": "torchx-tui"}
    headers.update({name: fill_in(value) for name, value in settings.headers.items()})
    body = json.dumps(webhook_body(parts.hostname, message)).encode()
    try:
        request = Request(url, body, headers, method="POST")  # noqa: S310 checked above
        with build_opener(_NoRedirect).open(request, timeout=_TRY_S):
            pass
    except HTTPError as error:
        error.close()
        # The server's own reason phrase may repeat the secret of the URL, or have control characters.
        text = f"{parts.hostname} answered {error.code} {http.client.responses.get(error.code, '')}".rstrip()
        if error.code < 500 and error.code not in _TRANSIENT:
            raise PermanentError(text) from None
        raise RuntimeError(text) from None
    except (OSError, http.client.HTTPException, ValueError) as error:
        # The error of a malformed URL or header quotes it, with its secret; that of an answer that is not HTTP quotes
        # the server.
        quotes = isinstance(error, (ValueError, http.client.HTTPException))
        reason = type(error).__name__ if quotes else getattr(error, "reason", error)
        raise RuntimeError(f"{parts.hostname} cannot be reached: {reason}") from None


def find_sendmail() -> str | None:
    """Return the path of sendmail, on the PATH or where systems usually have it."""
    return shutil.which("sendmail", path=os.pathsep.join([os.environ.get("PATH", ""), *_SENDMAIL_PATH]))


def _mail(settings: NotifySettings, message: Message) -> None:
    program = find_sendmail()
    if program is None:
        raise PermanentError("the program sendmail is not on the PATH")
    mail = EmailMessage()
    mail["To"] = settings.mail
    mail["From"] = user_name()
    mail["Subject"] = message.title()
    mail.set_content(message.text())
    _run_program([program, "-i", "--", settings.mail], mail.as_bytes())
