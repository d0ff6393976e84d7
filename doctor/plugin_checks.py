"""Checks of packages that add schedulers, components and named resources."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from ..backends.types import Finding
from ..base.modules import plugin_sources_error
from . import Findings

if TYPE_CHECKING:
    from ..backends.runner import Runner

_ADVICE = "fix, update or uninstall the package"


def plugin_findings(runner: Runner) -> Findings:
    """Yield each plugin with its group, and the faults of those that cannot be used.

    The checks of backends report schedulers that cannot be loaded.
    """
    if fault := plugin_sources_error():
        yield Finding("error", fault, "both sources are used; set it to one of these, or unset it")
    found = [*_schedulers(runner), *_components(), *_named_resources()]
    yield from found
    if not found:
        yield Finding("ok", "no other package adds schedulers, components or named resources")


def interpreter_findings() -> Findings:
    """Yield the interpreter of components in the current folder, and whether it has TorchX, without running it."""
    from ..guest.environment import Environment
    from ..guest.interpreter import OLDEST, choose_interpreter
    from ..guest.settings import guest_settings

    interpreter = choose_interpreter(Path.cwd() / "component.py", guest_settings().python)
    environment = Environment(interpreter.path)
    version = tuple(int(part) for part in environment.version.split(".") if part)
    fault = interpreter.fault()
    if not shutil.which(interpreter.path):
        fault = f"{interpreter} is not a program"
    elif version and version < OLDEST:
        fault = f"{interpreter} is Python {environment.version}: components need {OLDEST[0]}.{OLDEST[1]} or newer"
    if fault:
        yield Finding("error", fault, "set python of [components] in config.toml, or repair the environment")
        return
    torchx = environment.package_version("torchx", "torchx-nightly")
    names = f"TorchX {torchx}" if torchx else "no TorchX: `import torchx` gives torchx-tui's names"
    python = f"Python {environment.version}" if environment.version else "a Python of unknown version"
    yield Finding("ok", f"files of this folder are run by {interpreter}: {python}, {names}")


def _schedulers(runner: Runner) -> Findings:
    plugins, unreadable = runner.scheduler_plugins()
    for item in plugins:
        yield Finding("ok", f"scheduler {item.name}: {item.origin} (group {item.group})")
    for item in unreadable:
        yield Finding("error", f"schedulers: {item.where}: {item.why}", _ADVICE)


def _components() -> Findings:
    from ..components.finder import plugins
    from ..guest.packages import ENTRY_POINT_GROUP

    faults: list[tuple[str, str]] = []
    found = plugins(failed=lambda name, reason: faults.append((name, reason)))
    for (module, interpreter), count in Counter((item.module, item.interpreter) for item in found).items():
        components = "1 component" if count == 1 else f"{count} components"
        source = f", installed for {interpreter}" if interpreter else ""
        yield Finding("ok", f"{components} of {module} (group {ENTRY_POINT_GROUP}{source})")
    for name, reason in faults:
        yield Finding("error", f"components of {name} (group {ENTRY_POINT_GROUP}): {reason}", _ADVICE)


def _named_resources() -> Findings:
    from ..base.errors import describe_error
    from ..guest.resources import resources_from_guest

    faults: list[tuple[str, str]] = []
    for item in resources_from_guest(lambda module, reason: faults.append((module, reason))):
        try:
            item.make()
        except Exception as error:  # whatever a package raises
            yield Finding("error", f"named resource {item.name} (group {item.group}): {describe_error(error)}", _ADVICE)
        else:
            yield Finding("ok", f"named resource {item.name}: {item.origin} (group {item.group})")
    for module, reason in faults:
        yield Finding("error", f"named resources: {module} could not be read: {reason}", _ADVICE)
