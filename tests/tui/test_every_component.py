"""Every builtin, and components with parameters of every kind: picker, form, preview, launch, and back into a form."""

from __future__ import annotations

import json
import shlex
import warnings
from dataclasses import asdict
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from support.component_kinds import BUILTINS, KINDS, write_files
from support.dashboard import make_app
from support.launching import LaunchingScheduler
from support.screens import jobs_of, launch_of

from torchx_tui.backends.history.journal import LaunchRecord
from torchx_tui.backends.shared.progress import Progress
from torchx_tui.components.finder import describe, list_components
from torchx_tui.components.model import Parameter
from torchx_tui.components.role_overrides import ROLE_FIELDS
from torchx_tui.components.values import to_text
from torchx_tui.specs.roles import AppDef
from torchx_tui.specs.run_options import format_value, runopts
from torchx_tui.specs.serialize import appdef_to_dict
from torchx_tui.tui.launch.form_field import role_of
from torchx_tui.tui.launch.form_model import FormModel
from torchx_tui.tui.launch.work import launch_all


@pytest.fixture
def here(tmp_path, monkeypatch):
    """Give the folder that components are picked in, with the files of `component_kinds`."""
    folder = tmp_path / "here"
    folder.mkdir()
    write_files(folder)
    monkeypatch.chdir(folder)
    # What builtins warn of is no matter here.
    warnings.simplefilter("ignore", DeprecationWarning)
    return folder


@pytest.fixture
def scheduler():
    return LaunchingScheduler()


@pytest.fixture
def app(scheduler, tmp_path, here, monkeypatch):
    made = make_app(scheduler, tmp_path)
    monkeypatch.setattr(made.runner, "scheduler_names", lambda: ["local_cwd"])
    return made


def same_request(made: AppDef, launched: AppDef) -> None:
    """Check that an app is what was launched, but for what every job gets on its way."""
    for role, other in zip(made.roles, launched.roles, strict=True):
        assert (role.entrypoint, role.args, role.num_replicas) == (other.entrypoint, other.args, other.num_replicas)
        assert role.env.items() <= other.env.items()
        assert (role.mounts, role.resource, role.image) == (other.mounts, other.resource, other.image)


# In the screen: components whose fields are of every kind of widget; in the model: all

SHOWN = ("choices.py:few", "containers.py:several", "shapes.py:star")


async def test_every_kind_of_field_is_launched_and_comes_back(app, scheduler):
    journal = app.runner.journal
    async with jobs_of(app, rows=0) as table:
        for number, name in enumerate(SHOWN):
            kind = KINDS[name]
            launch = await table.picker()
            await launch.pick(name)
            for parameter, text in kind["typed"].items():
                launch.set(parameter, text)
            await launch.ready()
            assert launch.warnings() == ""
            launch.editor.preview.show("dry run")
            await launch.until(lambda launch=launch: "echo" in launch.preview(), "the command")
            table = await launch.submit()
            # The scheduler has the job before the journal has its id.
            await table.until(lambda: journal.records()[0].app_id, "the id in the journal")
            record, launched = journal.records()[0], scheduler.launched[-1]
            assert record.component == name
            assert launched.roles[0].args == kind["given"]
            # Once more, from the table.
            await table.until(lambda handle=record.handle: handle in app.jobs.rows, "the job")
            table.table.move_to(record.handle)
            again = await table.edit()
            await again.ready()
            await again.press("ctrl+t")
            assert again.preview() == "Same as the last launch"
            assert again.model.diff(record) == []
            table = await again.submit()
            await table.until(lambda number=number: len(scheduler.launched) == 2 * number + 2, "the launch")
            relaunched = scheduler.launched[-1]
            relaunched.roles[0].env = launched.roles[0].env
            assert appdef_to_dict(relaunched) == appdef_to_dict(launched)
            assert journal.records()[0].arguments == record.arguments


@pytest.mark.parametrize("name", KINDS)
def test_parameter_of_every_kind_is_what_was_typed(here, name):
    model, kind = form(name), KINDS[name]
    for name, text in kind["typed"].items():
        model.set("argument", name, text)
    assert model.errors() == []
    assert model.plan().app().roles[0].args == kind["given"]


@pytest.mark.parametrize("name", BUILTINS)
def test_builtin_is_launched_as_its_form_says(app, scheduler, name):
    typed = {**BUILTINS[name]["needed"], **BUILTINS[name]["more"]}
    model = FormModel(describe(name))
    model.choose_scheduler("local_cwd", app.runner.scheduler("local_cwd").run_opts())
    for parameter, text in typed.items():
        model.set("argument", parameter, text)
    assert model.errors() == []
    made = model.plan().app()
    assert launch_all(app.runner, [model.plan()], Progress(lambda _words: None)).error == ""
    same_request(made, scheduler.launched[0])
    record = app.runner.journal.records()[0]
    assert record.arguments == typed
    assert appdef_to_dict(record.app_def()) == appdef_to_dict(made)


def test_every_builtin_is_tried():
    assert {one.name for one in list_components() if one.kind == "builtin"} == set(BUILTINS)


async def test_optional_choice_can_be_taken_back(app):
    async with launch_of(app, "choices.py:few") as launch:
        await launch.focus("way")
        assert "none" in launch.value("way") or "none" in str(launch.row("way").input.render())
        for key, chosen in (("right", "up"), ("left", None)):
            await launch.press(
                key, until=lambda chosen=chosen: launch.model.plan().arguments.get("way") == chosen, what=f"{chosen}"
            )
        # The default of an Enum is one of its members, not a further choice.
        assert launch.value("color") == "RED"
        assert launch.field("color").offered == ("RED", "BLUE")


# In the model: whatever is typed

TEXTS = st.one_of(st.text(st.characters(codec="utf-8"), max_size=8), st.text("ab=,;:'\"\\ \n[]", max_size=8))
NAMES = st.from_regex(r"[A-Za-z_][A-Za-z0-9_.-]{0,8}", fullmatch=True)
PATHS = st.from_regex(r"/[a-z0-9._ -]{0,6}[a-z]", fullmatch=True)
MOUNTS = st.lists(st.builds("type=bind,src={},dst={}".format, PATHS, PATHS), max_size=2).map(",".join)
SINGLE: dict[str, st.SearchStrategy[str]] = {
    "str": TEXTS,
    "int": st.integers(-(10**6), 10**6).map(str),
    "float": st.floats(allow_nan=False).map(str),
    "bool": st.sampled_from(["true", "false", "yes", "0"]),
}
OPTIONS: dict[str, tuple[Any, Any, st.SearchStrategy[Any]]] = {
    "queue": (str, None, TEXTS.filter(bool)),
    "image_repo": (str, "default", TEXTS),
    "retries": (int, 3, st.integers()),
    "share": (float, None, st.floats(allow_nan=False)),
    "wait": (bool, True, st.booleans()),
    "tags": (list[str], ["a"], st.lists(TEXTS, max_size=3)),
    "labels": (dict[str, str], None, st.dictionaries(TEXTS, TEXTS, max_size=3)),
}
NAMES_OF_COMPONENTS = [*KINDS, "utils.echo", "utils.sh", "utils.copy", "utils.booth", "dist.spmd", "demo.train"]


def every_option() -> runopts:
    opts = runopts()
    for name, (kind, default, _) in OPTIONS.items():
        opts.add(name, kind, f"The {name}.", default=default)
    return opts


def texts_for(parameter: Parameter) -> st.SearchStrategy[str]:
    """Give texts that are valid for a parameter."""
    kind, items = parameter.type.kind, parameter.type.items
    if parameter.kind == "var_positional":
        return st.lists(SINGLE[kind], max_size=3).map(shlex.join)
    if parameter.choices:
        return st.sampled_from(parameter.choices)
    if parameter.form == "topology":
        return st.sampled_from(["1x2", "2x8", "1:4x8", "4"])
    if parameter.form == "resource":
        return st.sampled_from(["gpu.small", "gpu.xlarge"])
    if parameter.form == "mounts" or parameter.name == "mounts":
        return MOUNTS
    if kind == "list":
        part = SINGLE[items[0]].map(str.strip).filter(lambda text: text and "," not in text)
        return st.lists(part, max_size=3).map(to_text)
    if kind == "tuple":
        parts = [SINGLE["float"]] * 2 if "..." in items else [SINGLE[item] for item in items]
        return st.tuples(*(part.filter(lambda text: "," not in text) for part in parts)).map(to_text)
    if kind == "dict":
        return st.dictionaries(NAMES, SINGLE[items[1]], max_size=3).map(to_text)
    return SINGLE.get(kind, TEXTS)


ROLE_TEXTS: dict[str, st.SearchStrategy[str]] = {
    **{name: texts_for(parameter) for name, parameter in ROLE_FIELDS.items()},
    "num_replicas": st.integers(1, 99).map(str),
    "max_retries": st.integers(0, 9).map(str),
    "resource": st.sampled_from(["", "gpu.small", "cpu.nano"]),
    **{name: st.one_of(st.just(""), st.integers(0, 9).map(str)) for name in ("cpu", "gpu", "memMB")},
    "workspace": st.one_of(st.just(""), PATHS, st.just("{/a: x, /b: }")),
    "entrypoint": TEXTS.filter(str.strip),
}


def as_journal_has_it(model: FormModel) -> LaunchRecord:
    """Return the record of a launch of a form, as it is read from the journal."""
    plan = model.plan()
    origin: dict[str, Any] = asdict(plan.origin())
    record = LaunchRecord(
        "1", 0.0, plan.scheduler, "torchx", appdef_to_dict(plan.app()), dict(plan.cfg), **origin,
        workspace=plan.workspace,
    )  # fmt: skip
    return LaunchRecord(**json.loads(json.dumps(asdict(record))))


def form(name: str) -> FormModel:
    model = FormModel(describe(name))
    model.choose_scheduler("cluster", every_option(), workspace="")
    return model


def fill_anyhow(model: FormModel, data: st.DataObject) -> None:
    """Type something into some of the fields, and into all that must be given."""
    needed = (KINDS | BUILTINS)[model.doc.name]["needed"]
    for parameter in model.doc.parameters:
        if parameter.name in needed or data.draw(st.booleans()):
            allowed = st.just("") if parameter.optional and data.draw(st.booleans()) else texts_for(parameter)
            text = data.draw(allowed)
            model.set("argument", parameter.name, text or needed.get(parameter.name, ""))
    for name, (_, _, values) in OPTIONS.items():
        if data.draw(st.booleans()):
            model.set("option", name, format_value(data.draw(values)))
    if data.draw(st.booleans()):
        model.set("launch", "workspace", data.draw(ROLE_TEXTS["workspace"]))
    assume(not model.errors())
    try:
        model.take_app(model.plan().made_app())
    except ValueError:
        assume(False)
    for one in [one for one in model if role_of(one.section) and data.draw(st.integers(0, 3)) == 0]:
        model.set(one.section, one.name, data.draw(ROLE_TEXTS[one.name]))
    assume(not model.errors())


@settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.filter_too_much],
)
@given(name=st.sampled_from(NAMES_OF_COMPONENTS), data=st.data())
def test_form_comes_back_from_the_journal(here, name, data):
    first = form(name)
    fill_anyhow(first, data)
    record = as_journal_has_it(first)
    again = form(name)
    again.fill(record)
    assert again.errors() == []
    assert again.diff(record) == []
    # Before anybody has seen the roles, and after.
    for _ in range(2):
        plan = again.plan()
        assert appdef_to_dict(plan.app()) == record.app
        assert (plan.arguments, plan.cfg) == (first.plan().arguments, first.plan().cfg)
        assert (plan.workspace, plan.overrides) == (first.plan().workspace, first.plan().overrides)
        again.take_app(plan.made_app())
        assert again.diff(record) == []
        assert again.errors() == []
        assert again.lost == []
