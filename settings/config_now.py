"""What config gives to a launch of the past if it were made today, to tell what of it has changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..backends.history.launch_record import ARGUMENT_PREFIX
from .launch_defaults import LaunchDefaults

if TYPE_CHECKING:
    from ..backends.history.journal import LaunchRecord
    from ..backends.runner import Runner
    from ..components import ComponentDoc
    from ..specs import runopts
    from .config import Settings


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
    from ..components import component_key, name_here, read_component
    from ..specs import TorchXTuiError

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
