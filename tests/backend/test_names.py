"""Names that a backend refuses or changes are told without a launch, and are those that a launch refuses."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchx_tui.backends.docker import request as docker
from torchx_tui.backends.history.journal import Journal
from torchx_tui.backends.kubernetes.request import names as kubernetes
from torchx_tui.backends.local import request as local
from torchx_tui.backends.runner import Runner
from torchx_tui.specs import AppDef, AppDefError, Role

BACKENDS = {
    "local": (local.name_faults, lambda app: local.check_app(app, "mine")),
    "docker": (docker.name_faults, docker.check_app),
    "kubernetes": (kubernetes.name_faults, lambda app: kubernetes.check_app(app, "default")),
}


def app(name, *roles, **changes):
    made = [Role(role, "image", entrypoint="true", **changes) for role in roles]
    return AppDef(name, made)


@pytest.mark.parametrize(
    ("backend", "made", "whose", "words"),
    [
        ("local", app("a/b", "r"), "", "it becomes a folder's name, so it can have no slash"),
        ("local", app("", "r"), "", "so give one"),
        ("local", app("job", "r", ".."), "..", "not be dots alone"),
        ("local", app("job\n", "r"), "", "no control characters"),
        ("local", app("ü" * 101, "r"), "", "too long for a folder's name, so it can have up to 200 bytes"),
        ("local", app("job", "r", "r"), "r", "job has two roles r"),
        ("docker", app("my job", "r"), "", "so it can have letters and digits of ASCII, and _ . -"),
        ("docker", app("job", "a/b"), "a/b", "containers are named after it"),
        ("docker", app("job", "r" * 30 + "1", "r" * 30 + "2"), "r" * 30 + "2", "containers of one name"),
        ("kubernetes", app("Ü", "r"), "", "it needs letters or digits of ASCII"),
        ("kubernetes", app("job", "r", "R"), "R", "the roles r and R would have pods of one name"),
        ("kubernetes", app("j" * 43, "r"), "", "1 character too long together with that of its role r"),
        ("kubernetes", app("job", "r" * 60), "r" * 60, "together with that of the app job"),
    ],
)
def test_names_that_are_refused(backend, made, whose, words):
    faults, check = BACKENDS[backend]
    (fault,) = [fault for fault in faults(made) if fault.refused]
    assert fault.role == whose
    assert fault.name == (whose or made.name)
    assert words in fault.words
    with pytest.raises(AppDefError):
        check(made)


@pytest.mark.parametrize(
    ("backend", "made", "whose", "words"),
    [
        ("docker", app("job", "r" * 31), "r" * 31, f"its first 30 characters only: they are named {'r' * 30}"),
        ("kubernetes", app("My_Job", "r"), "", "they are named myjob"),
        ("kubernetes", app("job", "trainer_1"), "trainer_1", "they are named trainer1"),
    ],
)
def test_names_that_are_changed(backend, made, whose, words):
    faults, check = BACKENDS[backend]
    (fault,) = faults(made)
    assert (fault.role, fault.refused) == (whose, False)
    assert words in fault.words
    check(made)


def test_what_fits_is_what_the_words_say():
    too_long = app("j" * 45, "r")
    (fault,) = kubernetes.name_faults(too_long)
    most = int(fault.allowed.removeprefix("it can have ").partition(" ")[0])
    assert list(kubernetes.name_faults(app("j" * most, "r"))) == []
    assert list(kubernetes.name_faults(app("j" * (most + 1), "r"))) != []


NAMES = st.one_of(st.sampled_from(["job", "a b", "", ".", "r" * 31, "R", "r", "ß"]), st.text(max_size=70))


@pytest.mark.parametrize("backend", BACKENDS)
@given(name=NAMES, roles=st.lists(NAMES, min_size=1, max_size=3))
def test_a_launch_refuses_these_and_no_others(backend, name, roles):
    faults, check = BACKENDS[backend]
    made = app(name, *roles)
    refused = [fault for fault in faults(made) if fault.refused]
    assert all(fault.role == "" or fault.role in roles for fault in refused)
    try:
        check(made)
    except AppDefError:
        assert refused
    else:
        assert not refused


def test_the_runner_passes_them_on(tmp_path):
    with Runner(journal=Journal(tmp_path)) as runner:
        (fault,) = runner.check_names(app("a/b", "r"), "local_cwd", {})
        assert (fault.what, fault.refused) == ("The app's name", True)
        assert [fault.role for fault in runner.check_names(app("job", "a b"), "local_docker", {})] == ["a b"]
    assert not any(tmp_path.iterdir())
