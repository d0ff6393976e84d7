"""The root of the project's errors, the error of settings, and how errors are shown."""

from __future__ import annotations

from collections.abc import Iterable


class TorchXTuiError(Exception):
    """The root. Its message says what is wrong, where, and what to do."""

    def __str__(self) -> str:
        # Some errors are KeyErrors too, whose own str() would put the sentence in quotes.
        return str(self.args[0]) if self.args else type(self).__name__


class ConfigError(TorchXTuiError, ValueError):
    """A settings file cannot be read, or holds a name or value that is not known."""


def join_names(names: Iterable[str], nothing: str = "there is none") -> str:
    """Join names to one comma-separated text for an error message."""
    return ", ".join(names) or nothing


def describe_error(error: BaseException) -> str:
    """Describe any exception in one line: of a file its path and what is wrong, else its type and its first line."""
    text = str(error).strip()
    first = text.splitlines()[0] if text else ""
    if isinstance(error, TorchXTuiError):
        return first
    # The error of `os.getcwd` does not name what is missing; that of a file does.
    if isinstance(error, FileNotFoundError) and error.filename is None:
        return "the current folder was deleted: change to another folder"
    if isinstance(error, RuntimeError) and first == "Could not determine home directory.":
        return "~ cannot be expanded, because there is no home folder: set HOME"
    if isinstance(error, OSError) and error.filename is not None and error.strerror:
        return f"{error.filename}: {error.strerror}"
    name = type(error).__name__
    return f"{name}: {first}" if first else name
