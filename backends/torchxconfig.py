"""`.torchxconfig`: what TorchX's users keep in their projects, read as TorchX reads it, and written.

It is an INI file, its keys case-sensitive: a section `[SCHEDULER]` of run options, `[component:NAME]` of arguments,
`[cli:run]` and `[cli:list]` of what a command takes where its command line says nothing. Files are looked up when
somebody asks; of two, the project's wins over the one in the home folder (TorchX has it the other way).
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from ..base.errors import ConfigError
from ..base.files import current_folder, home_folder, is_file, path_exists, read_file
from ..base.trust import check_owner

if TYPE_CHECKING:
    import configparser

    from ..specs.run_options import CfgVal, runopt, runopts


CONFIG_FILE = ".torchxconfig"
CONFIG_VARIABLE = "TORCHXCONFIG"
PLACEHOLDER = "#FIXME"
"""What `dump` writes for an option that somebody has to fill in begins with this."""
_NONE = "None"
_LONGEST_PLACEHOLDER = 60
_HEADER = re.compile(r"\[(?P<name>.+)\]")
_KEY = re.compile(r"(?P<key>[^\s#;\[=:][^=:]*?)\s*[=:]")


logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class ConfigValue:
    """One value of a file.

    Attributes:
        text: as it stands there.
        file: the file's path.
        section: its section, without the brackets.
        key: its key.
        line: its line, from 1; 0 where that is not known.
    """

    text: str
    file: str
    section: str
    key: str
    line: int = 0

    @property
    def place(self) -> str:
        """File and line, as a compiler writes them, then section and key."""
        return f"{self.file}{f':{self.line}' if self.line else ''}: [{self.section}] {self.key}"


Sections = dict[str, dict[str, ConfigValue]]


def find_configs(dirs: Iterable[str | Path] | None = None, environ: Mapping[str, str] | None = None) -> list[str]:
    """Return the files that count, the one that wins first.

    Args:
        dirs: where they are looked for, the current folder and then the home folder if there are none.
            ``TORCHXCONFIG`` in the environment names the only file instead; empty, it says that there is none.
        environ: the environment; this process's if None.

    Raises:
        ConfigError: ``TORCHXCONFIG`` names no file.
    """
    named = (os.environ if environ is None else environ).get(CONFIG_VARIABLE)
    if named is not None:
        if named and not is_file(named):
            raise ConfigError(f"{CONFIG_VARIABLE} names {named}, which is not a file: correct it, or unset it")
        return [named] if named else []
    folders = [*(dirs or ())] or [*filter(None, (current_folder(), home_folder()))]
    paths = dict.fromkeys(Path(folder, CONFIG_FILE) for folder in folders)
    return [str(path) for path in paths if path_exists(path)]


def read_config(path: str | Path) -> Sections:
    """Return the sections of one file, with their values by key.

    Raises:
        ConfigError: it cannot be read, or is no INI file; the message has the file and the line.
        UntrustedError: it belongs to another user, and the environment does not name it.
    """
    if os.fspath(path) != os.environ.get(CONFIG_VARIABLE):
        check_owner(Path(path))
    try:
        text = read_file(path).decode("utf-8-sig")
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} cannot be read: it is not UTF-8") from error
    return _parse(text, str(path))


def _parse(text: str, path: str) -> Sections:
    import configparser

    parser = _configparser()
    try:
        parser.read_string(text, path)
    except configparser.Error as error:
        raise ConfigError(_fault(error, path)) from error
    lines = _line_numbers(text)
    sections: Sections = {}
    for section in parser.sections():
        values = sections.setdefault(section, {})
        for key in {**parser.defaults(), **dict.fromkeys(parser.options(section))}:
            line = lines.get((section, key)) or lines.get((parser.default_section, key), 0)
            try:
                value = parser.get(section, key)
            except configparser.InterpolationError as error:
                place = ConfigValue("", path, section, key, line).place
                raise ConfigError(f"{place}: write a single % as %% ({_in_one_line(error)})") from error
            values[key] = ConfigValue(value, path, section, key, line)
    return sections


def _configparser() -> configparser.ConfigParser:
    import configparser

    parser = configparser.ConfigParser()
    # Usually keys are lowered.
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    return parser


def _fault(error: configparser.Error, path: str) -> str:
    import configparser

    # MissingSectionHeaderError is a ParsingError without its list.
    errors = getattr(error, "errors", None)
    line = errors[0][0] if errors else getattr(error, "lineno", None)
    where = f"{path}:{line}" if line else path
    if isinstance(error, configparser.MissingSectionHeaderError):
        return f"{where}: a section such as [local_cwd] must come first"
    if isinstance(error, configparser.DuplicateSectionError):
        return f"{where}: the section [{error.section}] appears twice: merge them"
    if isinstance(error, configparser.DuplicateOptionError):
        return f"{where}: [{error.section}] {error.option} is given twice: remove one"
    if isinstance(error, configparser.ParsingError):
        return f"{where}: this is neither [section] nor key = value"
    return f"{where}: {_in_one_line(error)}"


def _in_one_line(error: Exception) -> str:
    return " ".join(str(error).split())


def _line_numbers(text: str) -> dict[tuple[str, str], int]:
    """Return the line of each key, by section and key; `configparser` does not keep it."""
    found: dict[tuple[str, str], int] = {}
    section = ""
    for number, line in enumerate(text.splitlines(), 1):
        if header := _HEADER.match(line):
            section = header["name"]
        elif key := _KEY.match(line):
            found.setdefault((section, key["key"]), number)
    return found


def merged(files: Iterable[Sections]) -> Sections:
    """Return the sections of several files as one; a value of an earlier file wins."""
    both: Sections = {}
    for sections in files:
        for name, values in sections.items():
            known = both.setdefault(name, {})
            known.update({key: value for key, value in values.items() if key not in known})
    return both


def section_options(
    values: Mapping[str, ConfigValue], known: runopts
) -> tuple[dict[str, ConfigValue], list[str], list[str]]:
    """Return the values of a scheduler's section that are run options, and what is wrong with the others.

    Args:
        values: the section's values by key, of one file or of several.
        known: the scheduler's options. Their texts are read as those of ``-cfg`` are, see `option_value`.

    Returns:
        The values by declared name; warnings about keys that are no option or not filled in yet; errors about values
        that are not of their option's type, or given twice. Each names file and line.
    """
    options: dict[str, ConfigValue] = {}
    warnings, errors = [], []
    for key, value in values.items():
        name = known.canonical_key(key)
        if name is None:
            warnings.append(f"{value.place} is not a run option of {value.section}; {nearest(key, known_names(known))}")
        elif value.text.startswith(PLACEHOLDER):
            warnings.append(f"{value.place} must still be filled in")
        else:
            try:
                mine, before = option_value(value, known), options.get(name, value)
                if before.file == value.file and option_value(before, known) != mine:
                    errors.append(f"{value.place} is given as {before.key} too, with another value: remove one")
                options.setdefault(name, value)
            except ConfigError as error:
                errors.append(str(error))
    return options, warnings, errors


def option_value(value: ConfigValue, known: runopts) -> CfgVal:
    """Return the value of a run option: of its type, or None where the file says ``None``.

    Raises:
        ConfigError: the text is no value of the option's type, or there is no such option.
    """
    option = known.get(value.key)
    if option is None:
        raise ConfigError(f"{value.place} is not a run option; {nearest(value.key, known_names(known))}")
    if value.text == _NONE:
        return None
    try:
        return option.cast_to_type(value.text)
    except ValueError as error:
        raise ConfigError(f"{value.place}: {error}") from error


def known_names(known: runopts) -> list[str]:
    """Return the names of run options."""
    return [name for name, _ in known]


def nearest(name: str, known: Iterable[str]) -> str:
    """Return in words what was meant by a name that is not known: the nearest one, else all there are."""
    import difflib

    names = list(known)
    near = difflib.get_close_matches(name, names)
    if near:
        return f"did you mean {near[0]}?"
    return f"known are {', '.join(names)}" if names else "there is none"


def dump(f: TextIO, schedulers: list[str] | None = None, required_only: bool = False) -> None:
    """Write a file with a section for each scheduler, its options at their defaults.

    Args:
        f: where it is written.
        schedulers: the names; every scheduler that can be loaded if None.
        required_only: leave out what has a default. An option that must be given is there in any case, with a text
            that says what is to be filled in.

    Raises:
        UnknownSchedulerException: there is no scheduler of a name.
    """
    from ..specs.errors import BackendUnavailableError
    from .registry import create_scheduler, get_scheduler_factories

    parser = _configparser()
    for name in schedulers or get_scheduler_factories():
        try:
            with closing(create_scheduler(name, "_")) as made:
                options = made.run_opts()
        except BackendUnavailableError as error:
            if schedulers:
                raise
            logger.warning("%s is left out: %s", name, error)
            continue
        parser.add_section(name)
        for key, option in options:
            if option.is_required or not required_only:
                text = _placeholder(option) if option.is_required else _default_text(option.default)
                parser.set(name, key, text.replace("%", "%%"))
    parser.write(f)


def _placeholder(option: runopt) -> str:
    from ..specs.run_options import get_type_name

    text = f"{PLACEHOLDER}:({get_type_name(option.opt_type)}) {option.help}"
    return text if len(text) <= _LONGEST_PLACEHOLDER else f"{text[:_LONGEST_PLACEHOLDER]}..."


def _default_text(default: CfgVal) -> str:
    from ..specs.run_options import format_value

    return format_value(default) or _NONE if isinstance(default, (list, dict)) else str(default)
