"""The launch form without its widgets: its fields, who filled them, and the launches that they make."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

from ...backends.history.launch_record import ARGUMENT_PREFIX
from ...backends.shared.secrets import mask_text
from ...components.model import ComponentDoc
from ...components.role_overrides import role_texts
from ...components.sbatch_script import ScriptLine, differing_lines, lines_with_changes
from ...specs.batch_script import script_of
from ...specs.resources import Resource
from ...specs.roles import AppDef
from ...specs.run_options import runopts
from .form_field import (
    ARGUMENT,
    CONFIG,
    DEFAULT,
    LAST_RUN,
    LAUNCH,
    ONLY_ONE,
    OPTION,
    PROFILE,
    TYPED,
    UNKNOWN,
    Field,
    argument_field,
    given_text,
    given_texts,
    option_field,
    plain_text,
    role_field,
    role_of,
    role_section,
)
from .plan import LaunchPlan

if TYPE_CHECKING:
    from ...backends.history.journal import LaunchRecord
    from ...settings.launch_defaults import Given

# Who filled a field, from the weakest to the strongest; what is as strong or stronger takes its place.
_RANKS = {DEFAULT: 0, CONFIG: 1, LAST_RUN: 2, PROFILE: 3, ONLY_ONE: 1, UNKNOWN: 0, TYPED: 4}
_FIGURES = ("cpu", "gpu", "memMB")
WORKSPACE_HELP = (
    "A local folder that travels with the first role, or {/a: a, /b: b} for several; ctrl+t shows what is shipped"
)


@dataclass
class FormModel:
    """The form of one component, or of an AppDef, on one scheduler.

    Attributes:
        doc: the component.
        base: the AppDef of a job that no component of ours made; the form then has its roles alone.
        unknown: of that AppDef what its backend does not tell, by role.
        scheduler: the chosen scheduler's name.
        fields: arguments first, then the workspace and run options, then those of roles.
        lost: what an earlier launch had changed in roles that the app does not have now.
        ignores_config: whether `.torchxconfig` is left out.
        profile: the profile in force; empty for none.
    """

    doc: ComponentDoc
    base: AppDef | None = None
    unknown: Mapping[str, Sequence[str]] = dataclasses.field(default_factory=dict)
    scheduler: str = ""
    fields: list[Field] = dataclasses.field(default_factory=list)
    lost: list[str] = dataclasses.field(default_factory=list)
    ignores_config: bool = False
    profile: str = ""
    _figures: dict[str, tuple[str, ...] | None] = dataclasses.field(default_factory=dict)
    _options: runopts | None = None
    _kept: dict[str, dict[str, str]] = dataclasses.field(default_factory=dict)
    _script_diffs: dict[str, list[tuple[str, str, str]]] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        self.fields = [argument_field(parameter) for parameter in self.doc.parameters]
        for field in self.fields:
            field.verify()
            if self.doc.text and field.default:
                field.default_word = "script"
        if self.base is not None:
            self.take_app(self.base)

    def __iter__(self) -> Iterator[Field]:
        return iter(self.fields)

    def section(self, name: str) -> list[Field]:
        """Return the fields of a section."""
        return [field for field in self.fields if field.section == name]

    def get(self, section: str, name: str) -> Field | None:
        """Return a field, or None."""
        return next((field for field in self.fields if (field.section, field.name) == (section, name)), None)

    @property
    def roles(self) -> list[str]:
        """The roles of the app as it was made last, in order; none before."""
        return list(dict.fromkeys(role for field in self.fields if (role := role_of(field.section))))

    # Filling

    def expect_options(self, scheduler: str) -> None:
        """Forget the run options until `choose_scheduler` brings them: until then nothing can be launched."""
        self.scheduler, self._options = scheduler, None

    def choose_scheduler(self, name: str, options: runopts, *, takes_workspace: bool = False) -> None:
        """Take another scheduler's run options; texts of options that it has too are kept."""
        kept = {(field.section, field.name): field for field in self.fields if field.section in (OPTION, LAUNCH)}
        self.scheduler, self._options = name, options
        # A script's own options take the place of run options of the same name.
        fresh = [option_field(key, option) for key, option in options if not self._is_of_script(key)]
        if takes_workspace:
            fresh.insert(0, _workspace_field())
        for field in fresh:
            before = kept.get((field.section, field.name))
            if before is not None and before.origin in (TYPED, LAST_RUN):
                field.several = before.several
                field.take(before.text, before.origin, before.source)
            field.verify()
        roles = [field for field in self.fields if role_of(field.section)]
        self.fields = [*self.section(ARGUMENT), *fresh, *roles]

    def _is_of_script(self, name: str) -> bool:
        return bool(self.doc.text) and self.doc.parameter(name) is not None

    def fill(self, record: LaunchRecord) -> None:
        """Take every value of an earlier launch that the form still has a field for."""
        for field in self.fields:
            if field.section == LAUNCH:
                field.take(record.workspace, LAST_RUN)
                continue
            if role_of(field.section):
                continue
            values = record.arguments if field.section == ARGUMENT else record.cfg
            if field.name in values:
                field.take(given_text(values[field.name], field), LAST_RUN)
        self._kept = {role: dict(texts) for role, texts in record.overrides.items()}
        self._take_kept()
        self._derive()

    def fill_cfg(self, cfg: Mapping[str, Any]) -> None:
        """Take the run options that a backend tells of a job."""
        for field in self.section(OPTION):
            if field.name in cfg:
                field.take(given_text(cfg[field.name], field), LAST_RUN)

    def fill_given(self, section: str, given: Mapping[str, Given]) -> None:
        """Take what config or a profile says, where nothing stronger has filled the field."""
        for field in self.section(section):
            value = given.get(field.name)
            if value is None:
                continue
            origin = PROFILE if value.origin.startswith(PROFILE) else CONFIG
            if _RANKS[field.origin] <= _RANKS[origin]:
                field.take(given_text(value.value, field), origin, value.source)
        self._derive()

    def drop_given(self) -> None:
        """Take back what config and a profile filled in, before those of another profile are taken."""
        for field in self.fields:
            if field.origin in (PROFILE, CONFIG):
                field.take(field.default, DEFAULT)
        self._derive()

    def learn(self, known: Mapping[str, Sequence[str]]) -> list[Field]:
        """Take what run options can be; return the fields that were filled: what must be given and can be one thing."""
        filled = []
        fields = self.section(OPTION)
        if self.doc.text:
            fields += self.section(ARGUMENT)
        for field in fields:
            field.known = tuple(known.get(field.name, ()))
            if field.required and not field.text and len(field.known) == 1:
                field.take(field.known[0], ONLY_ONE)
                filled.append(field)
        return filled

    def set(self, section: str, name: str, text: str) -> Field | None:
        """Take what was typed into a field and check it."""
        field = self.get(section, name)
        if field is not None and field.text != text:
            field.take(text, TYPED)
            self._derive()
        return field

    def toggle_several(self, field: Field) -> None:
        """Take a field's text for several values, or for one again."""
        field.several = field.can_be_several and not field.several
        field.verify()

    def take_app(self, app: AppDef) -> bool:
        """Take the roles of the app as its component makes it now; return whether there are other fields than before.

        A text that nobody changed becomes what the role has now.
        """
        before = {(field.section, field.name): field for field in self.fields if role_of(field.section)}
        fresh: list[Field] = []
        # What a batch script is, nothing in its role changes.
        roles = [] if script_of(app.roles) else app.roles
        for role in {role.name: role for role in roles}.values():
            unknown = self.unknown.get(role.name, ())
            for name, text in role_texts(role).items():
                field = before.get((role_section(role.name), name))
                if field is None:
                    field = role_field(role.name, name, text, known=name not in unknown)
                elif field.is_given:
                    field.default = text
                else:
                    field.default = field.text = text
                field.verify()
                fresh.append(field)
        self.fields = [field for field in self.fields if not role_of(field.section)] + fresh
        self._take_kept()
        # What the app has no more cannot be changed in it.
        self.lost = [f"{role}.{name}" for role, texts in self._kept.items() for name in texts]
        self._kept = {}
        return [(field.section, field.name) for field in fresh] != list(before)

    def _take_kept(self) -> None:
        """Give roles what an earlier launch had changed in them, once they are known."""
        for role in [role for role in self._kept if role in self.roles]:
            for name, text in self._kept.pop(role).items():
                if (field := self.get(role_section(role), name)) is not None:
                    field.take(text, LAST_RUN)

    def _derive(self) -> None:
        """Let a named resource say what the figures beside it are, which do not count then."""
        named = self._named_resource()
        if named is None:
            return
        found = self._figures.get(named.text) if not named.is_swept else None
        for name, figure in zip(_FIGURES, found or ("",) * len(_FIGURES), strict=True):
            if (field := self.get(ARGUMENT, name)) is not None:
                field.from_other = (figure, named.name) if found else ("", "")

    def _named_resource(self) -> Field | None:
        return next((field for field in self.section(ARGUMENT) if field.editor == "resource"), None)

    @property
    def unread_resource(self) -> str:
        """The named resource whose figures are to be read, see `learn_resource`; empty for none."""
        named = self._named_resource()
        if named is None or named.text in self._figures:
            return ""
        return named.text

    def learn_resource(self, name: str, resource: Resource | None) -> None:
        """Take what a named resource is; None where there is none of that name."""
        self._figures[name] = tuple(str(getattr(resource, figure)) for figure in _FIGURES) if resource else None
        self._derive()
        for field in self.fields:
            # All are loaded now.
            if field.editor == "resource":
                field.verify()

    # What it says

    @property
    def is_whole(self) -> bool:
        """Whether the run options of the chosen scheduler are known."""
        return self._options is not None

    def errors(self) -> list[Field]:
        """Return the fields that something is wrong with, in the order of the form."""
        return [field for field in self.fields if field.error]

    def swept(self) -> list[Field]:
        """Return the fields with several values."""
        return [field for field in self.fields if field.is_swept]

    def launch_count(self) -> int:
        """Return how many jobs would be launched; 0 while something is wrong with a swept field."""
        return math.prod(len(field.values) for field in self.swept()) if not self.errors() else 0

    def plan(self) -> LaunchPlan:
        """Return the launch, the first one of a sweep.

        Raises:
            ValueError: a text is not of its field's type; `errors` names the field.
        """
        return next(self.plans())

    def plans(self) -> Iterator[LaunchPlan]:
        """Give every launch of the form: the product of its fields with several values, the last varying first.

        Raises:
            ValueError: as for `plan`.
        """
        swept = self.swept()
        for values in product(*(field.values for field in swept)):
            texts = {id(field): text for field, text in zip(swept, values, strict=True)}
            label = " ".join(
                f"{field.name}={mask_text(field.name, text)}" for field, text in zip(swept, values, strict=True)
            )
            yield self._planned(lambda item, texts=texts: texts.get(id(item), item.text), label)

    def _planned(self, text_of: Callable[[Field], str], label: str) -> LaunchPlan:
        workspace = self.get(LAUNCH, "workspace")
        config = {
            (f"{ARGUMENT_PREFIX}{field.name}" if field.section == ARGUMENT else field.name): field.text
            for field in self.fields
            if field.origin in (CONFIG, PROFILE)
        }
        return LaunchPlan(
            component="" if self.base else self.doc.name,
            arguments={
                field.name: text_of(field) for field in self.section(ARGUMENT) if text_of(field) != field.default
            },
            overrides=self._overrides(text_of),
            scheduler=self.scheduler,
            cfg=self._cfg(text_of),
            workspace=workspace.text if workspace else "",
            base=self.base,
            config=config,
            label=label,
            ignores_config=self.ignores_config,
            profile=self.profile,
        )

    def _overrides(self, text_of: Callable[[Field], str]) -> dict[str, dict[str, str]]:
        found = {role: dict(texts) for role, texts in self._kept.items()}
        for field in self.fields:
            if (role := role_of(field.section)) and text_of(field) != field.default:
                found.setdefault(role, {})[field.name] = text_of(field)
        return found

    def _cfg(self, text_of: Callable[[Field], str]) -> dict[str, Any]:
        given: dict[str, Any] = {}
        for field in self.section(OPTION):
            option = self._options.get(field.name) if self._options is not None else None
            text = text_of(field)
            if option is not None and text != field.default:
                given[field.name] = option.cast_to_type(text) if text else None
        return given

    def diff(self, record: LaunchRecord | None) -> list[tuple[str, str, str]]:
        """Return name, text then and text now of each field that differs from an earlier launch, in form order.

        What looks secret is masked. What the launch was given and the form has no field for any more is empty now.
        """
        if record is None:
            return []
        rows = []
        for field in self.fields:
            before = self._before(field, record)
            if before != field.text:
                role = role_of(field.section)
                name = f"{role} {field.name}" if role else field.name
                rows.append((name, mask_text(field.name, before), mask_text(field.name, field.text)))
        for section, values in ((ARGUMENT, record.arguments), (OPTION, record.cfg)):
            names = {field.name for field in self.section(section)}
            gone = {name: plain_text(value) for name, value in values.items() if name not in names}
            rows += [(name, mask_text(name, text), "") for name, text in gone.items() if text]
        rows += self._script_diff(record)
        if record.scheduler != self.scheduler:
            rows.append(("scheduler", record.scheduler, self.scheduler))
        return rows

    def script_lines(self) -> list[ScriptLine]:
        """Return the lines of the batch script with what is submitted beside them; none where it is no script."""
        if not self.doc.text:
            return []
        fields = [field for field in self.section(ARGUMENT) if field.text != field.default and field.text]
        changed = {field.name: mask_text(field.name, field.text) for field in fields}
        return lines_with_changes(mask_text("", self.doc.text), changed)

    def _script_diff(self, record: LaunchRecord) -> list[tuple[str, str, str]]:
        """Return the lines of the script that are others than at an earlier launch."""
        if not self.doc.text:
            return []
        if record.id not in self._script_diffs:
            kept = script_of(record.app_def().roles)
            lines = differing_lines(kept.text, self.doc.text) if kept else []
            self._script_diffs[record.id] = [
                (f"line {line} of the script", mask_text("", then), mask_text("", now)) for line, then, now in lines
            ]
        return self._script_diffs[record.id]

    def _before(self, field: Field, record: LaunchRecord) -> str:
        if field.section == LAUNCH:
            return record.workspace
        if role := role_of(field.section):
            return record.overrides.get(role, {}).get(field.name, field.default)
        return given_texts(record.arguments if field.section == ARGUMENT else record.cfg, field)


def _workspace_field() -> Field:
    return Field("workspace", LAUNCH, "folder", help=WORKSPACE_HELP, check=_workspace_fault)


def _workspace_fault(text: str) -> str:
    from ...components.role_overrides import check_role_field

    return check_role_field("workspace", text)
