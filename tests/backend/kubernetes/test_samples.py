"""Jobs of every kind, as a real Kubernetes 1.36 recorded them: state, replicas, and the sentence that a user reads."""

from __future__ import annotations

from backend.kubernetes.samples import described, letters, sample
from backend.kubernetes.tables import table

from torchx_tui.backends.kubernetes.kinds.batch import BATCH


@table("samples.yaml", "plain", "state replicas message")
def test_job(state, replicas, message, request):
    response = described(BATCH, sample("plain", request.node.callspec.id))
    assert (response.state.name, letters(response), response.msg) == (state, replicas, message)
