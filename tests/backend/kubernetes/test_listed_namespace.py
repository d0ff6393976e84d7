"""A list of another namespace than the scheduler's own, as `torchx list -cfg namespace=...` asks for one."""

from support.volcano_jobs import make_job, start_job

from torchx_tui.backends.kubernetes.scheduler import KubernetesScheduler


def test_the_namespace_of_the_options_is_listed(kubernetes_cluster):
    app_id = start_job(kubernetes_cluster, make_job("here"))
    scheduler = KubernetesScheduler("torchx", namespace="kube-public")
    try:
        assert scheduler.list() == []
        assert [row.app_id for row in scheduler.list({"namespace": kubernetes_cluster.namespace})] == [app_id]
        assert scheduler.list({"namespace": "kube-public"}) == []
        assert scheduler.list({"namespace": None}) == []
    finally:
        scheduler.close()
