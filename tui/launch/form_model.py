"""The launch form without its widgets: its fields and the launches that they make."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

from ...backends.history.launch_record import ARGUMENT_PREFIX
from ...backends.shared.secrets import mask_text
from ...components.model import ComponentDoc
from ...components.role_overrides import check_role_field, role_texts
from ...components.sbatch_script import ScriptLine, differing_lines, lines_with_changes
from ...specs.batch_script import script_of
from ...specs.resources import Resource
from ...specs.roles import AppDef
from ...specs.run_options import runopts
from ..dashboard import Draft
from .form_field import (
    ARGUMENT,
    LAUNCH,
    OPTION,
    Field,
    Origin,
    argument_field,
    given_text,
    option_field,
    plain_text,
    role_field,
    role_of,
    role_section,
    text_among,
)
from .plan import LaunchPlan

if TYPE_CHECKING:
    from ...backends.history.journal import LaunchRecord
    from ...settings.launch_defaults import Given

_FIGURES = ("cpu", "gpu", "memMB")
_WORKSPACE = LAUNCH, "workspace"
WORKSPACE_HELP = (
    "A local folder that is copied to the job, for its first role; {/a: a, /b: b} for several. "
    "The preview lists its files."
)


@dataclass
class FormModel:
    """The form of one component, or of an AppDef, on one scheduler.

    Attributes:
        doc: the component.
        base: the AppDef of a job that no known component made; the form then has only its roles.
        unknown: the fields of that AppDef that its backend does not report, by role.
        scheduler: the chosen scheduler's name.
        lost: changes of an earlier launch to roles that the app does not have now.
        lost_arguments: arguments with a value, typed or of an earlier launch, that the component does not have now.
        ignores_config: whether `.torchxconfig` is ignored.
        profile: the profile in force; empty for none.
    """

    doc: ComponentDoc
    base: AppDef | None = None
    unknown: Mapping[str, Sequence[str]] = dataclasses.field(default_factory=dict)
    scheduler: str = ""
    lost: list[str] = dataclasses.field(default_factory=list)
    lost_arguments: list[str] = dataclasses.field(default_factory=list)
    ignores_config: bool = False
    profile: str = ""

    def __post_init__(self) -> None:
        self._options: runopts | None = None
        # Changes to roles that are not known yet, and the figures of named resources.
        self._pending: dict[str, dict[str, str]] = {}
        self._figures: dict[str, tuple[str, ...]] = {}
        self._script_diffs: dict[str, list[tuple[str, str, str]]] = {}
        # The scheduler, and the texts of all fields, of a job that no launch was recorded of.
        self._ran: tuple[str, dict[tuple[str, str], str]] | None = None
        self._fields: dict[tuple[str, str], Field] = {}
        fields = [argument_field(parameter) for parameter in self.doc.parameters]
        for field in fields:
            field.verify()
            if self.doc.text and field.default:
                field.default_word = "script"
        self._arrange(fields)
        self._derive()
        if self.base is not None:
            self.take_app(self.base)

    def __iter__(self) -> Iterator[Field]:
        """Iterate over arguments, the workspace, run options, then fields of roles."""
        return iter(self._fields.values())

    def section(self, name: str) -> list[Field]:
        """Return the fields of a section."""
        return [field for field in self if field.section == name]

    def get(self, section: str, name: str) -> Field | None:
        """Return a field, or None."""
        return self._fields.get((section, name))

    def _arrange(self, fields: Sequence[Field]) -> None:
        self._fields = {field.key: field for field in fields}

    @property
    def _of_roles(self) -> list[Field]:
        return [field for field in self if field.role]

    @property
    def roles(self) -> list[str]:
        """The roles of the app as it was made last, in order."""
        return list(dict.fromkeys(field.role for field in self._of_roles))

    # Filling

    def expect_options(self, scheduler: str) -> None:
        """Forget the run options until `choose_scheduler` sets them; nothing can be launched before."""
        self.scheduler, self._options = scheduler, None

    def choose_scheduler(self, name: str, options: runopts, *, workspace: str | None = None) -> None:
        """Use the run options of another scheduler; texts of options that both have are kept.

        Args:
            name: the scheduler's name.
            options: its run options.
            workspace: its usual workspace; None if it takes none.
        """
        self.scheduler, self._options = name, options
        # A script's own options replace run options of the same name.
        is_own = lambda key: self.doc.text and self.doc.parameter(key) is not None  # noqa: E731
        fresh = [option_field(key, option) for key, option in options if not is_own(key)]
        if workspace is not None:
            fresh.insert(0, _workspace_field(workspace))
        for field in fresh:
            before = self.get(*field.key)
            if before is not None and before.origin in (Origin.TYPED, Origin.LAST_RUN, Origin.RELAUNCHED):
                field.several = before.several
                field.take(before.text, before.origin, before.source)
            field.verify()
        self._arrange([*self.section(ARGUMENT), *fresh, *self._of_roles])

    def fill(self, record: LaunchRecord, origin: Origin = Origin.LAST_RUN) -> None:
        """Fill the fields with the values of an earlier launch."""
        for field in self:
            if field.key == _WORKSPACE:
                field.take(record.workspace, origin)
            elif field.section == ARGUMENT and field.name in record.arguments:
                field.take(given_text(record.arguments[field.name], field), origin)
        self._lose(name for name, value in record.arguments.items() if plain_text(value))
        self.fill_cfg(record.cfg, origin)
        self._pending = {role: dict(texts) for role, texts in record.overrides.items()}
        self._apply_pending()
        self._derive()

    def fill_cfg(self, cfg: Mapping[str, Any], origin: Origin = Origin.RELAUNCHED) -> None:
        """Fill the run options with those of a job."""
        for field in self.section(OPTION):
            if field.name in cfg:
                field.take(given_text(cfg[field.name], field), origin)

    def fill_given(self, section: str, given: Mapping[str, Given]) -> None:
        """Fill fields from config or a profile, unless their origin has a higher rank."""
        for field in self.section(section):
            if (value := given.get(field.name)) is not None:
                origin = Origin.PROFILE if value.is_of_profile else Origin.CONFIG
                if field.origin.rank <= origin.rank:
                    field.take(given_text(value.value, field), origin, value.source)
        self._derive()

    def draft(self) -> Draft | None:
        """Return what was typed; None if nothing was."""
        fields = {field.key: (field.text, field.several) for field in self if field.origin is Origin.TYPED}
        return Draft(self.scheduler, fields) if fields else None

    def fill_draft(self, draft: Draft) -> None:
        """Fill the fields with what was typed before."""
        for (section, name), (text, several) in draft.fields.items():
            if (field := self.get(section, name)) is not None:
                field.several = several
                field.take(text, Origin.TYPED)
            elif role := role_of(section):
                self._pending.setdefault(role, {})[name] = text
        self._lose(name for section, name in draft.fields if section == ARGUMENT)
        self._derive()

    def _lose(self, names: Iterable[str]) -> None:
        """Note arguments that the component does not have now."""
        lost = [name for name in names if self.get(ARGUMENT, name) is None]
        self.lost_arguments = list(dict.fromkeys([*self.lost_arguments, *lost]))

    def drop_given(self) -> None:
        """Reset the fields that config or a profile filled."""
        for field in self:
            if field.origin in (Origin.PROFILE, Origin.CONFIG):
                field.take(field.default, Origin.DEFAULT)
        self._derive()

    def learn(self, known: Mapping[str, Sequence[str]]) -> list[Field]:
        """Set the known values of run options; fill as `fill_only_ones` does."""
        for field in [*self.section(OPTION), *(self.section(ARGUMENT) if self.doc.text else ())]:
            field.known = tuple(known.get(field.name, ()))
        return self.fill_only_ones()

    def fill_only_ones(self) -> list[Field]:
        """Fill and return the empty fields that are required, or have an error, and have one possible value."""
        filled = [
            field for field in self if (field.required or field.error) and not field.text and len(field.known) == 1
        ]
        for field in filled:
            field.take(field.known[0], Origin.ONLY_ONE)
        return filled

    def set(self, section: str, name: str, text: str) -> Field | None:
        """Set and check the text of a field."""
        field = self.get(section, name)
        if field is not None and field.text != text:
            field.take(text, Origin.TYPED)
            self._derive()
        return field

    def toggle_several(self, field: Field) -> None:
        """Make a field's text a list of values, or one value again."""
        field.several = field.can_be_several and not field.several
        field.verify()

    def take_app(self, app: AppDef) -> bool:
        """Update the fields of roles from the app that the component makes now; return whether the fields changed."""
        before = {field.key: field for field in self._of_roles}
        fresh: list[Field] = []
        # The role of a batch script cannot be changed.
        for role in {} if script_of(app.roles) else {role.name: role for role in app.roles}.values():
            unknown = self.unknown.get(role.name, ())
            for name, text in role_texts(role).items():
                field = before.get((role_section(role.name), name))
                if field is None:
                    field = role_field(role.name, name, text, known=name not in unknown)
                elif not field.is_given:
                    field.text = text
                field.default = text
                field.verify()
                fresh.append(field)
        self._arrange([*(field for field in self if not field.role), *fresh])
        self._apply_pending()
        self.lost = [f"{role}.{name}" for role, texts in self._pending.items() for name in texts]
        self._pending = {}
        return [field.key for field in fresh] != list(before)

    def _apply_pending(self) -> None:
        for role in {*self._pending} & {*self.roles}:
            for name, text in self._pending.pop(role).items():
                if (field := self.get(role_section(role), name)) is not None:
                    field.take(text, Origin.LAST_RUN)

    def _derive(self) -> None:
        """Hide fields that have no meaning now, and show the figures of a named resource in those that it overrides."""
        for field in self.section(ARGUMENT):
            name, values = field.parameter.only_with if field.parameter else ("", ())
            other = self.get(ARGUMENT, name)
            field.is_hidden = other is not None and not other.is_swept and other.text not in values
        named = self._named_resource
        if named is not None:
            figures = () if named.is_swept else self._figures.get(named.text, ())
            for position, name in enumerate(_FIGURES):
                if (field := self.get(ARGUMENT, name)) is not None:
                    field.from_other = (figures[position], named.name) if figures else ("", "")

    @property
    def _named_resource(self) -> Field | None:
        return next((field for field in self.section(ARGUMENT) if field.editor == "resource"), None)

    @property
    def unread_resource(self) -> str:
        """The named resource that `learn_resource` wants; empty for none."""
        named = self._named_resource
        return "" if named is None or named.text in self._figures else named.text

    def learn_resource(self, name: str, resource: Resource | None) -> None:
        """Take the figures of a named resource; None if there is none of that name."""
        self._figures[name] = tuple(str(getattr(resource, figure)) for figure in _FIGURES) if resource else ()
        self._derive()
        for field in self:
            # The names of all are known now.
            if field.editor == "resource":
                field.verify()

    # Reading

    @property
    def is_whole(self) -> bool:
        """Whether the run options of the chosen scheduler are known."""
        return self._options is not None

    def errors(self) -> list[Field]:
        """Return the fields with errors, in the order of the form."""
        return [field for field in self if field.error and not field.is_hidden]

    def launch_count(self) -> int:
        """Return how many jobs would be launched; 0 with errors."""
        return math.prod(len(field.values) for field in self if field.is_swept) if not self.errors() else 0

    def plan(self) -> LaunchPlan:
        """Return the launch, the first one of a sweep.

        Raises:
            ValueError: a text is invalid; `errors` names its field.
        """
        return next(self.plans())

    def plans(self) -> Iterator[LaunchPlan]:
        """Iterate over the launches: the product of the swept fields, the last one varying first.

        Raises:
            ValueError: as for `plan`.
        """
        swept = [field for field in self if field.is_swept]
        for values in product(*(field.values for field in swept)):
            chosen = list(zip(swept, values, strict=True))
            masked = {field.name: mask_text(field.name, text) for field, text in chosen}
            yield self._plan({field.key: text for field, text in chosen}, masked)

    def _plan(self, swept: Mapping[tuple[str, str], str], masked: Mapping[str, str]) -> LaunchPlan:
        texts = {key: swept.get(key, field.text) for key, field in self._fields.items() if not field.is_hidden}
        given = {key: text for key, text in texts.items() if text != self._fields[key].default}
        overrides = {role: dict(changes) for role, changes in self._pending.items()}
        cfg: dict[str, Any] = {}
        for (section, name), text in given.items():
            if role := self._fields[section, name].role:
                overrides.setdefault(role, {})[name] = text
            elif section == OPTION and self._options is not None and (option := self._options.get(name)) is not None:
                cfg[name] = option.cast_to_type(text) if text else None
        return LaunchPlan(
            component="" if self.base else self.doc.name,
            arguments={name: text for (section, name), text in given.items() if section == ARGUMENT},
            overrides=overrides,
            scheduler=self.scheduler,
            cfg=cfg,
            workspace=texts.get(_WORKSPACE, ""),
            usual_workspace=self._fields[_WORKSPACE].default if _WORKSPACE in self._fields else "",
            base=self.base,
            config={
                (f"{ARGUMENT_PREFIX}{field.name}" if field.section == ARGUMENT else field.name): field.text
                for field in self
                if field.origin in (Origin.CONFIG, Origin.PROFILE)
            },
            swept=masked,
            ignores_config=self.ignores_config,
            profile=self.profile,
        )

    def diff(self, record: LaunchRecord | None) -> list[tuple[str, str, str]]:
        """Return name, earlier and present text of each field that differs from an earlier launch.

        Secrets are masked. Values that the form has no field for are empty now. Without a launch, the form is compared
        with the job that it was filled from, if any.
        """
        if record is not None:
            scheduler, before = record.scheduler, self._texts_of(record)
        elif self._ran is not None:
            scheduler, before = self._ran
        else:
            return []
        now = {field.key: field.default if field.is_hidden else field.text for field in self}
        rows = []
        for section, name in dict.fromkeys([*now, *before]):
            then, text = before.get((section, name), ""), now.get((section, name), "")
            if then != text:
                label = f"{role_of(section)} {name}".strip()
                rows.append((label, mask_text(name, then), mask_text(name, text)))
        if record is not None:
            rows += self._script_diff(record)
        return rows if scheduler == self.scheduler else [*rows, ("scheduler", scheduler, self.scheduler)]

    def _texts_of(self, record: LaunchRecord) -> dict[tuple[str, str], str]:
        """Return the texts of an earlier launch by section and name, also of values without a field."""
        texts = {field.key: _text_then(field, record) for field in self}
        for section, values in ((ARGUMENT, record.arguments), (OPTION, record.cfg)):
            for name, value in values.items():
                texts.setdefault((section, name), plain_text(value))
        return texts

    def keep_job(self, scheduler: str) -> None:
        """Keep the present texts of the fields as those of a job that ran on this scheduler."""
        self._ran = scheduler, {field.key: field.text for field in self}

    def script_lines(self) -> list[ScriptLine]:
        """Return the lines of the batch script with the changes of the form; none without a script."""
        if not self.doc.text:
            return []
        fields = [field for field in self.section(ARGUMENT) if field.is_given and field.text]
        changed = {field.name: mask_text(field.name, field.text) for field in fields}
        return lines_with_changes(mask_text("", self.doc.text), changed)

    def _script_diff(self, record: LaunchRecord) -> list[tuple[str, str, str]]:
        if not self.doc.text:
            return []
        if record.id not in self._script_diffs:
            kept = script_of(record.app_def().roles)
            self._script_diffs[record.id] = [
                (f"line {line} of the script", mask_text("", then), mask_text("", now))
                for line, then, now in (differing_lines(kept.text, self.doc.text) if kept else ())
            ]
        return self._script_diffs[record.id]


def _text_then(field: Field, record: LaunchRecord) -> str:
    if field.key == _WORKSPACE:
        return record.workspace
    if field.role:
        return record.overrides.get(field.role, {}).get(field.name, field.default)
    return text_among(record.arguments if field.section == ARGUMENT else record.cfg, field)


def _workspace_field(usual: str) -> Field:
    check = lambda text: check_role_field("workspace", text)  # noqa: E731
    return Field("workspace", LAUNCH, "folder", default=usual, text=usual, help=WORKSPACE_HELP, check=check)
