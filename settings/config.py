"""Settings: config.toml in the config folder, read strictly, so that a typo is named and not passed over."""

from __future__ import annotations

import dataclasses
import os
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..base.errors import ConfigError
from ..base.files import NoHomeError, config_folder, read_file
from .choices import FRAMES_PER_SECOND, FRAMES_WORDS, NotifyEvent, ThemeName

CONFIG_VARIABLE = "TORCHX_TUI_CONFIG"
_MAX_NUMBER = 1_000_000_000


def _torchx_log_dirs() -> list[Path]:
    # Imported when jobs are looked for, which is after the first paint.
    from ..backends.torchxconfig import configured_log_dirs

    return configured_log_dirs()


# A letter, a named key, or one with modifiers, as Textual writes them: `n`, `ctrl+n`, `f5`, `slash`, `/`.
_KEY = re.compile(r"(?:(?:ctrl|shift|alt)\+)*(?:[^\s,+]|[a-z][a-z0-9_]+)")


@dataclass(frozen=True)
class LocalSettings:
    """The table ``[local]``: jobs on this machine."""

    max_running: int = 0
    """How many local jobs run at once; more wait as Pending. 0: no limit."""

    grace_seconds: float = 10.0
    """Seconds between SIGTERM and SIGKILL when a job is cancelled."""

    keep_days: float = 30.0
    """Finished runs and their logs are removed after so many days."""

    keep_gigabytes: float = 10.0
    """The oldest finished runs are removed while all of them together take more."""

    insight: bool = True
    """Let the ranks of jobs that are launched here be asked for their stacks and flight recorders; docs/hangs.md."""


@dataclass(frozen=True)
class DockerSettings:
    """The table ``[docker]``: jobs of local_docker."""

    grace_seconds: float = 10.0
    """Seconds between SIGTERM and SIGKILL when a job is cancelled; all of its replicas have them at once."""


@dataclass(frozen=True)
class KubernetesSettings:
    """The table ``[kubernetes]``: Volcano jobs of API servers."""

    contexts: tuple[str, ...] = ()
    """Contexts of the kubeconfig whose jobs are shown, each as a backend of its own; none means the current one."""

    namespace: str = ""
    """Whose jobs are shown; empty means the context's own namespace."""

    all_namespaces: bool = False
    """Show the jobs of all namespaces, where you may list them."""

    timeout_seconds: float = 10.0
    """Seconds that a server may take for the next part of an answer."""


@dataclass(frozen=True)
class SlurmSettings:
    """The table ``[slurm]``: jobs of a Slurm cluster."""

    interval_seconds: float = 10.0
    """Seconds between two questions to the controller, of all your sessions on this host together."""

    history_days: float = 14.0
    """How far back accounting is asked for jobs that have left the queue, in days."""

    all_users: bool = False
    """Show the queue of every user, not only yours."""

    insight: bool = True
    """Let ranks be asked for their stacks and flight recorders while they hang."""


@dataclass(frozen=True)
class WatchSettings:
    """The table ``[watch]``: how often backends are asked."""

    interval_seconds: float = 1.0
    """Seconds between two questions to a backend while one of its jobs is active and somebody looks."""

    slowest_seconds: float = 30.0
    """Seconds between two questions to a backend of which nothing changes, and while nobody looks."""

    timeout_seconds: float = 30.0
    """A backend that has not answered after so many seconds is asked anew."""

    stacks_of_stalled: bool = True
    """Take the stacks of a job that stalls, once, if that stops none of its processes."""


@dataclass(frozen=True)
class LaunchSettings:
    """The table ``[launch]``: where components come from, and how many jobs a launch may make."""

    component_folders: tuple[str, ...] = ()
    """Folders whose ``*.py`` files are searched for components, beside the current one."""

    most_of_a_sweep: int = 64
    """A sweep that would launch more jobs than this is refused."""

    most_replicas: int = 10_000
    """An app of more replicas than this, in all its roles, is refused: it is a slip of the finger."""

    profile: str = ""
    """The profile that is taken where none is named; empty means none."""

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
    """A table ``[profiles.NAME]``: what launches take where nobody says otherwise."""

    scheduler: str = ""
    """Where to launch; empty leaves the choice as it is."""

    workspace: str = ""
    """What to ship with the first role."""

    runopts: dict[str, Any] = field(default_factory=dict)
    """Run options of its scheduler, by name."""

    components: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Arguments by component and parameter, as ``[profiles.NAME.components."dist.ddp"]``."""


@dataclass(frozen=True)
class LogSettings:
    """The table ``[logs]``: reading logs."""

    error_patterns: tuple[str, ...] = ()
    """Regular expressions; a line with one of them is an error, besides those that are known to be."""

    spool_megabytes_per_job: int = 512
    """Megabytes that are kept of one job's logs where they are no files on this machine; the oldest lines go first."""

    spool_megabytes: int = 2048
    """Megabytes that are kept of all such logs; those of the job that was read longest ago go first."""


@dataclass(frozen=True)
class MetricsSettings:
    """The table ``[metrics]``: named values in logs."""

    names: tuple[str, ...] = ()
    """Names of values that are metrics wherever they stand, besides those that are known to be."""

    denied: tuple[str, ...] = ()
    """Names of values that are no metrics."""

    patterns: tuple[str, ...] = ()
    """Regular expressions for lines of other forms; named groups are values, and ``step``, ``total``, ``epoch``."""


@dataclass(frozen=True)
class NotifySettings:
    """The table ``[notify]``: telling you how jobs are when you are away."""

    events: tuple[NotifyEvent, ...] = ("end", "stall")
    """What is told: ``end``, ``failure``, ``stall``, ``first_step``; `run --notify` tells all of a job."""

    command: tuple[str, ...] = ()
    """A program and its arguments, which reads JSON on stdin."""

    webhook: str = ""
    """A URL that JSON is posted to; ``$NAME`` in it is taken from the environment."""

    headers: dict[str, str] = field(default_factory=dict)
    """Headers of the webhook; ``$NAME`` in them is taken from the environment."""

    mail: str = ""
    """An address that mail is sent to, by sendmail."""

    terminal: bool = False
    """Tell by the terminal too (OSC 9 and the bell), while a dashboard or ``torchx-tui wait`` is open in it."""

    @property
    def has_channel(self) -> bool:
        """Whether there is a way on which a process without a terminal can tell."""
        return bool(self.command or self.webhook or self.mail)


@dataclass(frozen=True)
class Settings:
    """Every setting there is, with its default."""

    theme: ThemeName = "auto"
    """``auto`` is dark, or the terminal's own colours where NO_COLOR is set or the terminal has 16 colours."""

    ascii: bool = False
    """Draw rules, bars and states with ASCII alone."""

    mouse: bool = True
    """Take the mouse; off leaves selecting text to the terminal."""

    bell: bool = False
    """Ring the terminal's bell when a job ends."""

    terminal_title: bool = True
    """Say in the terminal's title how many jobs run and failed."""

    read_only: bool = False
    """Launch, cancel and delete nothing."""

    frames_per_second: int = 0
    """The most often the screen is drawn, 30 to 240; 0 chooses 30 over SSH, else 60."""

    secret_names: tuple[str, ...] = ("*TOKEN*", "*SECRET*", "*PASSWORD*", "*KEY*")
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
    """Other keys for what has a name, such as ``"jobs.cancel" = "ctrl+x"``; docs/reference/keys.md lists the names."""

    def scheduler_params(self) -> dict[str, dict[str, Any]]:
        """Return the keyword arguments of each scheduler's factory."""
        return {
            "local_cwd": {
                "max_running": self.local.max_running,
                "grace_seconds": self.local.grace_seconds,
                "keep_days": self.local.keep_days,
                "insight": self.local.insight,
                "keep_bytes": int(self.local.keep_gigabytes * 1e9),
                "torchx_log_dirs": _torchx_log_dirs,
                "handle_signals": False,
            },
            "local_docker": {"grace_seconds": self.docker.grace_seconds},
            "kubernetes": {
                "namespace": self.kubernetes.namespace or None,
                "all_namespaces": self.kubernetes.all_namespaces,
                "timeout": self.kubernetes.timeout_seconds,
            },
            "slurm": {
                "interval": self.slurm.interval_seconds,
                "history_days": self.slurm.history_days,
                "all_users": self.slurm.all_users,
                "insight": self.slurm.insight,
            },
        }

    def contexts(self) -> dict[str, tuple[str, ...]]:
        """Return the contexts in which schedulers are asked."""
        return {"kubernetes": self.kubernetes.contexts}

    def spool_limits(self) -> tuple[int, int]:
        """Return the bytes that spools may keep: of one job, and in all."""
        job, total = self.logs.spool_megabytes_per_job, self.logs.spool_megabytes
        return max(1, job) * 1_000_000, max(1, total) * 1_000_000


def config_path(environ: Mapping[str, str] | None = None) -> Path:
    """Return where config.toml is looked for: ``TORCHX_TUI_CONFIG``, else in the config folder."""
    named = (os.environ if environ is None else environ).get(CONFIG_VARIABLE)
    return Path(named) if named else config_folder() / "config.toml"


def load_settings(path: Path | None = None) -> Settings:
    """Read the settings; where no file is named, a missing one gives the defaults.

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


def settings_that_hold() -> tuple[Settings, str]:
    """Load the settings without the invalid ones; return them, and a message that names all invalid ones or is empty.

    Valid settings of a file with mistakes are used, so that ``read_only`` and the names of secrets are. Of a file that
    is not TOML none are.
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
    # What is set elsewhere may name a profile.
    for name, value in sorted(data.items(), key=lambda item: item[0] != "profiles"):
        found = _find_fault({**sound, name: value}, path)
        if not found:
            sound[name] = value
        elif isinstance(value, Mapping):
            table: dict[str, Any] = {}
            for key, item in value.items():
                if found := _find_fault({**sound, name: {**table, key: item}}, path):
                    faults.append(found)
                else:
                    table[key] = item
            if table:
                sound[name] = table
        else:
            faults.append(found)
    more = [found.removeprefix(f"{path}: ") for found in faults[1:]]
    return _decode(sound, path), f"{'; '.join([*faults[:1], *more])}; the rest of the file is used"


def _find_fault(data: Mapping[str, Any], path: Path) -> str:
    try:
        _decode(data, path)
    except ConfigError as error:
        return str(error)
    return ""


def _read(path: Path, *, named: bool) -> dict[str, Any]:
    """Return what a file says; a file that nobody named may be missing."""
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
    # Nothing of this is needed for the defaults, and it costs 15 ms of the first paint.
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
        settings = msgspec.convert(data, Settings)
    except msgspec.ValidationError as error:
        words, _, where = str(error).partition(" - at `$.")
        raise ConfigError(f"{path}: {where.rstrip('`')}{': ' if where else ''}{words}") from error
    if settings.frames_per_second and settings.frames_per_second not in FRAMES_PER_SECOND:
        raise ConfigError(f"{path}: frames_per_second: {settings.frames_per_second}: {FRAMES_WORDS}, or 0")
    _check_numbers(settings, path)
    _check_patterns(settings.logs.error_patterns, path)
    _check_metric_patterns(settings.metrics.patterns, path)
    try:
        check_profile(settings.launch.profile, settings)
    except ConfigError as error:
        raise ConfigError(f"{path}: launch.profile: {error}") from None
    _check_keys(settings.keys, path)
    return settings


def _check_numbers(settings: Any, path: Path, where: str = "") -> None:
    """Refuse numbers below 0, too large for a clock, and NaN."""
    for item in dataclasses.fields(settings):
        value = getattr(settings, item.name)
        if dataclasses.is_dataclass(value):
            _check_numbers(value, path, f"{item.name}.")
        elif isinstance(value, (int, float)) and not 0 <= value <= _MAX_NUMBER:
            raise ConfigError(f"{path}: {where}{item.name} is {value}: use a number from 0 to {_MAX_NUMBER:,}")


def check_profile(name: str, settings: Settings) -> None:
    """Refuse a name that is no profile, with the valid ones.

    Raises:
        ConfigError: there is no such profile.
    """
    if name and name not in settings.profiles:
        known = ", ".join(settings.profiles) or "none: a table [profiles.NAME] of config.toml makes one"
        raise ConfigError(f"{name} is not a profile; there are {known}")


def _check_keys(keys: Mapping[str, str], path: Path) -> None:
    """Refuse what is no key; names are checked by the dashboard, which alone knows them."""
    for name, text in keys.items():
        if not all(_KEY.fullmatch(key) for key in text.split(",")):
            words = "write keys as n, N, f5, ctrl+n or slash, separated by commas"
            raise ConfigError(f'{path}: keys: {name} = "{text}": {words}')


def _check_profiles(data: Mapping[str, Any], path: Path) -> None:
    """Refuse what is no setting of a profile, and a component's name that TOML has taken apart."""
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


def _check_patterns(patterns: tuple[str, ...], path: Path) -> None:
    """Refuse what is no regular expression at the start, and not when the key for the next error is pressed."""
    if patterns:
        from ..logs.pattern.error_kinds import PatternError, error_pattern

        try:
            error_pattern(patterns)
        except PatternError as error:
            raise ConfigError(f"{path}: logs.error_patterns: {error}") from error


def _check_metric_patterns(patterns: tuple[str, ...], path: Path) -> None:
    """Refuse what is no pattern of lines with values."""
    if patterns:
        from ..diagnosis.progress.patterns import compile_pattern

        for pattern in patterns:
            try:
                compile_pattern(pattern)
            except ValueError as error:
                raise ConfigError(f"{path}: metrics.patterns: {error}") from error


def _refuse_unknown(data: Mapping[str, Any], kind: type[Any], path: Path, where: str = "") -> None:
    """Refuse a name that is no setting, with the nearest that is."""
    known = {field.name: getattr(kind(), field.name) for field in dataclasses.fields(kind)}
    for name, value in data.items():
        if name not in known:
            from ..backends.torchxconfig import nearest

            raise ConfigError(f"{path}: {where}{name} is not a setting; {nearest(name, known)}")
        if dataclasses.is_dataclass(known[name]) and isinstance(value, Mapping):
            _refuse_unknown(value, type(known[name]), path, f"{name}.")
