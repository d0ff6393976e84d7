"""TorchX 0.7.0, what `pip install torchx` gives, held against us: where it does as nightly does, that is enough."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given
from interop.oracle import Refused, cases, hold, names_of, same
from interop.release_0_7 import HOW, Release07, is_installed, our_release, pin_ours, value_of
from interop.release_questions import DECLARED, STRATEGIES
from interop.releases import Release, pin_torchx, torchx_release
from support.oracle_counts import ALL_CASES

if not ALL_CASES:
    pytest.skip("TorchX 0.7.0 is asked by `make oracle`", allow_module_level=True)

AREA = "torchx 0.7.0"
AS_NIGHTLY = "what nightly does too"

Releases = tuple[Release07, Release, Release]
"""0.7.0, nightly, and ours."""


@pytest.fixture(scope="module")
def process() -> Iterator[Release07 | None]:
    release = Release07() if is_installed() else None
    yield release
    if release:
        release.close()


@pytest.fixture
def releases(
    torchx: str, process: Release07 | None, require: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> Releases:
    require("interop", process is not None, HOW)
    assert process is not None
    pin_torchx(monkeypatch.setattr)
    pin_ours(monkeypatch.setattr)
    return process, torchx_release(), our_release()


@pytest.mark.parametrize("operation", STRATEGIES)
def test_answers(releases: Releases, operation: str) -> None:
    strategy, number = STRATEGIES[operation]

    @given(strategy)
    @cases(number)
    def ask(arguments: Any) -> None:
        their_answer, nightly, our_answer = (value_of(release.ask(operation, *arguments)) for release in releases)

        def explain(their: Any, our: Any) -> str | None:
            return AS_NIGHTLY if same(their, nightly) else EXPLAINED[operation](arguments, their, nightly, our)

        hold(AREA, their_answer, our_answer, explain, (operation, arguments))

    ask()


def unknown_option(arguments: Any, _their: Any, _nightly: Any, _our: Any) -> str | None:
    declared, cfg = arguments
    return "unknown options" if set(cfg) - {name for name, *_ in declared} else None


def option_text(arguments: Any, _their: Any, _nightly: Any, _our: Any) -> str | None:
    _, text = arguments
    names = re.findall(r"(\w*)=", text)
    if set(names) - {name for name, *_ in DECLARED}:
        return "unknown options"
    if "'" in text:
        return "quotes"
    return "truth values" if "b" in names else None


def later_than(name: str) -> Callable[..., str | None]:
    """Return what explains that 0.7.0 refuses what nightly does as ours."""
    return lambda _arguments, their, nightly, our: name if isinstance(their, Refused) and same(nightly, our) else None


def without_session(_arguments: Any, their: Any, nightly: Any, our: Any) -> str | None:
    """Tell where 0.7.0 wants a session: it refuses the handle, or takes another part of it for one."""
    _, session, _ = nightly if isinstance(nightly, list) else (None, None, None)
    return "handles without session" if same(nightly, our) and (isinstance(their, Refused) or not session) else None


def capitals(arguments: Any, their: Any, nightly: Any, our: Any) -> str | None:
    name = arguments[0].get("h", "") if isinstance(arguments[0], dict) else arguments[0]
    if isinstance(their, Refused) and name.lower() != name:
        return "capitals in names of resources"
    return later_than("what came later")(arguments, their, nightly, our)


def image_variable(_arguments: Any, their: Any, nightly: Any, our: Any) -> str | None:
    """Undo that 0.7.0 does not tell a replica its image."""
    if isinstance(their, Refused) or isinstance(our, Refused):
        return None
    for container in containers(their):
        set_image(container)
    return "TORCHX_IMAGE" if repr(their) in (repr(our), repr(nightly)) else None


def containers(made: Any) -> list[Any]:
    """Return the containers of a Docker request or of a job."""
    if isinstance(made, list):
        return made
    return [container for task in made["spec"]["tasks"] for container in task["template"]["spec"]["containers"]]


def set_image(container: Any) -> None:
    if "environment" in container:
        container["environment"]["TORCHX_IMAGE"] = container["image"]
        container["environment"] = dict(sorted(container["environment"].items()))
        return
    variables = {one["name"]: one for one in container["env"]}
    variables["TORCHX_IMAGE"] = {"name": "TORCHX_IMAGE", "value": container["image"]}
    container["env"] = list(variables.values())


def component(arguments: Any, their: Any, nightly: Any, our: Any) -> str | None:
    name, argv = arguments
    if isinstance(their, Refused):
        if any(word.startswith("--h=") and word.lower() != word for word in argv):
            return "capitals in names of resources"
        return "what came later"
    if "'" in "".join(argv):
        return "quotes"
    if name.startswith("dist.") and not isinstance(nightly, Refused):
        environment = their["roles"][0]["env"]
        environment["TORCHX_TRACKING_RUN_NAME"] = nightly["roles"][0]["env"].get("TORCHX_TRACKING_RUN_NAME")
        their["roles"][0]["env"] = dict(sorted(environment.items()))
        return "the name of a run" if repr(their) in (repr(our), repr(nightly)) else None
    return None


EXPLAINED: dict[str, Callable[..., str | None]] = {
    "resolve": unknown_option, "read": option_text, "help": later_than("help"), "macros": later_than("macros"),
    "mounts": later_than("mounts"), "handle": without_session, "resource": capitals,
    "named": capitals, "status": later_than("error files"), "docker": image_variable, "kubernetes": image_variable,
    "component": component,
}  # fmt: skip

PLAIN_APP = {"name": "job", "roles": [{"name": "r", "entrypoint": "e"}]}
STATUS = {
    "state": 5, "num_restarts": 0, "msg": "", "structured_error_msg": "", "ui_url": None,
    "roles": [["r", [[5, '{"message": "flat", "errorCode": 3, "timestamp": 1}']]]],
}  # fmt: skip
# Of each entry: what is asked, what is looked at in the answer, what 0.7.0 gives and what ours do.
EXAMPLES: dict[str, tuple[tuple[Any, ...], Callable[[Any], Any], str, str]] = {
    AS_NIGHTLY: (
        ("mounts", ["type=bind", "src=/a", "dst=/b", "readonly=false"]), lambda one: one[0]["read_only"],
        "True", "False",
    ),
    "unknown options": (("read", DECLARED, "unknown=1"), lambda one: one, "{}", "InvalidRunConfigException"),
    "truth values": (("read", DECLARED, "b=yes"), lambda one: one["b"], "False", "True"),
    "quotes": (("read", DECLARED, "s='x'"), lambda one: one["s"], '"\'x\'"', "'x'"),
    "handles without session": (("handle", "a:///y"), lambda one: one[2], "MalformedAppHandleException", "'y'"),
    "capitals in names of resources": (("named", "GPU.small"), lambda one: one["gpu"], "KeyError", "1"),
    "error files": (("status", STATUS), lambda one: "exitcode: 3" in one[0], "TypeError", "True"),
    "TORCHX_IMAGE": (
        ("docker", PLAIN_APP, {}), lambda one: one[0]["environment"].get("TORCHX_IMAGE"), "None", "'img:1'"
    ),
    "what came later": (
        ("component", "dist.torchrun", ["--script=a.py"]), lambda one: one["name"], "ComponentNotFoundException", "'a'"
    ),
    "the name of a run": (
        ("component", "dist.ddp", ["--script=a.py"]),
        lambda one: one["roles"][0]["env"].get("TORCHX_TRACKING_RUN_NAME"), "None", "'a'",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", names_of(AREA))
def test_each_difference_is_there(releases: Releases, name: str) -> None:
    asked, look, *expected = EXAMPLES[name]
    for release, text in zip((releases[0], releases[2]), expected, strict=True):
        answer = value_of(release.ask(*asked))
        assert repr(answer if isinstance(answer, Refused) else look(answer)) == text


def test_no_example_is_left_over() -> None:
    assert set(EXAMPLES) == set(names_of(AREA))
