"""An engine, or something else in its place, whose answers are not those of an engine."""

import pytest
from support.scripted_engine import listed, scripted_engine

from torchx_tui.backends.docker.scheduler import create_scheduler
from torchx_tui.specs.errors import SchedulerError

ODD = [
    *(None, "text", 7, [], {}, {"Id": 5}, {"Id": None, "Labels": {}}),
    *(
        {name: value}
        for name in ("State", "Status", "Image", "Names", "Ports", "Created")
        for value in ([7], {"a": 1}, 5)
    ),
    {"Ports": [{"PrivatePort": "x", "PublicPort": []}]},
    {"Labels": "text"},
]


@pytest.fixture
def scheduler(monkeypatch):
    with scripted_engine() as engine:
        monkeypatch.setenv("DOCKER_HOST", engine.host)
        made = create_scheduler("s")
        yield engine, made
        made.close()


@pytest.mark.parametrize("odd", ODD, ids=repr)
def test_odd_entry_costs_at_most_its_own_row(scheduler, odd):
    engine, docker = scheduler
    entry = listed(1, Labels={**listed()["Labels"], "torchx.pytorch.org/app-id": "odd"})
    engine.gives(
        "/containers/json", [{**entry, **odd} if isinstance(odd, dict) and odd and "Id" not in odd else odd, listed()]
    )
    assert "app-x" in [row.app_id for row in docker.list()]


@pytest.mark.parametrize("answer", [7, None, "text", {"message": "hello"}])
def test_answer_that_is_no_list_is_an_error_in_words(scheduler, answer):
    engine, docker = scheduler
    engine.gives("/containers/json", answer)
    with pytest.raises(SchedulerError, match="did not answer with a list of containers"):
        docker.list()


def test_refusal_of_control_characters_names_the_status(scheduler):
    engine, docker = scheduler
    engine.answers["GET", "/containers/json"] = 500, {"message": "\0\x1b\x07"}
    with pytest.raises(SchedulerError, match="refused with HTTP status 500 and gave no reason"):
        docker.list()
