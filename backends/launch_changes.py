"""What of the world around a launch is another today."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .launch_origin import ARGUMENT_PREFIX
from .launch_world import LaunchWorld, WorldNow

if TYPE_CHECKING:
    from .api import Scheduler
    from .journal import LaunchRecord

_SHORT_COMMIT = 10
_SHORT_DIGEST = 19  # with `sha256:` before it


@dataclass(frozen=True)
class Changed:
    """Something that is another than at a launch.

    Attributes:
        what: its name, such as ``git commit``.
        then: what it was.
        now: what it is.
    """

    what: str
    then: str
    now: str


def changed_since(
    record: LaunchRecord, scheduler: Scheduler[Any], now: WorldNow, config: Mapping[str, str] | None = None
) -> list[Changed]:
    """Return what is another than at a launch, of what was noted then.

    Args:
        record: the launch's.
        scheduler: where it would be launched again.
        now: what is around now.
        config: what config gives now, see `LaunchOrigin.config`; None where that is not to be compared.
    """
    found = list(_folder(record, scheduler))
    world = LaunchWorld.of(record)
    if world is not None:
        here = Path.cwd() if scheduler.capabilities.working_folder or record.workspace else Path(record.cwd)
        if world.commit:
            found += _git_changes(world, here, now)
        digests = now.digests(scheduler, list(world.images)) if world.images else {}
        found += [
            Changed(f"image {image}", then[:_SHORT_DIGEST], digests.get(image, "not here")[:_SHORT_DIGEST])
            for image, then in world.images.items()
            if digests.get(image) != then
        ]
    return found + (_config(record, config) if config is not None else [])


def _folder(record: LaunchRecord, scheduler: Scheduler[Any]) -> list[Changed]:
    here = str(Path.cwd())
    if not record.cwd or record.cwd == here or not scheduler.capabilities.working_folder:
        return []
    return [Changed("working folder", record.cwd, here)]


def _git_changes(world: LaunchWorld, folder: Path, now: WorldNow) -> list[Changed]:
    state, then = now.git(folder), world.commit[:_SHORT_COMMIT]
    if state is None:
        return [Changed("git commit", then, "no git work tree here")]
    differ = now.differing(folder, world.commit)
    files = f", {differ:,} file{'' if differ == 1 else 's'} differ{'s' if differ == 1 else ''}" if differ else ""
    if state.commit != world.commit:
        return [Changed("git commit", then, f"{state.commit[:_SHORT_COMMIT]}{files}")]
    if None in (state.changes, world.changes) or state.changes == world.changes:
        return []
    after = f"others{files}" if state.changes else "none"
    return [
        Changed("uncommitted changes", "some" if world.changes else "none", after if world.changes else f"some{files}")
    ]


def _config(record: LaunchRecord, config: Mapping[str, str]) -> list[Changed]:
    """Return what config gives otherwise; of what a person had chosen it says nothing."""
    then, now = record.config, config
    chosen = {"scheduler", *record.cfg, *(f"{ARGUMENT_PREFIX}{name}" for name in record.arguments)}
    if record.workspace:
        chosen.add("workspace")
    return [
        Changed(f"config: {key.removeprefix(ARGUMENT_PREFIX)}", then.get(key, "-"), now.get(key, "-"))
        for key in sorted({*then, *now})
        if then.get(key) != now.get(key) and (key in then or key not in chosen)
    ]
