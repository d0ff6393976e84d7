"""What the Launch screen does in threads: try a launch without launching it, and launch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ...backends.api import Finding
from ...backends.shared.progress import shown_progress
from ...base.errors import TorchXTuiError, describe_error
from ...guest.resources import load_named_resources
from ...specs.errors import ArgumentError, InvalidRunConfigException, LaunchCancelledError, RoleOverrideError
from ...specs.resource_names import get_named_resources, named_resource_names, named_resources
from ...specs.workspace import Workspace
from .form_field import ARGUMENT, OPTION, role_section
from .messages import DryRunDone, Submitted

# What a form shows of a request: laying out more would hold up keys.
_MOST_LINES = 5_000
_MOST_CHARACTERS = 200_000

if TYPE_CHECKING:
    from ...backends.api import NameFault, WorkspaceListing
    from ...backends.runner import Runner
    from ...backends.shared.progress import Progress
    from ...specs.resources import Resource
    from ...specs.roles import AppDef
    from .plan import LaunchPlan


def try_plan(runner: Runner, generation: int, plan: LaunchPlan, progress: Progress, build: Progress) -> DryRunDone:
    """Return the request of a plan, or the error and its field.

    Args:
        runner: makes the request.
        generation: the form's generation.
        plan: the launch.
        progress: cancels the dry run.
        build: cancels the build of the component.
    """
    with shown_progress(progress):
        return _tried(runner, DryRunDone(generation), plan, progress, build)


def _tried(runner: Runner, done: DryRunDone, plan: LaunchPlan, progress: Progress, build: Progress) -> DryRunDone:
    try:
        done.interpreter = plan.interpreter()
        done.app = plan.made_app(build)
        progress.check()
        app = plan.changed(done.app)
        names = runner.check_names(app, plan.scheduler, plan.cfg)
        if refused := [fault for fault in names if fault.refused]:
            # Builtins, and most components, name their one role as the app.
            done.error, done.section, done.field_name = _name_words(refused[0]), ARGUMENT, "name"
            return done
        done.text = _first_part(str(runner.dryrun(app, plan.scheduler, plan.cfg, plan.workspace or None)))
        done.findings = [
            *runner.preflight(app, plan.scheduler, plan.cfg),
            *(Finding("warning", _name_words(fault), "") for fault in names),
        ]
    except ArgumentError as error:
        done.error, done.section, done.field_name = error.reason, ARGUMENT, error.parameter
    except RoleOverrideError as error:
        done.error, done.section, done.field_name = error.reason, role_section(error.role), error.field
    except InvalidRunConfigException as error:
        done.error, done.section, done.field_name = error.invalid_reason, OPTION, error.cfg_key
    except Exception as error:
        done.error = str(error) or type(error).__name__
    return done


def _first_part(text: str) -> str:
    """Return as much of a request as can be looked at."""
    shown = "\n".join(text[:_MOST_CHARACTERS].split("\n")[:_MOST_LINES])
    rest = text[len(shown) :].strip("\n")
    if not rest:
        return text
    return f"{shown}\n# {len(rest):,} more characters: `torchx-tui dryrun` prints all of them"


def _name_words(fault: NameFault) -> str:
    where = f"the role name {fault.name}" if fault.role else f"the app name {fault.name}"
    return f"{where}: {fault.reason}" + (f": {fault.allowed}" if fault.allowed else "")


def launch_all(
    runner: Runner, plans: Sequence[LaunchPlan], progress: Progress, *, relaunch_of: str = "", group: str = ""
) -> Submitted:
    """Launch one plan, or every one of a sweep, and say what came of it.

    Nothing of a sweep is launched where one of its requests cannot be made. What fails later ends it: what was
    launched before goes on.

    Args:
        runner: launches.
        plans: the launches.
        progress: is told how far it is, and can end it.
        relaunch_of: the journal id of the launch that is repeated.
        group: what the launches of a sweep share.
    """
    done = Submitted(progress, plans[0], group=group)
    try:
        apps = [plan.app(progress) for plan in plans]
        if len(plans) > 1:
            for number, (plan, app) in enumerate(zip(plans, apps, strict=True), 1):
                progress.report(f"Checking {number} of {len(plans)}: {plan.label}")
                _checked(runner, plan, app)
        for number, (plan, app) in enumerate(zip(plans, apps, strict=True), 1):
            if len(plans) > 1:
                progress.report(f"Launching {number} of {len(plans)}: {plan.label}")
            handle = runner.run(
                app,
                plan.scheduler,
                plan.cfg,
                plan.workspace or None,
                origin=plan.origin(relaunch_of, group),
                progress=progress,
            )
            done.handles.append(handle)
            done.wanted.append(sum(role.num_replicas for role in app.roles))
    except Exception as error:
        words = str(error) or type(error).__name__
        launched = len(done.handles)
        done.error = f"{launched} of {len(plans)} were launched: {words}" if launched else words
    return done


def _checked(runner: Runner, plan: LaunchPlan, app: AppDef) -> None:
    try:
        runner.dryrun(app, plan.scheduler, plan.cfg, plan.workspace or None)
    except LaunchCancelledError:
        raise
    except Exception as error:
        # The plain error: those below it have arguments of their own, and schedulers raise others too.
        raise TorchXTuiError(f"{plan.label}: {str(error) or type(error).__name__}") from error


def why_unusable(runner: Runner) -> dict[str, str]:
    """Return why schedulers cannot be used now, by name; those that can are left out."""
    reasons = {}
    for name in runner.watched_schedulers():
        faults = [finding for finding in runner.check(name) if finding.level == "error"]
        if faults:
            reasons[name] = f"{faults[0].what}{f' ({faults[0].hint})' if faults[0].hint else ''}"
    return reasons


def list_shipped(
    runner: Runner, workspace: str, is_wanted: Callable[[], bool] = lambda: True
) -> tuple[WorkspaceListing | None, str]:
    """Return what would be shipped of a workspace, as a form has it; or None, and why it cannot be read."""
    try:
        return runner.list_workspace(Workspace.from_str(workspace), is_wanted), ""
    except Exception as error:
        # What opens URLs raises errors of its own.
        return None, str(error) if isinstance(error, TorchXTuiError) else describe_error(error)


def named_resource(name: str) -> Resource | None:
    """Return a named resource; None where there is none of that name, or it cannot be made."""
    load_named_resources()
    try:
        return get_named_resources(name)
    except TorchXTuiError:
        return None


def resource_rows() -> list[tuple[str, str, str, str]]:
    """Return name, cpu, gpu and memory (GB) of every named resource; of one that cannot be made nothing is said."""
    load_named_resources()
    rows = []
    for name in named_resource_names():
        try:
            made = named_resources[name]
        except TorchXTuiError:
            continue
        rows.append((name, str(made.cpu), str(made.gpu), f"{made.memMB / 1024:,.4g}"))
    return rows
