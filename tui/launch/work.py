"""The blocking calls of the Launch screen: try a launch, launch, list workspaces and named resources."""

from __future__ import annotations

import difflib
import fnmatch
import os
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any

from ...backends.api import Finding
from ...backends.shared.progress import shown_progress
from ...base.errors import TorchXTuiError, describe_error
from ...guest.resources import load_named_resources
from ...specs.errors import ArgumentError, InvalidRunConfigException, LaunchCancelledError, RoleOverrideError
from ...specs.handles import normalize_str
from ...specs.resource_names import get_named_resources, named_resource_names, named_resources
from ...specs.workspace import Workspace
from ..format import count
from .form_field import ARGUMENT, OPTION, role_section

if TYPE_CHECKING:
    from ...backends.api import NameFault, WorkspaceListing
    from ...backends.runner import Runner
    from ...backends.shared.progress import Progress
    from ...specs.resources import Resource
    from ...specs.roles import AppDef
    from .plan import LaunchPlan

# A longer request is cut: laying it out would delay keys.
_MAX_LINES = 5_000
_ENVIRONMENT = re.compile(r"(?P<indent> *(?:- )*)(?:env|environment):$")
_ENTRY = re.compile(r" *(?P<item>- name: )?['\"]?(?P<name>[A-Za-z_]\w*)['\"]?(?::|$)")
_BLOCK = re.compile(r"(?:^|[:-]) *[|>][-+]?\d?$")
_MAX_CHARACTERS = 200_000
# Comparing longer requests may take seconds.
MAX_COMPARED_LINES, MAX_DIFFERENT_LINES = 2_000, 100


@dataclass
class DryRun:
    """A request, or the error and its field.

    Attributes:
        text: the request.
        interpreter: what ran the component; empty for this program's own Python.
        app: the AppDef as its component made it.
        error: why there is no request.
        at: section and name of the field with the error.
        findings: warnings and remarks of the backend.
    """

    text: str = ""
    interpreter: str = ""
    app: AppDef | None = None
    error: str = ""
    at: tuple[str, str] = ("", "")
    findings: list[Finding] = field(default_factory=list)


def dry_run(runner: Runner, plan: LaunchPlan, progress: Progress, build: Progress) -> DryRun:
    """Make the request of a launch.

    Args:
        runner: makes the request.
        plan: the launch.
        progress: cancels the dry run.
        build: cancels the call of the component.
    """
    done = DryRun()
    try:
        with shown_progress(progress):
            _fill(done, runner, plan, progress, build)
    except ArgumentError as error:
        done.error, done.at = error.reason, (ARGUMENT, error.parameter)
    except RoleOverrideError as error:
        done.error, done.at = error.reason, (role_section(error.role), error.field)
    except InvalidRunConfigException as error:
        done.error, done.at = error.invalid_reason, (OPTION, error.cfg_key)
    except Exception as error:
        done.error = _reason(error)
    return done


def _fill(done: DryRun, runner: Runner, plan: LaunchPlan, progress: Progress, build: Progress) -> None:
    done.interpreter = plan.interpreter()
    done.app = plan.made_app(build)
    progress.check()
    app = plan.changed(done.app)
    faults = runner.check_names(app, plan.scheduler, plan.cfg)
    for fault in faults:
        if fault.refused:
            # Builtins, and most components, name their one role as the app.
            raise ArgumentError("name", _fault_text(fault))
    info = runner.dryrun(app, plan.scheduler, plan.cfg, plan.workspace or None)
    done.text = _beginning(fold_added(str(info), _own_variables(app, plan.cfg)))
    notes = [Finding("warning", _fault_text(fault)) for fault in faults]
    if info.interpreter:
        notes.append(Finding("ok", f"runs with {info.interpreter}"))
    done.findings = [*runner.preflight(app, plan.scheduler, plan.cfg), *notes]


def _own_variables(app: AppDef, cfg: Mapping[str, Any]) -> set[str]:
    """Return the environment variables that an app and its run options name."""
    patterns = cfg.get("copy_env") or ()
    copied = {name for pattern in patterns for name in fnmatch.filter(os.environ, str(pattern))}
    return {*copied, *(cfg.get("env") or ()), *(name for role in app.roles for name in role.env)}


def fold_added(request: str, own: Collection[str]) -> str:
    """Replace the environment variables in a YAML request that are not the user's own by their number.

    Args:
        request: the request.
        own: the names of the variables that stay.
    """
    found: list[str] = []
    # Indentations: of the text block that is read, of the mapping or list of variables, and of its entries.
    block = header = entries = None
    folded, is_shown, is_list = 0, True, False
    for line in [*request.split("\n"), ""]:
        indent = len(line) - len(line.lstrip(" "))
        if block is not None and (not line.strip() or indent > block):
            found += [line] if is_shown else []
            continue
        block = indent if _BLOCK.search(line) else None
        entry = _ENTRY.match(line) if header is not None else None
        if entry is not None and entries is None and indent >= (header or 0) + (not entry["item"]):
            entries, is_list = indent, bool(entry["item"])
        if entry is not None and indent == entries and bool(entry["item"]) == is_list:
            is_shown = entry["name"] in own
            folded += not is_shown
        elif header is not None and not (entries is not None and indent > entries):
            if folded:
                found.append(f"{' ' * (entries or 0)}# {count(folded, 'variable')} of torchx-tui not shown")
            header, entries, folded, is_shown = None, None, 0, True
        if header is None and (match := _ENVIRONMENT.match(line)):
            header = match.end("indent")
        found += [line] if is_shown else []
    return "\n".join(found[:-1])


def _reason(error: Exception) -> str:
    return str(error) or type(error).__name__


def _beginning(text: str) -> str:
    shown = "\n".join(text[:_MAX_CHARACTERS].split("\n")[:_MAX_LINES])
    rest = text[len(shown) :].strip("\n")
    return f"{shown}\n# {len(rest):,} more characters: `torchx-tui dryrun` prints all of them" if rest else text


def _fault_text(fault: NameFault) -> str:
    kind = "role" if fault.role else "app"
    return f"the {kind} name {fault.name}: {fault.reason}" + (f": {fault.allowed}" if fault.allowed else "")


@dataclass
class Launched:
    """The handles of jobs, the replicas that each asks for, and why not all were launched."""

    handles: list[str] = field(default_factory=list)
    replicas: list[int] = field(default_factory=list)
    error: str = ""


def launch_all(
    runner: Runner, plans: Sequence[LaunchPlan], progress: Progress, *, relaunch_of: str = "", group: str = ""
) -> Launched:
    """Launch the jobs of a form: all, or none if the request of one cannot be made.

    A later failure ends a sweep; jobs that were launched before it continue.

    Args:
        runner: launches.
        plans: the launches.
        progress: gets reports, and can cancel.
        relaunch_of: the journal id of the launch that is repeated.
        group: the group of a sweep.
    """
    done, total = Launched(), len(plans)

    def report(action: str, number: int, plan: LaunchPlan) -> None:
        if total > 1:
            progress.report(f"{action} {number} of {total}: {plan.label}")

    try:
        apps = [plan.app(progress) for plan in plans]
        for number, (plan, app) in enumerate(zip(plans, apps, strict=True), 1):
            if total > 1:
                report("Checking", number, plan)
                _check(runner, plan, app)
        for number, (plan, app) in enumerate(zip(plans, apps, strict=True), 1):
            report("Launching", number, plan)
            origin, workspace = plan.origin(relaunch_of, group), plan.workspace or None
            handle = runner.run(app, plan.scheduler, plan.cfg, workspace, origin=origin, progress=progress)
            done.handles.append(handle)
            done.replicas.append(sum(role.num_replicas for role in app.roles))
    except Exception as error:
        launched = f"{len(done.handles)} of {total} were launched: " if done.handles else ""
        done.error = f"{launched}{_reason(error)}"
    return done


def _check(runner: Runner, plan: LaunchPlan, app: AppDef) -> None:
    try:
        runner.dryrun(app, plan.scheduler, plan.cfg, plan.workspace or None)
    except LaunchCancelledError:
        raise
    except Exception as error:
        raise TorchXTuiError(f"{plan.label}: {_reason(error)}") from error


def why_unusable(runner: Runner) -> dict[str, str]:
    """Return why schedulers cannot be used now, by name; usable ones are left out."""
    reasons = {}
    for name in runner.watched_schedulers():
        fault = next((finding for finding in runner.check(name) if finding.level == "error"), None)
        if fault is not None:
            reasons[name] = f"{fault.what} ({fault.hint})" if fault.hint else fault.what
    return reasons


def list_shipped(
    runner: Runner, workspace: str, is_wanted: Callable[[], bool] = lambda: True
) -> tuple[WorkspaceListing | None, str]:
    """Return what would be shipped of a workspace; or None and the error."""
    try:
        return runner.list_workspace(Workspace.from_str(workspace), is_wanted), ""
    except Exception as error:
        # Libraries that open URLs raise errors of their own.
        return None, str(error) if isinstance(error, TorchXTuiError) else describe_error(error)


def named_resource(name: str) -> Resource | None:
    """Return a named resource; None if it does not exist or cannot be made."""
    load_named_resources()
    try:
        return get_named_resources(name)
    except TorchXTuiError:
        return None


def resource_rows() -> list[tuple[str, str, str, str]]:
    """Return name, cpu, gpu and memory (GB) of every named resource; broken ones are left out."""
    load_named_resources()
    rows = []
    for name in named_resource_names():
        try:
            made = named_resources[name]
        except TorchXTuiError:
            continue
        rows.append((name, str(made.cpu), str(made.gpu), f"{made.memMB / 1024:,.4g}"))
    return rows


def request_diff(before: str, now: str, name: str) -> list[str]:
    """Return the lines in which two requests for an app of a name differ, with ``-`` or ``+`` in front.

    Comments and the random parts of ids are not compared, and nothing of long requests.
    """
    own = re.compile(rf"\b({re.escape(name)}|{re.escape(normalize_str(name))})-[a-z0-9]{{8,}}\b", re.IGNORECASE)
    texts = [
        [line for line in own.sub(r"\1-ID", text).splitlines() if not line.startswith("#")] for text in (before, now)
    ]
    if max(map(len, texts)) > MAX_COMPARED_LINES:
        return []
    lines = difflib.unified_diff(texts[0], texts[1], n=0, lineterm="")
    # Two lines of file names come first.
    found = [line for line in islice(lines, 2, None) if not line.startswith("@@")]
    more = len(found) - MAX_DIFFERENT_LINES
    return [*found[:MAX_DIFFERENT_LINES], *([f"and {more} more lines"] if more > 0 else [])]
