"""Volcano jobs with real pods, by keys alone."""

from __future__ import annotations

import re

import pytest
from actions import fill, go_to, live_through, look_inside, open_form, submit
from support.api_proxy import api_proxy
from support.kubernetes_cluster import in_namespace
from support.volcano_jobs import make_job, start_job

pytestmark = pytest.mark.slow

JOB = {"steps": "900", "num_replicas": "4", "step_seconds": "1", "image": "python:local"}
# What the node keeps for itself is all that is asked for: the machine has few cores.
OPTIONS = {"reserved_millicpu": "1000"}


@pytest.fixture
def app(terminal, kubernetes_cluster, tmp_path):
    """Open the dashboard beside a namespace in which nothing has run yet."""
    path = in_namespace(kubernetes_cluster.kubeconfig, kubernetes_cluster.namespace, tmp_path / "kubeconfig")
    return terminal(environ={"KUBECONFIG": path}, wait=r"✓ +kubernetes +Kubernetes v\d")


def chosen(app) -> str:
    """Return the scheduler that the form has, empty where it is drawn just now."""
    found = re.search(r"scheduler .*\(●\) (\w+)", app.text())
    return found[1] if found else ""


def launch(app, values) -> None:
    open_form(app, "demo.train")
    fill(app, values)
    go_to(app, "scheduler")
    while (before := chosen(app)) != "kubernetes":
        app.press("right", wait=lambda _, before=before: chosen(app) not in ("", before))
    # There is one queue: it is filled in.
    app.wait(r"queue +default +(only one|last run)")
    fill(app, OPTIONS)
    submit(app)


def test_launch_follow_cancel_relaunch_edit_and_delete(app):
    launch(app, JOB)
    app.wait(r"● Running +demo-train\b.* +k8s +4/4")
    look_inside(app, r"-trainer-2-0")
    app.wait(r"^ kind: Job")
    app.press("escape", wait="Every replica|Replicas")
    app.press("escape", wait="STATE")
    live_through(app, "k8s")
    app.press("q")
    assert app.wait_for_end() == 0


def test_only_the_job_at_the_cursor_is_looked_at(terminal, kubernetes_cluster, tmp_path):
    for number in range(5):
        start_job(kubernetes_cluster, make_job(f"job-{number}", queue="nosuch"))
    with api_proxy(kubernetes_cluster, tmp_path) as proxy:
        app = terminal(environ={"KUBECONFIG": str(proxy.kubeconfig)}, wait=r"kubernetes 5")
        app.wait("has not picked|does not exist")
        app.wait(lambda _: proxy.requests(lambda asked: asked.is_watch))
        at_cursor = re.search(r"^─ (job-\d) ─", app.text(), re.MULTILINE)
        assert at_cursor is not None
        # From now on, with the log's pane open, only what may explain it is asked for, more and more seldom.
        proxy.forget()
        app.wait(lambda _: proxy.requests(lambda asked: not asked.is_watch))
        asked = [one.path.rpartition("/")[2] for one in proxy.requests(lambda asked: not asked.is_watch)]
        assert asked == ["nosuch"]
        app.press("q")
        assert app.wait_for_end() == 0
