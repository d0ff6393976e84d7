"""Names that a backend refuses or changes are reported without a launch, and are those that a launch refuses."""

import pytest
from backend.tables import TABLES
from hypothesis import given
from hypothesis import strategies as st

from torchx_tui.backends.docker import request as docker
from torchx_tui.backends.kubernetes.choose import LAUNCHED
from torchx_tui.backends.local import request as local
from torchx_tui.backends.runner import Runner
from torchx_tui.specs.errors import AppDefError
from torchx_tui.specs.roles import AppDef, Role

BACKENDS = {
    "local": (local.name_faults, lambda app: local.check_app(app, "mine")),
    "docker": (docker.name_faults, docker.check_app),
    "kubernetes": (LAUNCHED["volcano"].name_faults, lambda app: LAUNCHED["volcano"].check(app, "default")),
}


def app(name, *roles):
    return AppDef(name, [Role(role, "image", entrypoint="true") for role in roles])


@pytest.mark.parametrize(("backend", "name", "roles", "whose", "words"), TABLES["names"]["refused"])
def test_names_that_are_refused(backend, name, roles, whose, words):
    faults, check = BACKENDS[backend]
    (fault,) = [fault for fault in faults(app(name, *roles)) if fault.refused]
    assert (fault.role, fault.name) == (whose, whose or name)
    assert words in fault.words
    with pytest.raises(AppDefError):
        check(app(name, *roles))


@pytest.mark.parametrize(("backend", "name", "roles", "whose", "words"), TABLES["names"]["changed"])
def test_names_that_are_changed(backend, name, roles, whose, words):
    faults, check = BACKENDS[backend]
    (fault,) = faults(app(name, *roles))
    assert (fault.role, fault.refused) == (whose, False)
    assert words in fault.words
    check(app(name, *roles))


def test_a_name_of_the_allowed_length_fits():
    (fault,) = LAUNCHED["volcano"].name_faults(app("j" * 45, "r"))
    most = int(fault.allowed.removeprefix("it can have ").partition(" ")[0])
    assert [any(LAUNCHED["volcano"].name_faults(app("j" * (most + more), "r"))) for more in (0, 1)] == [False, True]


NAMES = st.one_of(st.sampled_from(["job", "a b", "", ".", "r" * 31, "R", "r", "ß"]), st.text(max_size=70))


@pytest.mark.parametrize("backend", BACKENDS)
@given(name=NAMES, roles=st.lists(NAMES, min_size=1, max_size=3))
def test_a_launch_refuses_these_and_no_others(backend, name, roles):
    faults, check = BACKENDS[backend]
    refused = [fault for fault in faults(app(name, *roles)) if fault.refused]
    assert all(fault.role == "" or fault.role in roles for fault in refused)
    try:
        check(app(name, *roles))
    except AppDefError:
        assert refused
    else:
        assert not refused


def test_the_runner_reports_faults_of_names(journal):
    with Runner(journal=journal) as runner:
        (fault,) = runner.check_names(app("a/b", "r"), "local_cwd", {})
        assert (fault.what, fault.refused) == ("The app's name", True)
        assert [fault.role for fault in runner.check_names(app("job", "a b"), "local_docker", {})] == ["a b"]
    assert not journal.folder.exists()
