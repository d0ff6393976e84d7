"""Defaults of launches: `.torchxconfig`, and over it a profile of config.toml.

The form and `torchx-tui run` both resolve them here.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from ..backends.history.launch_record import ARGUMENT_PREFIX
from ..backends.torchxconfig import (
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
from ..specs.run_options import format_value, get_type_name
from .config import Profile

if TYPE_CHECKING:
    from ..backends.history.journal import LaunchRecord
    from ..backends.runner import Runner
    from ..backends.torchxconfig import Sections
    from ..components.model import ComponentDoc
    from ..specs.run_options import CfgVal, runopt, runopts
    from .config import Settings

_PROFILE = "profile "


class Given(NamedTuple):
    """One value that config gives.

    Attributes:
        value: a text; of a run option a value of its type.
        source: the file and section, or the profile, for a message.
    """

    value: Any
    source: str

    @property
    def is_of_profile(self) -> bool:
        """Whether it comes from a profile of config.toml, not from a `.torchxconfig`."""
        return self.source.startswith(_PROFILE)


@dataclass(frozen=True)
class LaunchDefaults:
    """What config says of launches: the files `.torchxconfig`, and over them a profile of config.toml.

    Attributes:
        sections: the sections of the files.
        profile: the name of the profile in force; empty for none.
        values: the values of that profile.
        problems: other mistakes, as sentences.
        file_faults: why files cannot be read, as sentences: a launch would go elsewhere than config says.
        untrusted: the refusal of a file of another user, which is one of the faults.
    """

    sections: Sections = field(default_factory=dict)
    profile: str = ""
    values: Profile = field(default_factory=Profile)
    problems: tuple[str, ...] = ()
    file_faults: tuple[str, ...] = ()
    untrusted: UntrustedError | None = None

    @classmethod
    def load(
        cls,
        settings: Settings,
        profile: str | None = "",
        *,
        ignore_files: bool = False,
    ) -> LaunchDefaults:
        """Read the files; one that cannot be read is a fault.

        Args:
            settings: the settings of config.toml.
            profile: the profile; that of the settings if empty, none if None.
            ignore_files: read no `.torchxconfig`.
        """
        chosen = settings.launch.profile if profile == "" else profile or ""
        problems: tuple[str, ...] = ()
        if chosen and chosen not in settings.profiles:
            known = ", ".join(settings.profiles) or "none"
            problems = (f"{chosen} is not a profile of config.toml; there are {known}",)
            chosen = ""
        faults: list[ConfigError] = []
        files: list[Sections] = []
        paths: list[str] = []
        try:
            paths = [] if ignore_files else find_configs()
        except ConfigError as error:
            faults.append(error)
        for path in paths:
            try:
                files.append(read_config(path))
            except ConfigError as error:
                faults.append(error)
        untrusted = next((error for error in faults if isinstance(error, UntrustedError)), None)
        values = settings.profiles[chosen] if chosen else Profile()
        return cls(merged(files), chosen, values, problems, tuple(map(str, faults)), untrusted)

    def without_files(self) -> LaunchDefaults:
        """Return the defaults of the profile alone."""
        return replace(self, sections={}, file_faults=(), untrusted=None)

    def scheduler(self) -> Given | None:
        """Return the scheduler to launch on."""
        return self._of_run("scheduler", self.values.scheduler)

    def listed_scheduler(self) -> Given | None:
        """Return the scheduler whose jobs `list` shows."""
        return self._of_section("cli:list", "scheduler")

    def component(self) -> str:
        """Return the component to launch; empty if none is named."""
        given = self._of_section("cli:run", "component")
        return given.value if given else ""

    def workspace(self) -> Given | None:
        """Return the workspace of the first role."""
        return self._of_run("workspace", self.values.workspace)

    def components(self) -> list[str]:
        """Return the components that there are defaults for."""
        parts = [section.partition(":") for section in self.sections]
        named = [name for prefix, _, name in parts if prefix == "component" and name]
        return list(dict.fromkeys([*named, *self.values.components]))

    def of_profile(self, value: Any) -> Given:
        """Return a value of the profile."""
        return Given(value, f"{_PROFILE}{self.profile}")

    def _of_run(self, key: str, text: str) -> Given | None:
        return self.of_profile(text) if text else self._of_section("cli:run", key)

    def _of_section(self, section: str, key: str) -> Given | None:
        value = self.sections.get(section, {}).get(key)
        if value is None or value.text in ("", "None"):
            return None
        return _of_file(value, value.text)


@dataclass
class Resolved:
    """The values that config gives a launch, and the mistakes in it.

    Attributes:
        options: the values of run options, by declared name.
        arguments: the texts of the component's arguments, by parameter.
        file_faults: what cannot be read in `.torchxconfig`, as sentences.
        profile_faults: what cannot be read in the profile.
        others: unknown names and other mistakes, which are left out.
    """

    options: dict[str, Given] = field(default_factory=dict)
    arguments: dict[str, Given] = field(default_factory=dict)
    file_faults: list[str] = field(default_factory=list)
    profile_faults: list[str] = field(default_factory=list)
    others: list[str] = field(default_factory=list)

    @property
    def faults(self) -> list[str]:
        """Mistakes that prevent a launch: it would go elsewhere than config says."""
        return [*self.file_faults, *self.profile_faults]

    @property
    def problems(self) -> list[str]:
        """All mistakes, faults first."""
        return list(dict.fromkeys([*self.faults, *self.others]))

    def config(self) -> dict[str, str]:
        """Return the values as `LaunchOrigin.config` has them."""
        found = {name: format_value(given.value) for name, given in self.options.items()}
        return found | {f"{ARGUMENT_PREFIX}{name}": str(given.value) for name, given in self.arguments.items()}


def resolve(
    defaults: LaunchDefaults,
    scheduler: str = "",
    known: runopts | None = None,
    component: str = "",
    doc: ComponentDoc | None = None,
) -> Resolved:
    """Resolve the defaults for a scheduler and a component.

    Args:
        defaults: the defaults.
        scheduler: the scheduler's name; a context in it does not matter to `.torchxconfig`.
        known: its run options; without them none are resolved.
        component: the component's name; without it no arguments are resolved.
        doc: its description; without it the names of arguments are not checked.
    """
    resolved = Resolved(file_faults=[*defaults.file_faults], others=[*defaults.problems])
    if known is not None:
        _resolve_options(resolved, defaults, scheduler, known)
    table = f'profiles.{defaults.profile}.components."{component}"'
    given = [
        (name, _of_file(value, _file_text(value.text, name, doc)), value.place)
        for name, value in defaults.sections.get(f"component:{component}", {}).items()
    ]
    given += [
        (name, defaults.of_profile(_argument_text(value, name, doc)), f"{table}.{name}")
        for name, value in defaults.values.components.get(component, {}).items()
    ]
    for name, value, place in given:
        if doc is None or doc.parameter(name):
            resolved.arguments[name] = value
        else:
            valid = nearest(name, [parameter.name for parameter in doc.parameters])
            resolved.others.append(f"{place} is not an argument of {component}; {valid}")
    return resolved


def _resolve_options(resolved: Resolved, defaults: LaunchDefaults, scheduler: str, known: runopts) -> None:
    registered, _ = split_context(scheduler)
    found, warnings, errors = section_options(defaults.sections.get(registered, {}), known)
    resolved.others += warnings
    resolved.file_faults += errors
    resolved.options = {name: _of_file(value, option_value(value, known)) for name, value in found.items()}
    for key, value in defaults.values.runopts.items() if _is_for(defaults.values, scheduler) else ():
        where = f"profiles.{defaults.profile}.runopts.{key}"
        name, option = known.canonical_key(key), known.get(key)
        if name is None or option is None:
            valid = nearest(key, known_names(known))
            resolved.others.append(f"{where} is not a run option of {registered}; {valid}")
            continue
        try:
            resolved.options[name] = defaults.of_profile(_option_value(value, option))
        except ValueError as error:
            resolved.profile_faults.append(f"{where}: {error}")


def _is_for(profile: Profile, scheduler: str) -> bool:
    return profile.scheduler in ("", scheduler, split_context(scheduler)[0])


def _of_file(value: ConfigValue, meaning: Any) -> Given:
    return Given(meaning, f"{value.file}, section [{value.section}]")


def _takes_words(name: str, doc: ComponentDoc | None) -> bool:
    parameter = doc.parameter(name) if doc else None
    return parameter is not None and parameter.kind == "var_positional"


def _file_text(text: str, name: str, doc: ComponentDoc | None) -> str:
    """Return a value of `.torchxconfig` as the form has it; TorchX splits that of `*args` at spaces."""
    if not _takes_words(name, doc):
        return text
    words = text.split()
    return shlex.join(words[1:] if words[:1] == ["--"] else words)


def _argument_text(value: Any, name: str, doc: ComponentDoc | None) -> str:
    """Return a value of config.toml as the form has it."""
    from ..components.values import to_text

    if isinstance(value, list) and _takes_words(name, doc):
        return shlex.join(map(str, value))
    return str(value).lower() if isinstance(value, bool) else to_text(value)


def _option_value(value: Any, option: runopt) -> CfgVal:
    """Convert a value of config.toml to the type of a run option.

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
    if type(value) is int and kind in (float, str):
        return kind(value)
    if type(value) is kind:
        return value
    raise ValueError(f"{value} is not of type {get_type_name(kind)}")


def config_now(settings: Settings, profile: str | None, record: LaunchRecord, runner: Runner) -> dict[str, str]:
    """Return what config gives to a launch now, as `LaunchOrigin.config` has it; reads files.

    Args:
        settings: the settings of config.toml.
        profile: the profile in force, see `LaunchDefaults.load`; for launches that do not record theirs.
        record: the launch.
        runner: knows the run options.
    """
    of_launch = profile if record.profile is None else record.profile or None
    defaults = LaunchDefaults.load(settings, of_launch)
    known, component = runner.scheduler(record.scheduler).run_opts(), record.component
    found = resolve(defaults, record.scheduler, known, component, _component(record)).config()
    for name, given in (("scheduler", defaults.scheduler()), ("workspace", defaults.workspace())):
        if given is not None:
            found[name] = given.value
    return found


def _component(record: LaunchRecord) -> ComponentDoc | None:
    from ..base.errors import TorchXTuiError
    from ..components.finder import component_key, name_here, read_component

    if not record.component:
        return None
    try:
        return read_component(name_here(component_key(record.component, record.cwd)))
    except TorchXTuiError:
        return None
