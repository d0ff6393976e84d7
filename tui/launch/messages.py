"""What the threads of the Launch screen tell it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from textual.message import Message

if TYPE_CHECKING:
    from ...backends.api import Finding, PartitionStatus, WorkspaceListing
    from ...backends.history.journal import LaunchRecord
    from ...backends.shared.progress import Progress
    from ...base.trust import UntrustedError
    from ...components.model import ComponentDoc, ComponentSummary
    from ...settings.launch_defaults import LaunchDefaults
    from ...specs.resources import Resource
    from ...specs.roles import AppDef
    from ...specs.run_options import runopts
    from .foreign_job import ForeignJob
    from .form_field import Field
    from .plan import LaunchPlan


@dataclass
class ComponentsListed(Message):
    """Components were found, maybe not all of them yet.

    Attributes:
        listed: by their keys, in the order of their kinds.
        launches: the newest launch of each that was launched, the latest first.
    """

    listed: dict[str, ComponentSummary]
    launches: dict[str, LaunchRecord]

    def can_replace(self, message: Message) -> bool:
        """A later list has all that an earlier one had."""
        return isinstance(message, ComponentsListed)


@dataclass
class ComponentDescribed(Message):
    """A component's documentation was read, or why it could not be.

    Attributes:
        listed: the component.
        doc: its documentation; None where it cannot be read.
        launches: its launches, newest first.
        error: why it cannot be launched, empty where it can.
        chosen: whether its form is wanted.
        untrusted: set where its file belongs to another user, and has to be trusted before its form is opened.
    """

    listed: ComponentSummary
    doc: ComponentDoc | None
    launches: list[LaunchRecord]
    error: str = ""
    chosen: bool = False
    untrusted: UntrustedError | None = None


@dataclass
class ResourceRead(Message):
    """What a named resource is; None where there is none of that name."""

    name: str
    resource: Resource | None


@dataclass
class ResourcesListed(Message):
    """The named resources to choose from for a field: name, cpu, gpu and memory (GB) of each."""

    field: Field
    rows: list[tuple[str, str, str, str]]


@dataclass
class FormReady(Message):
    """What a form needs: the run options of its scheduler, and what config says."""

    scheduler: str
    options: runopts
    takes_workspace: bool
    has_partitions: bool
    defaults: LaunchDefaults
    first: bool = False
    refill: bool = False


@dataclass
class SchedulersChecked(Message):
    """Why schedulers cannot be used, by name."""

    reasons: dict[str, str]


@dataclass
class WorkspaceListed(Message):
    """What would be shipped of a workspace, or why it cannot be read."""

    workspace: str
    listing: WorkspaceListing | None
    error: str = ""


@dataclass
class ValuesKnown(Message):
    """What the run options of a scheduler can be there."""

    scheduler: str
    values: dict[str, list[str]]


@dataclass
class DryRunSlow(Message):
    """The component of a form, as it was at ``generation``, takes long; a sentence says so."""

    generation: int
    text: str


@dataclass
class DryRunDone(Message):
    """A request was made for the form as it was at ``generation``, or why it could not be; the app as it was made.

    Attributes:
        interpreter: what ran the component, empty where that was this program's own Python.
    """

    generation: int
    text: str = ""
    interpreter: str = ""
    app: AppDef | None = None
    error: str = ""
    section: str = ""
    field_name: str = ""
    findings: list[Finding] = field(default_factory=list)


@dataclass
class Submitted(Message):
    """The launch ended: with handles and the replicas that each asks for, or with an error; a sweep with both.

    Attributes:
        plan: the launch, the first one of a sweep; the form may hold another by now.
    """

    progress: Progress
    plan: LaunchPlan
    handles: list[str] = field(default_factory=list)
    wanted: list[int] = field(default_factory=list)
    error: str = ""
    group: str = ""


@dataclass
class PartitionsFound(Message):
    """Where there is room for a launch, or why that is not known.

    Attributes:
        partitions: the partitions, the best first.
        error: why there are none.
        at: when the backend was asked, in seconds since the epoch.
    """

    partitions: list[PartitionStatus]
    error: str = ""
    at: float = 0.0


@dataclass
class EditReady(Message):
    """What a form is to be filled with is read.

    Attributes:
        record: the launch; None for a job that no component of ours made.
        job: what is known of such a job.
        changes: texts of arguments and run options that differ, by name.
    """

    record: LaunchRecord | None = None
    job: ForeignJob | None = None
    changes: Mapping[str, str] = field(default_factory=dict)
