"""Names: TorchX's where a server takes them; what it would refuse is refused before anything is sent."""

import re

import pytest
from backend.kubernetes.tables import table
from hypothesis import given
from hypothesis import strategies as st

from torchx_tui.backends.kube.names import label_value
from torchx_tui.backends.kubernetes.volcano.kind import VOLCANO
from torchx_tui.backends.kubernetes.volcano.names import cleanup_str, hosts_variable, task_name
from torchx_tui.specs.errors import AppDefError
from torchx_tui.specs.roles import AppDef, Role

LABEL_VALUE = re.compile(r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?")


def role(name="worker", entrypoint="sh", **changes):
    return Role(name, "busybox:local", entrypoint=entrypoint, **changes)


@table("names.yaml", "refused", "name roles words")
def test_what_cannot_be_a_job_is_refused(name, roles, words):
    with pytest.raises(AppDefError, match=words):
        VOLCANO.check(AppDef(name, [role(**fields) for fields in roles]), "default")


@pytest.mark.parametrize("namespace", ["", "A", "a_b", "-a", "a-", "a" * 64, "a/b", "a b"])
def test_namespaces_that_cannot_be(namespace):
    with pytest.raises(AppDefError, match="The namespace is"):
        VOLCANO.check(AppDef("job", [role()]), namespace)


def test_the_last_replica_decides_on_the_length():
    # JOB-XXXXXXXXXXXXXX-ROLE-K-0 is 63 characters with a number of one digit.
    long = "n" * (63 - len("-XXXXXXXXXXXXXX-worker-0-0"))
    VOLCANO.check(AppDef(long, [role(num_replicas=10)]), "default")
    with pytest.raises(AppDefError, match=r": 1 character too long .* it can have 36 at most"):
        VOLCANO.check(AppDef(long, [role(num_replicas=11)]), "default")


def test_names_as_torchx_makes_them():
    assert cleanup_str("My_App.v1-X") == "myappv1x"
    assert task_name("Tr_a.in-er", 3) == "train-er-3"


def test_variable_of_the_first_host_is_valid_in_a_shell():
    assert hosts_variable("Tr_a.in-er", 0) == "VC_TRAIN_ER_0_HOSTS"


@given(st.text(max_size=100))
def test_labels_are_what_a_server_takes(text):
    made = label_value(text)
    assert LABEL_VALUE.fullmatch(made)
    assert len(made) <= 63


@given(st.from_regex(LABEL_VALUE, fullmatch=True).filter(lambda text: len(text) <= 63 and text.isascii()))
def test_labels_that_a_server_takes_stay_as_they_are(text):
    assert label_value(text) == text
