"""Jobs of every kind, as a real Kubernetes 1.36 recorded them: state, replicas, and the sentence that a user reads."""

from backend.kubernetes.samples import described, letters, sample
from backend.kubernetes.tables import table

from torchx_tui.backends.kube.pods import seconds_of
from torchx_tui.backends.kubernetes.kinds.batch import BATCH
from torchx_tui.backends.kubernetes.kinds.jobset import JOBSET
from torchx_tui.backends.kubernetes.volcano.kind import VOLCANO


def check(group, request, *expected):
    found = sample(group, request.node.callspec.id)
    response = described(JOBSET if "replicatedJobs" in found["job"]["spec"] else BATCH, found)
    assert (response.state.name, letters(response), response.msg) == expected


@table("samples.yaml", "plain", "state replicas message")
def test_job(state, replicas, message, request):
    check("plain", request, state, replicas, message)


@table("samples.yaml", "jobset", "state replicas message")
def test_jobset(state, replicas, message, request):
    check("jobset", request, state, replicas, message)


@table("samples.yaml", "kueue", "state replicas message")
def test_queued_job(state, replicas, message, request):
    check("kueue", request, state, replicas, message)


@table("samples.yaml", "volcano", "state replicas message started")
def test_volcano_job(state, replicas, message, started, request):
    response = described(VOLCANO, sample("volcano", request.node.callspec.id))
    assert (response.state.name, response.msg, response.started_at) == (state, message, seconds_of(started))
    assert replicas in (None, letters(response))
    times = [change.at for change in response.timeline]
    assert times == sorted(times)


@table("samples.yaml", "gang", "state replicas message")
def test_gang(state, replicas, message, request):
    check("gang", request, state, replicas, message)
