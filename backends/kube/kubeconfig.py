"""The kubeconfig, read without the package `kubernetes`: its contexts, and credentials by the program that it names.

Wire format of credentials: ExecCredential of client.authentication.k8s.io. The package `kubernetes` runs such a program
too, but on this program's terminal, without a limit, and where it fails it goes on without credentials.
"""

from __future__ import annotations

import base64
import json
import math
import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from ...base.bounded_yaml import load_yaml
from ...base.files import is_file, read_file
from ...base.typed_data import convert
from ...base.validation import decode_json
from ...logs.text.sanitize import plain
from ...specs.errors import BackendUnavailableError
from ..shared.bounded_command import run_command
from ..shared.secrets import mask_text

# What a pod's own service account gives to the programs in it.
_IN_CLUSTER = ("KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT")
_TOKEN = Path("/var/run/secrets/kubernetes.io/serviceaccount/token")


# Keys whose values are paths, in entries of clusters and of users.
_FILES = ("certificate-authority", "client-certificate", "client-key", "tokenFile")

TIMEOUT_S = 60.0
"""How long a program may take: some open a browser, in which somebody logs in."""
# Maximum output of such a program (bytes), stdout and stderr together.
_MOST_OUTPUT = 1 << 20
# Seconds before its expiry at which a credential is renewed, and for which it is kept at least, as clocks differ.
_MARGIN_S, _SHORTEST_S = 60.0, 10.0
# Characters of a failed program's stderr that are shown, from its end.
_LONGEST_MESSAGE = 300


@dataclass(frozen=True)
class Contexts:
    """What the kubeconfig offers.

    Args:
        names: the contexts, in the order of the files.
        current: the current one; empty where none is.
        namespaces: the default namespace of contexts that have one.
    """

    names: tuple[str, ...]
    current: str
    namespaces: Mapping[str, str]


def kubeconfig_files() -> list[Path]:
    """Return the files of the kubeconfig that exist; ``KUBECONFIG`` names several with colons between them."""
    named = os.environ.get("KUBECONFIG") or "~/.kube/config"
    # Path.expanduser raises where there is no home folder.
    paths = [Path(os.path.expanduser(part)) for part in named.split(os.pathsep) if part]  # noqa: PTH111
    return [path for path in paths if is_file(path)]


def in_cluster() -> bool:
    """Return whether this program runs in a pod with a service account."""
    return all(os.environ.get(name) for name in _IN_CLUSTER) and is_file(_TOKEN)


def is_set_up() -> bool:
    """Return whether an API server is configured."""
    return in_cluster() or bool(kubeconfig_files())


def read_contexts() -> Contexts:
    """Return the contexts of the kubeconfig; none without a file.

    Raises:
        ValueError: a file is no kubeconfig.
    """
    entries, current = _read_entries()
    namespaces = {name: str(context.get("namespace") or "") for name, (context, _) in entries["contexts"].items()}
    given = {name: namespace for name, namespace in namespaces.items() if namespace}
    return Contexts(tuple(namespaces), current, given)


class Login(NamedTuple):
    """Which server a context leads to, and as whom; paths of files are absolute.

    Attributes:
        cluster: the cluster's entry.
        user: the user's entry, empty where the context has none.
        folder: the folder of the file that the cluster stands in.
    """

    cluster: dict[str, Any]
    user: dict[str, Any]
    folder: Path


def read_login(context: str) -> Login | None:
    """Read the cluster and the user of a context; None if the context or its cluster is missing.

    Raises:
        OSError: a file that an entry names cannot be read, is not a regular file, or is larger than 1 MB.
        ValueError: a file is no kubeconfig.
    """
    entries, _ = _read_entries()
    settings, _ = entries["contexts"].get(context, ({}, Path()))
    cluster, user = (entries[f"{kind}s"].get(str(settings.get(kind))) for kind in ("cluster", "user"))
    if cluster is None:
        return None
    return Login(_with_files(*cluster), _with_files(*user) if user else {}, cluster[1])


def _with_files(entry: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Check the files that an entry names: the kubernetes package would read any size, or wait for a pipe."""
    files = {key: folder / str(entry[key]) for key in _FILES if entry.get(key)}
    for path in files.values():
        read_file(path)
    return {**entry, **{key: str(path) for key, path in files.items()}}


def _read_entries() -> tuple[dict[str, dict[str, tuple[dict[str, Any], Path]]], str]:
    """Return contexts, clusters and users by name, each with its file's folder, and the current context.

    Raises:
        ValueError: a file is no kubeconfig.
    """
    entries: dict[str, dict[str, tuple[dict[str, Any], Path]]] = {"contexts": {}, "clusters": {}, "users": {}}
    current = ""
    for path, config in _read_files():
        try:
            for kind, named in entries.items():
                for entry in config.get(kind) or []:
                    # As kubectl does it: the first one of a name is taken.
                    what = dict(entry.get(kind.removesuffix("s")) or {})
                    named.setdefault(entry["name"], (what, path.parent.absolute()))
            current = current or config.get("current-context") or ""
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise _not_a_kubeconfig(path, error) from error
    return entries, current


def _read_files() -> Iterator[tuple[Path, dict[str, Any]]]:
    import yaml

    for path in kubeconfig_files():
        try:
            found = path.stat()
            config = _parse_file(path, found.st_mtime_ns, found.st_size)
        except (OSError, RecursionError, yaml.YAMLError) as error:
            raise _not_a_kubeconfig(path, error) from error
        yield path, config


@lru_cache(maxsize=8)
def _parse_file(path: Path, mtime_ns: int, size: int) -> dict[str, Any]:
    """Parse a file once for each time and size: 172 kB take 0.1 s, and the context is read at every screen."""
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return load_yaml(read_file(path), loader) or {}


def _not_a_kubeconfig(path: Path, error: Exception) -> ValueError:
    return ValueError(f"{path} is not a kubeconfig: {error}")


class Credential(NamedTuple):
    """How a user is known to a server.

    Attributes:
        user: the entries of a kubeconfig's user.
        renew_at: when to ask for another one, in seconds since the epoch; infinite where it does not expire.
    """

    user: dict[str, str]
    renew_at: float


class CredentialPlugin:
    """Runs the credential programs of one server, one at a time and without this program's terminal.

    Args:
        timeout: seconds that a program may take.
    """

    def __init__(self, timeout: float = TIMEOUT_S) -> None:
        self._timeout = timeout
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._closed = False

    def ask(self, settings: Mapping[str, Any], cluster: Mapping[str, Any], folder: Path) -> Credential:
        """Run a program and return the credential that it prints.

        Args:
            settings: the ``exec`` entry of the kubeconfig's user.
            cluster: the entry of the cluster, for programs that want it.
            folder: the folder of the kubeconfig, in which the program runs.

        Raises:
            BackendUnavailableError: there is no credential; the message says why.
        """
        command = [str(settings.get("command") or ""), *map(str, settings.get("args") or ())]
        name = plain(command[0])
        environ = {str(item["name"]): str(item["value"]) for item in settings.get("env") or ()}
        environ["KUBERNETES_EXEC_INFO"] = json.dumps(_exec_info(settings, cluster))
        if self._closed:
            raise BackendUnavailableError(f"{name}, is no longer asked")
        try:
            # A new session, so that the program cannot open this terminal as /dev/tty.
            done = run_command(
                command, timeout_s=self._timeout, max_bytes=_MOST_OUTPUT, env={**os.environ, **environ},
                cwd=str(folder), on_start=self._started,
            )  # fmt: skip
        except OverflowError:
            raise BackendUnavailableError(f"{name}, printed more than {_MOST_OUTPUT >> 20} MB") from None
        except (OSError, ValueError) as error:
            hint = plain(str(settings.get("installHint") or "")).strip()
            reason = getattr(error, "strerror", None) or str(error)
            raise BackendUnavailableError(
                f"{name}, cannot be started: {plain(reason)}: {hint or 'is it installed, and in PATH?'}"
            ) from error
        if done.code is None:
            raise BackendUnavailableError(
                f"{name}, gave no answer within {self._timeout:.0f} s: run it in a shell and see what it waits for"
            )
        if done.code:
            raise BackendUnavailableError(f"{name}, failed (exit code {done.code}){_stderr_text(done.err)}")
        return _parse_credential(done.out, str(settings.get("apiVersion") or ""), name)

    def close(self) -> None:
        """Kill the program that runs, and start no other; does not wait."""
        with self._lock:
            self._closed = True
            # Once the program has ended, its number may be another's.
            if self._process is not None and self._process.returncode is None:
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(self._process.pid, signal.SIGKILL)

    def _started(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        if self._closed:
            self.close()


def _exec_info(settings: Mapping[str, Any], cluster: Mapping[str, Any]) -> dict[str, Any]:
    spec: dict[str, Any] = {"interactive": False}
    if settings.get("provideClusterInfo"):
        spec["cluster"] = cluster
    return {"apiVersion": settings.get("apiVersion"), "kind": "ExecCredential", "spec": spec}


def _stderr_text(errors: bytes) -> str:
    text = " ".join(plain(errors.decode("utf-8", "replace")).split())
    return f": {mask_text('', text)[-_LONGEST_MESSAGE:]}" if text else ""


@dataclass
class _Status:
    token: str = ""
    clientCertificateData: str = ""
    clientKeyData: str = ""
    expirationTimestamp: datetime | None = None


@dataclass
class _ExecCredential:
    apiVersion: str
    status: _Status


def _parse_credential(output: bytes, version: str, name: str) -> Credential:
    try:
        answer = convert(decode_json(output), _ExecCredential)
    except (ValueError, RecursionError) as error:
        raise BackendUnavailableError(f"{name}, printed no credential: it is not an ExecCredential") from error
    if answer.apiVersion != version:
        raise BackendUnavailableError(
            f"{name}, speaks {plain(answer.apiVersion)}, and the kubeconfig wants {plain(version)}"
        )
    status = answer.status
    user = {"token": status.token} if status.token else {}
    if status.clientCertificateData and status.clientKeyData:
        user["client-certificate-data"] = _base64(status.clientCertificateData)
        user["client-key-data"] = _base64(status.clientKeyData)
    if not user:
        raise BackendUnavailableError(f"{name}, printed a credential with neither a token nor a certificate and key")
    expires_at = status.expirationTimestamp.timestamp() if status.expirationTimestamp else math.inf
    return Credential(user, max(expires_at - _MARGIN_S, time.time() + _SHORTEST_S))


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode("ascii")
