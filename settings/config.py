"""Settings: config.toml in the config folder. Unknown names and invalid values are errors."""

from __future__ import annotations

import dataclasses
import os
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

from ..base.errors import ConfigError
from ..base.files import NoHomeError, config_folder, read_file
from ..base.typed_data import convert
from .choices import FRAMES_PER_SECOND, FRAMES_WORDS, NotifyEvent, ThemeName

CONFIG_VARIABLE = "TORCHX_TUI_CONFIG"
_MAX_NUMBER = 1_000_000_000
Texts = tuple[str, ...]


# A letter, a named key, or one with modifiers, as Textual writes them: `n`, `ctrl+n`, `f5`, `slash`, `/`.
_KEY = re.compile(r"(?:(?:ctrl|shift|alt)\+)*(?:[^\s,+]|[a-z][a-z0-9_]+)")


def _at_least(minimum: float, default: Any) -> Any:
    return field(default=default, metadata={"minimum": minimum})


@dataclass(frozen=True)
class LocalSettings:
    """The table ``[local]``: jobs on this machine."""

    max_running: int = 0
    """How many local jobs run at once; more wait as Pending. 0: no limit."""

    grace_seconds: float = 10.0
    """Seconds between SIGTERM and SIGKILL when a job is cancelled."""

    keep_days: float = 30.0
    """Days after which finished runs and their logs are removed."""

    keep_gigabytes: float = 10.0
    """The oldest finished runs are removed while all of them together take more."""

    insight: bool = True
    """Prepare ranks so that their stacks and flight recorders can be read while they hang; docs/hangs.md."""


@dataclass(frozen=True)
class DockerSettings:
    """The table ``[docker]``: jobs of local_docker."""

    grace_seconds: float = 10.0
    """Seconds between SIGTERM and SIGKILL when a job is cancelled; all of its replicas have them at once."""


@dataclass(frozen=True)
class KubernetesSettings:
    """The table ``[kubernetes]``: Volcano jobs of API servers."""

    contexts: Texts = ()
    """Contexts of the kubeconfig to show, each as a backend of its own; empty means the current context."""

    namespace: str = ""
    """The namespace to show; empty means that of the context."""

    all_namespaces: bool = False
    """Show the jobs of all namespaces, where you may list them."""

    timeout_seconds: float = _at_least(1, 10.0)
    """Seconds that a server may take for the next part of a response."""


@dataclass(frozen=True)
class SlurmSettings:
    """The table ``[slurm]``: jobs of a Slurm cluster."""

    interval_seconds: float = _at_least(1, 10.0)
    """Seconds between two queries of the controller, for all your sessions on this host together."""

    history_days: float = 14.0
    """Days for which accounting is queried for jobs that have left the queue."""

    all_users: bool = False
    """Show the queue of every user, not only yours."""

    insight: bool = True
    """Prepare ranks so that their stacks and flight recorders can be read while they hang."""


@dataclass(frozen=True)
class WatchSettings:
    """The table ``[watch]``: how often backends are polled."""

    interval_seconds: float = _at_least(0.1, 1.0)
    """Seconds between two polls of a backend while one of its jobs is active and the dashboard is in use."""

    slowest_seconds: float = _at_least(1, 30.0)
    """Seconds between two polls of a backend when nothing changes or the dashboard is not in use."""

    timeout_seconds: float = _at_least(1, 30.0)
    """Seconds after which a poll without an answer is given up."""

    stacks_of_stalled: bool = True
    """Read the stacks of a job once when it stalls, if that stops none of its processes."""


@dataclass(frozen=True)
class LaunchSettings:
    """The table ``[launch]``: where components come from, and how many jobs a launch may make."""

    component_folders: Texts = ()
    """Folders whose ``*.py`` files are searched for components, beside the current one."""

    most_of_a_sweep: int = _at_least(1, 64)
    """The maximum number of jobs of a sweep."""

    most_replicas: int = _at_least(1, 10_000)
    """The maximum number of replicas of an app, all roles together: more is taken for a typing error."""

    profile: str = ""
    """The profile to use if none is named; empty means none."""

    copy_torchx_command: bool = False
    """Show and copy ``torchx run ...`` where the project has TorchX, in place of ``torchx-tui run ...``."""


@dataclass(frozen=True)
class ComponentSettings:
    """The table ``[components]``: what runs component files."""

    python: str = ""
    """The interpreter; empty means that of the project: `VIRTUAL_ENV`, `CONDA_PREFIX`, a `.venv`, else ours."""

    memory_gigabytes: float = 8.0
    """Memory that a component's process may take; 0: no limit. Linux alone has one."""


@dataclass(frozen=True)
class Profile:
    """A table ``[profiles.NAME]``: defaults of launches."""

    scheduler: str = ""
    """The scheduler; empty for no default."""

    workspace: str = ""
    """The workspace of the first role."""

    runopts: dict[str, Any] = field(default_factory=dict)
    """Run options of its scheduler, by name."""

    components: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Arguments by component and parameter, as ``[profiles.NAME.components."dist.ddp"]``."""


@dataclass(frozen=True)
class LogSettings:
    """The table ``[logs]``: reading logs."""

    error_patterns: Texts = ()
    """Regular expressions of further error lines."""

    spool_megabytes_per_job: int = _at_least(1, 512)
    """Megabytes kept of the logs of one job whose logs are streams; the oldest lines are dropped first."""

    spool_megabytes: int = _at_least(1, 2048)
    """Megabytes kept of all such logs; those of the least recently read job are dropped first."""


@dataclass(frozen=True)
class MetricsSettings:
    """The table ``[metrics]``: named values in logs."""

    names: Texts = ()
    """Names of further values that are metrics."""

    denied: Texts = ()
    """Names of values that are not metrics."""

    patterns: Texts = ()
    """Regular expressions for lines of other forms; named groups are values, and ``step``, ``total``, ``epoch``."""


@dataclass(frozen=True)
class NotifySettings:
    """The table ``[notify]``: notifications about jobs."""

    events: tuple[NotifyEvent, ...] = ("end", "stall")
    """Events to send: ``end``, ``failure``, ``stall``, ``first_step``; `run --notify` sends all."""

    command: Texts = ()
    """A program and its arguments; it gets JSON on stdin."""

    webhook: str = ""
    """A URL to post JSON to; ``$NAME`` in it is read from the environment."""

    headers: dict[str, str] = field(default_factory=dict)
    """Headers of the webhook; ``$NAME`` in them is read from the environment."""

    mail: str = ""
    """An address to send mail to, by sendmail."""

    terminal: bool = False
    """Notify by the terminal too (OSC 9 and the bell) while a dashboard or ``torchx-tui wait`` runs in it."""

    @property
    def has_channel(self) -> bool:
        """Whether there is a channel that needs no terminal."""
        return bool(self.command or self.webhook or self.mail)


@dataclass(frozen=True)
class Settings:
    """All settings with their defaults."""

    theme: ThemeName = "auto"
    """``auto`` is dark, or the terminal's own colours where NO_COLOR is set or the terminal has 16 colours."""

    ascii: bool = False
    """Draw with ASCII only."""

    mouse: bool = True
    """Use the mouse; without it the terminal selects text."""

    bell: bool = False
    """Ring the terminal's bell when a job ends."""

    terminal_title: bool = True
    """Show in the terminal's title how many jobs run and failed."""

    read_only: bool = False
    """Launch, cancel and delete nothing."""

    frames_per_second: int = 0
    """The maximum number of screen updates per second, 30 to 240; 0 chooses 30 over SSH, else 60."""

    secret_names: Texts = ("*TOKEN*", "*SECRET*", "*PASSWORD*", "*KEY*")
    """Names of variables, parameters and arguments whose values are masked on screen, in copies and in the log file."""

    local: LocalSettings = LocalSettings()
    docker: DockerSettings = DockerSettings()
    kubernetes: KubernetesSettings = KubernetesSettings()
    slurm: SlurmSettings = SlurmSettings()
    watch: WatchSettings = WatchSettings()
    launch: LaunchSettings = LaunchSettings()
    components: ComponentSettings = ComponentSettings()
    logs: LogSettings = LogSettings()
    metrics: MetricsSettings = MetricsSettings()
    notify: NotifySettings = NotifySettings()

    profiles: dict[str, Profile] = field(default_factory=dict)
    """Named sets of defaults for launches."""

    keys: dict[str, str] = field(default_factory=dict)
    """Keys of actions, such as ``"jobs.cancel" = "ctrl+x"``; docs/reference/keys.md lists the names."""

    def scheduler_params(self) -> dict[str, dict[str, Any]]:
        """Return the keyword arguments of each scheduler's factory, which ignores those that are not its own."""
        return {
            "local_cwd": {
                **vars(self.local),
                "keep_bytes": int(self.local.keep_gigabytes * 1e9),
                "handle_signals": False,
            },
            "local_docker": {**vars(self.docker)},
            "kubernetes": {
                "namespace": self.kubernetes.namespace or None,
                "all_namespaces": self.kubernetes.all_namespaces,
                "timeout": self.kubernetes.timeout_seconds,
            },
            "slurm": {**vars(self.slurm), "interval": self.slurm.interval_seconds},
        }


def config_path() -> Path:
    """Return the path of config.toml: ``TORCHX_TUI_CONFIG``, else in the config folder."""
    named = os.environ.get(CONFIG_VARIABLE)
    return Path(named) if named else config_folder() / "config.toml"


def load_settings(path: Path | None = None) -> Settings:
    """Load the settings; a missing file gives the defaults unless it was named.

    Args:
        path: the file; that of `config_path` if None.

    Raises:
        ConfigError: the file cannot be read, is no TOML, or holds a name or value that is not known; or there is no
            file of a path that was named, here or in the environment.
    """
    named = path is not None or bool(os.environ.get(CONFIG_VARIABLE))
    try:
        path = path or config_path()
    except NoHomeError:
        return Settings()
    data = _read(path, named=named)
    return _decode(data, path) if data else Settings()


def load_settings_lenient() -> tuple[Settings, str]:
    """Load the settings, skipping invalid ones; return a message that names these too, or an empty one.

    So ``read_only`` and the names of secrets hold even if the file has a mistake. None hold if it is not TOML.
    """
    try:
        return load_settings(), ""
    except ConfigError as error:
        fault = str(error)
    path = config_path()
    try:
        data = _read(path, named=True)
    except ConfigError:
        return Settings(), f"{fault}; the defaults are used"
    sound: dict[str, Any] = {}
    faults: list[str] = []
    # Profiles first: other settings may name one.
    for name, value in sorted(data.items(), key=lambda item: item[0] != "profiles"):
        is_table = isinstance(value, Mapping)
        for key, item in value.items() if is_table else [(name, value)]:
            more = {**sound, name: {**sound.get(name, {}), key: item} if is_table else item}
            try:
                _decode(more, path)
                sound = more
            except ConfigError as found:
                faults.append(str(found).removeprefix(f"{path}: " if faults else ""))
    return _decode(sound, path), f"{'; '.join(faults)}; the rest of the file is used"


def _read(path: Path, *, named: bool) -> dict[str, Any]:
    """Read a file; one that was not named may be missing."""
    try:
        text = read_file(path).decode("utf-8-sig")
    except FileNotFoundError:
        if named:
            raise ConfigError(f"{path} does not exist: make it from config.example.toml, or name another") from None
        return {}
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} cannot be read: it is not UTF-8") from error
    # Imported here: a program without a file does without 15 ms of first paint.
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib

    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path} is not valid TOML: {error}") from error


def _decode(data: Mapping[str, Any], path: Path) -> Settings:
    import msgspec

    _refuse_unknown(data, Settings, path)
    _check_profiles(data, path)
    try:
        settings = convert(data, Settings)
    except msgspec.ValidationError as error:
        words, _, where = str(error).partition(" - at `$.")
        where = where.rstrip("`")
        values = f": use one of {', '.join(valid)}" if (valid := _valid_values(where)) else ""
        raise ConfigError(f"{path}: {where}{': ' if where else ''}{words}{values}") from error
    if settings.frames_per_second and settings.frames_per_second not in FRAMES_PER_SECOND:
        raise ConfigError(f"{path}: frames_per_second: {settings.frames_per_second}: {FRAMES_WORDS}, or 0")
    _check_numbers(settings, path)
    _check_patterns(settings, path)
    try:
        check_profile(settings.launch.profile, settings)
    except ConfigError as error:
        raise ConfigError(f"{path}: launch.profile: {error}") from None
    return dataclasses.replace(settings, keys=_check_keys(settings.keys, path))


def _valid_values(where: str) -> Texts:
    """Return the valid values of a setting such as ``notify.events[...]``; empty if they are not a few names."""
    kind: Any = Settings
    for name in re.sub(r"\[.*?\]", "", where).split("."):
        kind = get_type_hints(kind).get(name) if dataclasses.is_dataclass(kind) else None
    choices = next((item for item in (kind, *get_args(kind)) if get_origin(item) is Literal), None)
    return get_args(choices)


def _check_numbers(settings: Any, path: Path, where: str = "") -> None:
    """Refuse numbers below their minimum (0 if none is declared), too large for a clock, and NaN."""
    for item in dataclasses.fields(settings):
        value = getattr(settings, item.name)
        if dataclasses.is_dataclass(value):
            _check_numbers(value, path, f"{item.name}.")
        elif isinstance(value, (int, float)):
            minimum = item.metadata.get("minimum", 0)
            if not minimum <= value <= _MAX_NUMBER:
                allowed = f"use a number from {minimum:g} to {_MAX_NUMBER:,}"
                raise ConfigError(f"{path}: {where}{item.name} is {value}: {allowed}")


def check_profile(name: str, settings: Settings) -> None:
    """Refuse an unknown profile; the error lists the valid ones.

    Raises:
        ConfigError: there is no such profile.
    """
    if name and name not in settings.profiles:
        known = ", ".join(settings.profiles) or "none: a table [profiles.NAME] of config.toml makes one"
        raise ConfigError(f"{name} is not a profile; there are {known}")


def _check_keys(keys: Mapping[str, str], path: Path) -> dict[str, str]:
    """Check the keys and return them without spaces; the dashboard checks the names."""
    checked = {name: ",".join(map(str.strip, text.split(","))) for name, text in keys.items()}
    for name, text in checked.items():
        if not all(map(_KEY.fullmatch, text.split(","))):
            allowed = "write keys as n, N, f5, ctrl+n or slash, separated by commas"
            raise ConfigError(f'{path}: keys: {name} = "{keys[name]}": {allowed}')
    return checked


def _check_profiles(data: Mapping[str, Any], path: Path) -> None:
    """Refuse unknown settings of a profile, and a component's name that TOML split at its dots."""
    profiles = data.get("profiles")
    for name, table in (profiles if isinstance(profiles, Mapping) else {}).items():
        if not isinstance(table, Mapping):
            raise ConfigError(f"{path}: profiles.{name} is not a table: write [profiles.{name}]")
        _refuse_unknown(table, Profile, path, f"profiles.{name}.")
        components = table.get("components")
        for component, values in (components if isinstance(components, Mapping) else {}).items():
            parted = isinstance(values, Mapping) and values and "." not in component and ":" not in component
            if parted and all(isinstance(value, Mapping) for value in values.values()):
                whole = f"{component}.{next(iter(values))}"
                raise ConfigError(f'{path}: profiles.{name}.components.{whole}: put quotes around it: "{whole}"')


def _check_patterns(settings: Settings, path: Path) -> None:
    """Refuse invalid regular expressions, and invalid patterns of metric lines."""
    where = "logs.error_patterns"
    try:
        if settings.logs.error_patterns:
            from ..logs.pattern.error_kinds import error_pattern

            error_pattern(settings.logs.error_patterns)
        where = "metrics.patterns"
        for pattern in settings.metrics.patterns:
            from ..diagnosis.progress.formats import user_format

            user_format(pattern)
    except ValueError as error:
        raise ConfigError(f"{path}: {where}: {error}") from error


def _refuse_unknown(data: Mapping[str, Any], kind: type[Any], path: Path, where: str = "") -> None:
    """Refuse unknown settings; the error names the nearest valid one."""
    known = {field.name: getattr(kind(), field.name) for field in dataclasses.fields(kind)}
    for name, value in data.items():
        if name not in known:
            from ..backends.torchxconfig import nearest

            raise ConfigError(f"{path}: {where}{name} is not a setting; {nearest(name, known)}")
        if dataclasses.is_dataclass(known[name]) and isinstance(value, Mapping):
            _refuse_unknown(value, type(known[name]), path, f"{name}.")
