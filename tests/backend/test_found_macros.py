"""Macros that are found again in what became of them: launching it again gives the same."""

import pytest
from backend.kubernetes.apps import container, env, resource, role
from backend.tables import TABLES
from hypothesis import given
from hypothesis import strategies as st

from torchx_tui.backends.kubernetes.request import manifest
from torchx_tui.backends.kubernetes.request.app_def import roles_of
from torchx_tui.backends.shared.found_macros import Place, as_given, literal
from torchx_tui.specs.roles import macros

APP = "job-wq4xkz7dn2bcd"
PLACES = [Place(APP, 0, ("TORCHX_RANK0_HOST",)), Place(APP, 1, ("VC_A_0_HOSTS",)), Place(APP, 2, ("VC_A_0_HOSTS",))]


def became(text, count=3):
    """Return what a text becomes in replicas."""
    return [
        macros.Values("", place.app_id, str(place.replica_id), rank0_env=place.rank0_env[0]).substitute(text)
        for place in PLACES[:count]
    ]


@pytest.mark.parametrize("text", TABLES["found_macros"]["found"])
def test_macros_are_found(text):
    assert as_given(became(text), PLACES) == text


@given(
    st.lists(
        st.sampled_from(["${app_id}", "${replica_id}", "${rank0_env}", "$$", "$", "x", "7", " ", "{", "}", "a$b", "-"]),
        max_size=6,
    ).map("".join),
    st.integers(1, 3),
)
def test_found_macros_become_the_same_again(text, count):
    texts = became(text, count)
    found = as_given(texts, PLACES[:count])
    # Digits beside the number of a replica may hide it.
    if found is not None:
        assert became(found, count) == texts


@given(st.text(alphabet="${}apid_x", max_size=12))
def test_a_text_without_macros_becomes_itself(text):
    assert became(literal(text), 1) == [text]


@pytest.mark.parametrize("texts", TABLES["found_macros"]["different"])
def test_other_differences_are_no_macros(texts):
    assert as_given(texts, PLACES) is None


def test_a_relaunched_job_is_the_same(monkeypatch):
    monkeypatch.setattr(manifest, "make_unique", lambda name: f"{name}-wq4xkz7dn2bcd")
    script = "torchrun --rdzv_endpoint $${${rank0_env}:=localhost}:29500 --rdzv_id ${app_id} --node ${replica_id}"
    given = [
        role("train-er", num_replicas=3, args=["-c", script], env={"DIR": "/out/${app_id}/${replica_id}"}),
        role("reader", args=["${rank0_env}"]),
    ]
    job = resource(*given)
    notes = []
    again = roles_of(job, notes)
    assert (again, notes) == (given, [])
    assert resource(*again) == job


def test_differing_replicas_are_noted():
    job = resource(role(num_replicas=2, env={"A": "1", "B": "x"}))
    container(job, 1)["command"][2] = "exit 7"
    container(job, 1)["env"][0]["value"] = "2"
    notes = []
    (found,) = roles_of(job, notes)
    assert (found.args, found.env) == (["-c", "exit 0"], {"A": "1", "B": "x"})
    assert [note.partition(" differs")[0] for note in notes] == ["worker: its argument 2", "worker: its variable A"]
    container(job, 1)["command"].append("more")
    (found,) = roles_of(job, notes)
    assert found.args == ["-c", "exit 0"]
    assert "the arguments of its replicas differ" in notes[2]


def test_a_name_without_a_random_part_is_no_macro():
    job = resource(role(args=["-c", "job"], env={"A": "job"}))
    job["metadata"]["name"] = "job"
    job["spec"]["tasks"][0]["template"]["metadata"]["labels"] = {}
    (found,) = roles_of(job)
    assert found.args == ["-c", "job"]
    assert found.env["A"] == env(job)["A"] == "job"
