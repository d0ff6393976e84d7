"""The form without its widgets: fields, where values come from, what is wrong with them, what they make."""

import pytest
from support.component_files import ComponentFile

from torchx_tui.backends.history.journal import LaunchRecord
from torchx_tui.components.finder import describe
from torchx_tui.components.role_overrides import ROLE_FIELDS
from torchx_tui.specs.resource_names import named_resources
from torchx_tui.specs.run_options import runopts
from torchx_tui.tui.launch.form_field import Origin, role_field
from torchx_tui.tui.launch.form_model import FormModel
from torchx_tui.tui.launch.work import named_resource


def options(**more: type) -> runopts:
    opts = runopts()
    opts.add("log_dir", str, "Where logs are written.")
    opts.add("prepend_cwd", bool, "Put the folder first on PATH.", default=False)
    for name, kind in more.items():
        opts.add(name, kind, f"The {name}.")
    return opts


def launched(component: str, arguments: dict, cfg: dict | None = None, scheduler: str = "local_cwd") -> LaunchRecord:
    return LaunchRecord("1", 0.0, scheduler, "torchx", {}, cfg or {}, component, arguments)


@pytest.fixture
def train():
    model = FormModel(describe("demo.train"))
    model.choose_scheduler("local_cwd", options())
    return model


@pytest.fixture
def own(tmp_path):
    """A form of a component with a parameter of every kind."""
    name = (
        ComponentFile(tmp_path / "jobs.py")
        .write(
            """
from typing import Literal, Optional

def job(*rest: str, data: str, flag: bool = False, lr: float = 0.1, env: Optional[dict[str, str]] = None,
        tags: Optional[list[str]] = None, mode: Literal["fast", "slow"] = "fast", note: Optional[str] = None) -> AppDef:
    \"\"\"Run a job.

    Args:
        data: what is read
        rest: what the program is given
    \"\"\"
    return AppDef("job", [Role("r", "", entrypoint="true", args=[data, *rest], env=env or {})])
"""
        )
        .name("job")
    )
    model = FormModel(describe(name))
    model.choose_scheduler("local_cwd", options())
    return model


def field(model: FormModel, name: str, section: str = "argument"):
    one = model.get(section, name)
    assert one is not None
    return one


# Fields


def test_a_field_for_each_parameter_then_each_option(train):
    assert [one.name for one in train.section("argument")][:4] == [
        "steps",
        "num_replicas",
        "step_seconds",
        "fail_at_step",
    ]
    assert {one.name for one in train.section("option")} == {"log_dir", "prepend_cwd"}
    sections = [one.section for one in train]
    assert sections == sorted(sections)
    steps = field(train, "steps")
    assert (steps.text, steps.default, steps.type_words, steps.origin) == ("20", "20", "int", Origin.DEFAULT)
    assert steps.help == "number of training steps"


def test_fields_know_their_kind(own):
    assert field(own, "rest").type_words == "*str"
    assert not field(own, "rest").required
    assert field(own, "flag").choices == ("true", "false")
    assert field(own, "flag").text == "false"
    assert field(own, "mode").choices == ("fast", "slow")
    assert field(own, "env").text == ""
    assert field(own, "prepend_cwd", "option").choices == ("true", "false")


# Errors


def test_named_resource_is_checked_after_plugins_are_read():
    """Which runs their code: never while somebody types."""
    named_resources.reset()
    model = FormModel(describe("dist.torchrun"))
    model.set("argument", "h", "gpu.smal")
    assert field(model, "h").error == ""
    assert model.unread_resource == "gpu.smal"
    model.learn_resource("gpu.smal", named_resource("gpu.smal"))
    assert "Did you mean `gpu.small`" in field(model, "h").error
    model.set("argument", "h", "gpu.smaller")
    assert "gpu.smaller" in field(model, "h").error


def test_a_field_that_is_not_there_is_left_alone(train):
    assert train.set("argument", "nothing", "1") is None
    assert train.get("option", "steps") is None


# What it makes


def test_only_what_differs_from_its_default_is_given(train):
    train.set("argument", "steps", "5")
    train.set("argument", "num_replicas", "2")
    train.set("option", "prepend_cwd", "true")
    assert train.plan().arguments == {"steps": "5"}
    assert train.plan().cfg == {"prepend_cwd": True}


def test_typing_the_default_again_is_the_default(train):
    steps = train.set("argument", "steps", "5")
    assert steps.origin == Origin.TYPED
    train.set("argument", "steps", "20")
    assert steps.origin == Origin.DEFAULT
    assert train.plan().arguments == {}


def test_choices_of_options_and_script_lines(train, tmp_path):
    path = tmp_path / "train.sbatch"
    path.write_text("#!/bin/bash\n#SBATCH --partition=main\nsrun true\n")
    script = FormModel(describe(str(path)))
    assert script.learn({"partition": ["main", "short"]}) == []
    assert field(script, "partition").known == ("main", "short")
    assert field(script, "time").known == ()
    # An argument of a component is not the run option of its name.
    needed = runopts()
    needed.add("queue", str, "Where to wait.", required=True)
    train.choose_scheduler("cluster", needed)
    assert train.learn({"queue": ["one", "two"], "steps": ["5"]}) == []
    assert (field(train, "queue", "option").text, field(train, "steps").known) == ("", ())
    only = train.learn({"queue": ["one"]})
    assert [(one.name, one.text, one.origin) for one in only] == [("queue", "one", Origin.ONLY_ONE)]
    assert train.learn({"queue": ["two"]}) == []


def test_what_a_role_must_have():
    fields = [role_field("trainer", name, "") for name in ROLE_FIELDS]
    assert {one.name for one in fields if one.required} == {"num_replicas", "entrypoint", "max_retries"}
    assert [one.name for one in fields if one.type_words == "arguments"] == ["args"]


# From an earlier launch


def test_the_difference_to_an_earlier_launch(train):
    record = launched("demo.train", {"steps": "50", "num_replicas": "4"}, {"log_dir": "/logs"})
    train.fill(record)
    assert train.diff(record) == []
    train.set("argument", "steps", "60")
    train.set("argument", "num_replicas", "2")
    train.set("argument", "fail_rank", "1")
    train.set("option", "log_dir", "")
    assert train.diff(record) == [
        ("steps", "50", "60"),
        ("num_replicas", "4", "2"),
        ("fail_rank", "0", "1"),
        ("log_dir", "/logs", ""),
    ]
    train.choose_scheduler("local_docker", options())
    assert train.diff(record)[-1] == ("scheduler", "local_cwd", "local_docker")
    assert train.diff(None) == []


# Another scheduler


def test_another_scheduler_keeps_what_was_typed(train):
    train.set("argument", "steps", "5")
    train.set("option", "log_dir", "/logs")
    train.choose_scheduler("other", options(retries=int))
    assert train.scheduler == "other"
    assert train.get("launch", "workspace") is None
    assert field(train, "log_dir", "option").text == "/logs"
    assert field(train, "log_dir", "option").origin == Origin.TYPED
    assert field(train, "retries", "option").text == ""
    assert train.plan().arguments == {"steps": "5"}
    assert train.plan().cfg == {"log_dir": "/logs"}
    train.set("option", "retries", "3")
    train.choose_scheduler("local_cwd", options())
    assert train.get("option", "retries") is None
    assert train.plan().cfg == {"log_dir": "/logs"}


def test_an_option_left_at_its_default_takes_the_new_schedulers(train):
    other = runopts()
    other.add("prepend_cwd", bool, "Put the folder first.", default=True)
    train.choose_scheduler("other", other)
    assert field(train, "prepend_cwd", "option").text == "true"
    assert train.plan().cfg == {}
