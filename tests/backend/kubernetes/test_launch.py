"""Launching: what is sent, what a server's refusals say in words, and that nothing is lost or made twice."""

import socket
import time

import pytest
from backend.kubernetes.apps import request, role
from backend.kubernetes.tables import table
from support.scripted_server import ScriptedServer, status

from torchx_tui.backends.kube.api_server import ApiError
from torchx_tui.backends.kubernetes import labels
from torchx_tui.backends.kubernetes.lifecycle import launch, validate
from torchx_tui.backends.kubernetes.volcano.kind import VOLCANO
from torchx_tui.backends.shared.progress import Progress, shown_progress
from torchx_tui.specs.errors import AppDefError, BackendUnavailableError, LaunchCancelledError, SchedulerError
from torchx_tui.specs.mounts import VolumeMount

JOBS = "/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs"


def test_the_job_is_created_with_the_time(server):
    made = request(role())
    before = time.time()
    assert launch(server.api(), VOLCANO, made) == made.app_id
    ((_, path, params, body, _),) = server.asked
    assert (path, params) == (JOBS, {})
    assert before - 0.001 <= float(body["metadata"]["annotations"].pop(labels.SUBMITTED_AT)) <= time.time()
    assert body == made.resource


def test_images_are_pushed_first(server):
    made = request(role())
    made.images_to_push = {"sha256:a": ("repo", "a")}
    pushed = []

    def push(images):
        assert server.asked == []
        pushed.append(images)

    launch(server.api(), VOLCANO, made, push_images=push)
    assert pushed == [made.images_to_push]
    with pytest.raises(SchedulerError, match="no Docker engine can do it"):
        launch(server.api(), VOLCANO, made)


def test_a_launch_that_was_cancelled_sends_nothing(server):
    progress = Progress(lambda text: None)
    progress.cancel()
    with shown_progress(progress), pytest.raises(LaunchCancelledError):
        launch(server.api(), VOLCANO, request(role()))
    assert server.asked == []


@table("refusals.yaml", "launches", "answer words")
def test_refusals_in_words(server, answer, words):
    made = request(role(num_replicas=2))
    server.answers["POST", JOBS] = tuple(answer)
    with pytest.raises(ApiError) as launched:
        launch(server.api(), VOLCANO, made)
    assert str(launched.value).startswith(f"{made.app_id} was not launched: ")
    assert launched.value.status == answer[0]
    with pytest.raises((AppDefError, ApiError)) as validated:
        validate(server.api(), VOLCANO, made.resource)
    # A fault of the app is its error.
    assert isinstance(validated.value, AppDefError) is (answer[0] in (400, 413, 422))
    for word in words:
        assert word in str(launched.value)
        assert word in str(validated.value)


def test_complaints_are_not_endless(server):
    causes = [{"field": f"spec.x{number}", "message": "bad"} for number in range(50)]
    server.answers["POST", JOBS] = status(422, "Invalid", "is invalid", causes=causes)
    with pytest.raises(AppDefError, match="and 46 more") as raised:
        validate(server.api(), VOLCANO, request(role()).resource)
    assert "spec.x3" in str(raised.value)
    assert "spec.x4" not in str(raised.value)


class Created:
    """A server that creates a job and then fails to say so."""

    def __init__(self, server, made, answer=None):
        self.posted = 0
        self._job = None
        self._answer = answer
        path = f"{JOBS}/{made.resource['metadata']['name']}"
        server.answers["POST", JOBS] = self.create
        server.answers["GET", path] = self.tell

    def create(self, asked):
        self.posted += 1
        self._job = asked.body
        return self._answer

    def tell(self, asked):
        return 200, self._job


@pytest.mark.parametrize("answer", [None, status(504, "Timeout", "too late"), status(409, "AlreadyExists", "there")])
def test_an_answer_that_is_lost_costs_no_job_and_makes_no_second(server, answer):
    made = request(role())
    created = Created(server, made, answer)
    assert launch(server.api(), VOLCANO, made) == made.app_id
    assert created.posted == 1


def test_a_job_of_that_name_that_is_someone_elses(server):
    made = request(role())
    server.answers["POST", JOBS] = status(409, "AlreadyExists", "there", name="x")
    server.gives(f"{JOBS}/{made.resource['metadata']['name']}", made.resource)
    with pytest.raises(ApiError, match="a job of this name in default already"):
        launch(server.api(), VOLCANO, made)


def test_an_answer_that_is_lost_and_no_job(server):
    server.answers["POST", JOBS] = lambda asked: None
    with pytest.raises(BackendUnavailableError, match=r"was not launched: .* closed the connection"):
        launch(server.api(), VOLCANO, request(role()))


def test_a_server_that_goes_away_for_good_in_the_midst(server):
    made = request(role())
    gone = lambda asked: None  # noqa: E731
    server.answers = {("POST", JOBS): gone, ("GET", f"{JOBS}/{made.resource['metadata']['name']}"): gone}
    with pytest.raises(BackendUnavailableError, match=f"Whether {made.app_id} was created is not known"):
        launch(server.api(), VOLCANO, made)


def test_a_server_that_is_not_there():
    with socket.create_server(("127.0.0.1", 0)) as closed:
        nobody = ScriptedServer()
        nobody.url = f"http://127.0.0.1:{closed.getsockname()[1]}"
    with pytest.raises(BackendUnavailableError, match=r"was not launched: .*refuses the connection"):
        launch(nobody.api(), VOLCANO, request(role()))
    with pytest.raises(BackendUnavailableError, match=r"refuses the connection.*validate_spec=false launches"):
        validate(nobody.api(), VOLCANO, request(role()).resource)


def test_a_service_account_that_is_missing_is_refused_before(server):
    made = request(role("a"), role("b"), service_account="missing")
    for act in (lambda: launch(server.api(), VOLCANO, made), lambda: validate(server.api(), VOLCANO, made.resource)):
        with pytest.raises(AppDefError, match="there is no service account missing in default: correct service_accou"):
            act()
    # The dry run of the job alone.
    assert [one.params for one in server.requests("POST")] == [{"dryRun": "All"}]
    # Once a launch, however many pods name it.
    assert len(server.paths("GET")) == 2


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (request(role(), priority_class="high"), "there is no priority class high: correct priority_class"),
        (request(role(mounts=[VolumeMount("data", "/data")])), "there is no volume claim data in default: "),
    ],
)
def test_missing_object_of_a_pod_is_refused(server, made, words):
    for act in (lambda: launch(server.api(), VOLCANO, made), lambda: validate(server.api(), VOLCANO, made.resource)):
        with pytest.raises(AppDefError, match=words):
            act()


def test_service_account_that_cannot_be_read(server):
    path = "/api/v1/namespaces/default/serviceaccounts/trainer"
    server.answers["GET", path] = status(403, "Forbidden", "serviceaccounts is forbidden")
    made = request(role(), service_account="trainer")
    assert launch(server.api(), VOLCANO, made) == made.app_id
