"""What would be shipped of a workspace, with sizes, and what stays at home by which rule; nothing is copied."""

from __future__ import annotations

import stat
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from ...base.files import is_file, is_folder
from ...specs.errors import SchedulerError
from ...specs.workspace import Workspace
from ..types import WorkspaceListing
from .build_context import CONTEXT_IGNORE_FILES, DOCKERFILE, shipped_stat
from .ignore import IGNORE_FILES, IgnorePatterns
from .walking import OnIgnored, folder_patterns, is_url, open_url, url_patterns, wanted_files, wanted_paths

# A listing is for people: it ends here, and says so.
MOST_FILES = 100_000
MOST_SECONDS = 20.0


def list_workspace(workspace: Workspace, is_wanted: Callable[[], bool] = lambda: True) -> WorkspaceListing:
    """List what would be shipped.

    Args:
        workspace: the workspace.
        is_wanted: asked now and then; the listing ends where it says no.

    Raises:
        SchedulerError: a project is missing or cannot be read.
    """
    listing = WorkspaceListing()
    # A later project is copied over what an earlier one has.
    shipped: dict[str, int] = {}
    deadline = time.monotonic() + MOST_SECONDS
    is_context = workspace.is_unmapped_single_project()

    def goes_on() -> bool:
        return time.monotonic() < deadline and is_wanted()

    for local, remote in workspace.projects.items():
        try:
            if is_url(local):
                found = _remote(local, listing, is_context)
            else:
                found = _local(local, listing, is_context, goes_on)
            for path, size in found:
                shipped[_place(path, Path(local).name, remote.strip("/"), shipped)] = size
                if len(shipped) >= MOST_FILES or not goes_on():
                    break
        except (OSError, RuntimeError) as error:
            words = error.strerror if isinstance(error, OSError) and error.strerror else error
            raise SchedulerError(f"the workspace {local} cannot be read: {words}") from error
        # A walk that was ended may have given nothing of its folder.
        if len(shipped) >= MOST_FILES or not goes_on():
            listing.is_whole = False
            break
    listing.files = list(shipped.items())
    return listing


def _place(path: str, name: str, remote: str, shipped: Mapping[str, int]) -> str:
    """Return where a file goes; the path of a project that is one file is empty: it gets the name that is asked for."""
    if path:
        return f"{remote}/{path}" if remote else path
    is_folder = not remote or any(other.startswith(f"{remote}/") for other in shipped)
    return f"{remote}/{name}".strip("/") if is_folder else remote


def _local(
    local: str, listing: WorkspaceListing, is_context: bool, is_wanted: Callable[[], bool]
) -> Iterator[tuple[str, int]]:
    project = Path(local).expanduser()
    if not is_folder(project):
        size = project.stat().st_size
        if is_context:
            raise SchedulerError(f"the workspace {local} is not a folder: give the path of one, or a URL")
        yield "", size
        return
    ignore = folder_patterns(project, CONTEXT_IGNORE_FILES if is_context else IGNORE_FILES)
    count = _ignored_counter(listing, str(project), ignore, is_context)
    for path in wanted_paths(project, ignore, count, is_wanted):
        size = None if is_context and path == DOCKERFILE else _size(project / path, project)
        if size is not None:
            yield path, size
    # An engine gets it even if it is ignored.
    if is_context and is_file(project / DOCKERFILE):
        yield DOCKERFILE, (project / DOCKERFILE).stat().st_size


def _ignored_counter(listing: WorkspaceListing, project: str, ignore: IgnorePatterns, is_context: bool) -> OnIgnored:
    if ignore.name:
        listing.rules.append(f"{project.rstrip('/')}/{ignore.name}")

    def count(path: str, rule: str) -> None:
        if not (is_context and path == DOCKERFILE):
            key = f"{ignore.name}: {rule}"
            listing.left[key] = listing.left.get(key, 0) + 1

    return count


def _size(path: Path, project: Path) -> int | None:
    """Return the bytes that travel of a file, 0 for a link that travels as one; None where nothing does."""
    try:
        found = shipped_stat(path, project)
    except OSError:
        # It was removed meanwhile.
        return None
    if found is None or not (stat.S_ISREG(found.st_mode) or stat.S_ISLNK(found.st_mode)):
        return None
    return 0 if stat.S_ISLNK(found.st_mode) else found.st_size


def _remote(url: str, listing: WorkspaceListing, is_context: bool) -> Iterator[tuple[str, int]]:
    system, root = open_url(url, folder=is_context)
    if system.isfile(root):
        yield "", int(system.info(root).get("size") or 0)
        return
    ignore = url_patterns(system, root, CONTEXT_IGNORE_FILES if is_context else IGNORE_FILES)
    for path, below in wanted_files(system, root, ignore, _ignored_counter(listing, url, ignore, is_context)):
        if not (is_context and below == DOCKERFILE):
            yield below, int(system.info(path).get("size") or 0)
    path = f"{root.rstrip('/')}/{DOCKERFILE}"
    if is_context and system.isfile(path):
        yield DOCKERFILE, int(system.info(path).get("size") or 0)
