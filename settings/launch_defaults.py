"""What config says of a launch before anybody types: `.torchxconfig`, and over it a profile of config.toml.

The form and `torchx-tui run` read both from here, so that they take the same.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..backends.history.launch_record import ARGUMENT_PREFIX
from ..backends.torchxconfig import (
    CONFIG_FILE,
    ConfigValue,
    find_configs,
    known_names,
    merged,
    nearest,
    option_value,
    read_config,
    section_options,
)
from ..base.errors import ConfigError
from ..base.trust import UntrustedError
from ..specs.handles import split_context
from ..specs.run_options import get_type_name

if TYPE_CHECKING:
    from ..backends.history.journal import LaunchRecord
    from ..backends.runner import Runner
    from ..backends.torchxconfig import Sections
    from ..components.model import ComponentDoc
    from ..specs.run_options import CfgVal, runopt, runopts
    from .config import Profile, Settings

FILE, PROFILE = CONFIG_FILE, "profile"
"""The two origins of a `Given`."""


@dataclass(frozen=True)
class Given:
    """One value that config gives.

    Attributes:
        value: of an argument, the scheduler and the workspace its text; of a run option the value of its type.
        origin: `FILE` or `PROFILE`.
        source: the file and section, or the profile, in words.
    """

    value: Any
    origin: str
    source: str


class LaunchDefaults:
    """The defaults of launches. A profile wins over `.torchxconfig`, what is typed over both.

    Args:
        sections: what the files `.torchxconfig` say.
        profiles: the profiles by name.
        profile: the profile in force, empty for none.
        problems: what does not keep a launch back, in words.
        file_faults: why a file cannot be read, in words.
        untrusted: the refusal of a file of another user, which is one of the faults.
    """

    def __init__(
        self,
        sections: Sections,
        profiles: Mapping[str, Profile],
        profile: str = "",
        problems: Sequence[str] = (),
        file_faults: Sequence[str] = (),
        untrusted: UntrustedError | None = None,
    ) -> None:
        self._sections = sections
        self.profile = profile if profile in profiles else ""
        self._profile = profiles.get(profile)
        self._problems = dict.fromkeys(problems)
        self._file_faults = dict.fromkeys(file_faults)
        self.untrusted = untrusted
        self._profile_faults: dict[str, None] = {}

    @classmethod
    def load(
        cls,
        settings: Settings,
        profile: str | None = "",
        environ: Mapping[str, str] | None = None,
        *,
        ignore_files: bool = False,
    ) -> LaunchDefaults:
        """Read the files; what cannot be read is one of the `faults`.

        Args:
            settings: what config.toml says.
            profile: the profile; that of the settings if empty, none at all if None.
            environ: the environment; this process's if None.
            ignore_files: read no `.torchxconfig`.
        """
        chosen = settings.launch.profile if profile == "" else profile or ""
        problems: list[str] = []
        faults: list[str] = []
        files: list[Sections] = []
        if chosen and chosen not in settings.profiles:
            known = ", ".join(settings.profiles) or "none"
            problems.append(f"{chosen} is not a profile of config.toml; there are {known}")
        untrusted: UntrustedError | None = None
        paths: list[str] = []
        try:
            paths = [] if ignore_files else find_configs(environ=environ)
        except ConfigError as error:
            faults.append(str(error))
        for path in paths:
            try:
                files.append(read_config(path))
            except ConfigError as error:
                faults.append(str(error))
                if isinstance(error, UntrustedError):
                    untrusted = untrusted or error
        return cls(merged(files), settings.profiles, chosen, problems, faults, untrusted)

    @property
    def problems(self) -> tuple[str, ...]:
        """What is not known or to be filled in, and `faults`; asking for options and arguments can add to it."""
        return (*self.faults, *self._problems)

    @property
    def faults(self) -> tuple[str, ...]:
        """What cannot be read, so that a launch would go elsewhere than config says; asking for options can add."""
        return (*self._file_faults, *self._profile_faults)

    @property
    def has_file_faults(self) -> bool:
        """Whether there are faults that `ignore_files` takes away."""
        return bool(self._file_faults)

    def ignore_files(self) -> None:
        """Leave out what the files `.torchxconfig` say, and what is wrong with them."""
        self._sections, self._file_faults, self.untrusted = {}, {}, None

    def scheduler(self) -> Given | None:
        """Return where to launch."""
        if self._profile and self._profile.scheduler:
            return self._of_profile(self._profile.scheduler)
        return self._of_section("cli:run", "scheduler")

    def listed_scheduler(self) -> Given | None:
        """Return whose jobs `list` shows."""
        return self._of_section("cli:list", "scheduler")

    def component(self) -> str:
        """Return what to launch, empty where nothing says so."""
        given = self._of_section("cli:run", "component")
        return given.value if given else ""

    def workspace(self) -> Given | None:
        """Return what to ship with the first role."""
        if self._profile and self._profile.workspace:
            return self._of_profile(self._profile.workspace)
        return self._of_section("cli:run", "workspace")

    def components(self) -> list[str]:
        """Return the components that there are defaults for."""
        named = [section.partition(":") for section in self._sections]
        of_profile = self._profile.components if self._profile else {}
        return list(
            dict.fromkeys([*(name for prefix, _, name in named if prefix == "component" and name), *of_profile])
        )

    def arguments(self, component: str, doc: ComponentDoc | None = None) -> dict[str, Given]:
        """Return the texts of a component's arguments, by parameter.

        Args:
            component: its name.
            doc: what is known of it; an argument that it does not have is then a problem, and left out.
        """
        values = self._sections.get(f"component:{component}", {})
        found = {key: _of_file(value, _file_text(value.text, key, doc)) for key, value in values.items()}
        places = {key: value.place for key, value in values.items()}
        if self._profile:
            for key, value in self._profile.components.get(component, {}).items():
                found[key] = self._of_profile(_argument_text(value, key, doc))
                places[key] = f'profiles.{self.profile}.components."{component}".{key}'
        if doc is None:
            return found
        known = [parameter.name for parameter in doc.parameters]
        for key in [key for key in found if key not in known]:
            self._say_unknown(f"{places[key]} is not an argument of {component}", key, known)
            del found[key]
        return found

    def has_options(self, scheduler: str) -> bool:
        """Tell whether anything is said of a scheduler's run options, without knowing these."""
        registered, _ = split_context(scheduler)
        of_profile = self._profile and self._profile.runopts and self._counts_for(self._profile, scheduler)
        return bool(self._sections.get(registered) or of_profile)

    def options(self, scheduler: str, known: runopts) -> dict[str, Given]:
        """Return the values of run options, by declared name.

        Args:
            scheduler: the scheduler's name; its context, where it has one, does not matter to `.torchxconfig`.
            known: its options; what is none of them is a problem, what is of another type a fault.
        """
        registered, _ = split_context(scheduler)
        found: dict[str, Given] = {}
        options, warnings, errors = section_options(self._sections.get(registered, {}), known)
        self._add_problems(warnings)
        self._file_faults |= dict.fromkeys(errors)
        for name, value in options.items():
            found[name] = _of_file(value, option_value(value, known))
        if self._profile and self._counts_for(self._profile, scheduler):
            found |= self._profile_options(self._profile, registered, known)
        return found

    @staticmethod
    def _counts_for(profile: Profile, scheduler: str) -> bool:
        return profile.scheduler in ("", scheduler, split_context(scheduler)[0])

    def _profile_options(self, profile: Profile, scheduler: str, known: runopts) -> dict[str, Given]:
        found = {}
        for key, value in profile.runopts.items():
            place = f"profiles.{self.profile}.runopts.{key}"
            name = known.canonical_key(key)
            option = known.get(key)
            if name is None or option is None:
                self._say_unknown(f"{place} is not a run option of {scheduler}", key, known_names(known))
                continue
            try:
                found[name] = self._of_profile(_option_value(value, option))
            except ValueError as error:
                self._profile_faults[f"{place}: {error}"] = None
        return found

    def _of_profile(self, value: Any) -> Given:
        return Given(value, PROFILE, f"profile {self.profile}")

    def _of_section(self, section: str, key: str) -> Given | None:
        value = self._sections.get(section, {}).get(key)
        if value is None or value.text in ("", "None"):
            return None
        return _of_file(value, value.text)

    def _say_unknown(self, what: str, key: str, known: Iterable[str]) -> None:
        self._add_problems([f"{what}; {nearest(key, known)}"])

    def _add_problems(self, problems: Iterable[str]) -> None:
        self._problems |= dict.fromkeys(problems)


def _of_file(value: ConfigValue, meaning: Any) -> Given:
    return Given(meaning, FILE, f"{value.file}, section [{value.section}]")


def _file_text(text: str, name: str, doc: ComponentDoc | None) -> str:
    """Return a value of `.torchxconfig` as a person would type it: that of `*args` is split at spaces, as by TorchX."""
    parameter = doc.parameter(name) if doc else None
    if parameter is None or parameter.kind != "var_positional":
        return text
    words = text.split()
    return shlex.join(words[1:] if words[:1] == ["--"] else words)


def _argument_text(value: Any, name: str, doc: ComponentDoc | None) -> str:
    """Return a value of config.toml as a person would type it for an argument."""
    from ..components.values import to_text

    parameter = doc.parameter(name) if doc else None
    if parameter is not None and parameter.kind == "var_positional" and isinstance(value, list):
        return shlex.join(str(word) for word in value)
    return str(value).lower() if isinstance(value, bool) else to_text(value)


def _option_value(value: Any, option: runopt) -> CfgVal:
    """Return a value of config.toml as one of a run option's type.

    Raises:
        ValueError: it is of another type.
    """
    if isinstance(value, str):
        return None if value == "None" else option.cast_to_type(value)
    if option.is_type_list_of_str and isinstance(value, list):
        return [str(item) for item in value]
    if option.is_type_dict_of_str and isinstance(value, dict):
        return {str(key): str(item) for key, item in value.items()}
    kind = option.opt_type
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if kind is str and isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if isinstance(kind, type) and isinstance(value, kind) and isinstance(value, bool) == (kind is bool):
        return value  # type: ignore[return-value]
    raise ValueError(f"{value} is not of type {get_type_name(kind)}")


def config_now(settings: Settings, profile: str | None, record: LaunchRecord, runner: Runner) -> dict[str, str]:
    """Return what config gives, as `LaunchOrigin.config` keeps it; files are read.

    A launch does not keep which profile it was made with: of all profiles the one that gives what is most like what was
    given then counts, so that nothing seems changed where only another profile is in force.

    Args:
        settings: what config.toml says.
        profile: the profile in force, as for `LaunchDefaults.load`.
        record: the launch.
        runner: knows the run options.
    """
    known, doc = runner.run_opts(record.scheduler), _component(record)
    names = dict.fromkeys((profile, None, *settings.profiles))
    found = [_given(LaunchDefaults.load(settings, name), record, known, doc) for name in names]
    return min(found, key=lambda given: len(given.items() ^ record.config.items()))


def _component(record: LaunchRecord) -> ComponentDoc | None:
    from ..base.errors import TorchXTuiError
    from ..components.finder import component_key, name_here, read_component

    if not record.component:
        return None
    try:
        return read_component(name_here(component_key(record.component, record.cwd)))
    except TorchXTuiError:
        return None


def _given(defaults: LaunchDefaults, record: LaunchRecord, known: runopts, doc: ComponentDoc | None) -> dict[str, str]:
    from ..specs.run_options import format_value

    options = defaults.options(record.scheduler, known)
    found = {name: format_value(given.value) for name, given in options.items()}
    if record.component:
        arguments = defaults.arguments(record.component, doc)
        found |= {f"{ARGUMENT_PREFIX}{name}": str(given.value) for name, given in arguments.items()}
    for name, given in (("scheduler", defaults.scheduler()), ("workspace", defaults.workspace())):
        if given is not None:
            found[name] = given.value
    return found
