"""The scheduler kubernetes: runs apps as Volcano jobs, each replica as a pod."""

from __future__ import annotations

import builtins
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ...logs.source.stream import Cursor, LogStream, PartsCursor
from ...specs.errors import JobNotFoundError, SchedulerError, UnknownReplicaError
from ...specs.roles import AppDef, AppDryRunInfo
from ...specs.run_options import CfgVal, runopts
from ..api import (
    Capabilities,
    ClusterStatus,
    DescribeAppResponse,
    Finding,
    JobAction,
    ListAppResponse,
    NameFault,
    ReplicaUsage,
    Scheduler,
    Stream,
)
from ..kube.api_server import TIMEOUT_S, ApiError, ApiServer
from ..kube.objects import KubernetesObject, dig, sanitize_for_serialization
from ..kube.pod_template import role_to_pod
from ..kube.pods import MAIN, main_container, run_of
from ..kube.rights import EXEC, EXEC_1_35, Right
from ..kube.shell import run_command, shell_command
from ..shared.bounded_command import RUN_BESIDE_S, CommandOutput
from ..shared.factories import accepted_arguments
from ..shared.readable_yaml import readable_yaml
from ..workspace.docker_workspace import DockerWorkspaceMixin
from .actions import job_actions
from .choose import AUTO, LAUNCHED, choose_kind
from .cluster import ClusterReader
from .describe import FollowedJobs
from .job_kind import CHILDREN, JobKind
from .jobs import split_app_id
from .kinds.found import ServerKinds
from .labels import pod_labels
from .launching.gangs import GANGS, add_gangs
from .lifecycle import abort, act, launch, remove, validate
from .listing import ListedJobs
from .log_stream import KubernetesLogStream
from .preflight import known_values, launch_findings, server_findings
from .request import KubernetesJob, KubernetesOpts, make_request, masked
from .usage import UsageSampler
from .volcano.manifest import app_to_resource
from .volcano.names import cleanup_str

if TYPE_CHECKING:
    import docker
    from kubernetes.client import ApiClient


_ALL = Capabilities(
    retries=True,
    logs_after_cancel="Its pods are removed, and their logs with them: what was read here stays until you quit.",
)


def native_text(job: KubernetesObject, pods: list[KubernetesObject]) -> str:
    """Return a job, the jobs that it made, and its pods as YAML documents, without managedFields, as kubectl does."""
    shown = []
    for item in (job, *job.get(CHILDREN, []), *pods):
        metadata = {name: value for name, value in item["metadata"].items() if name != "managedFields"}
        shown.append(
            masked(
                {name: value for name, value in {**item, "metadata": metadata}.items() if name not in (MAIN, CHILDREN)}
            )
        )
    return "---\n".join(map(readable_yaml, shown))


__all__ = [
    "KubernetesJob",
    "KubernetesOpts",
    "KubernetesScheduler",
    "app_to_resource",
    "cleanup_str",
    "create_scheduler",
    "pod_labels",
    "role_to_pod",
    "sanitize_for_serialization",
]


class KubernetesScheduler(DockerWorkspaceMixin, Scheduler[Mapping[str, CfgVal]]):
    """Runs each replica as a pod of a Volcano job, on TorchX's wire format: each sees the other's apps.

    Args:
        session_name: the session part of handles.
        client: gives the server and the user in place of a kubeconfig.
        docker_client: the engine that workspaces' images are built on and pushed from; the usual one where None.
        context: the context of the kubeconfig; the current one where None.
        namespace: whose jobs are listed; the context's own where None.
        all_namespaces: list the jobs of all namespaces.
        timeout: seconds that the server may take for the next part of an answer.
    """

    def __init__(
        self,
        session_name: str,
        client: ApiClient | None = None,
        docker_client: docker.DockerClient | None = None,
        *,
        context: str | None = None,
        namespace: str | None = None,
        all_namespaces: bool = False,
        timeout: float = TIMEOUT_S,
    ) -> None:
        super().__init__("kubernetes", session_name, docker_client=docker_client)
        self._server = ApiServer(context, client, timeout=timeout)
        self._namespace = "" if all_namespaces else namespace or self._server.namespace
        self._kinds = ServerKinds(self._server)
        self._usage = UsageSampler(self._server)
        self._cluster = ClusterReader(self._server, self._namespace or self._server.namespace)
        self._listed = ListedJobs(self._kinds.find, self._namespace)
        self._followed = FollowedJobs(self._kinds.of, lambda: self._listed.is_watched, self._listed.version)
        self._kinds.answer_from(self._followed.watched)
        self.capabilities = _ALL
        self.context = self._server.context

    def close(self) -> None:
        """End the watches and close the connections. Apps go on."""
        self._followed.close()
        self._listed.close()
        self._server.close()

    # Launching

    def _run_opts(self) -> runopts:
        opts = KubernetesOpts.as_runopts()
        namespace = opts.get("namespace")
        if namespace is not None and self._namespace:
            # Where the context, or the settings, name another one, jobs are launched where they are listed.
            opts.add("namespace", type_=str, default=self._namespace, help=namespace.help)
        return opts

    def _submit_dryrun(self, app: AppDef, cfg: Mapping[str, CfgVal]) -> AppDryRunInfo[KubernetesJob]:
        opts = KubernetesOpts.from_cfg(cfg)
        request = make_request(app, self.session_name, opts, self._launched(cfg), self.dryrun_push_images(app, cfg))
        if any(role.min_replicas for role in app.roles) and self._kinds.serves(GANGS):
            request.others += [*add_gangs(app, [request.resource, *request.others])]
        return AppDryRunInfo(request, str)

    def _launched(self, cfg: Mapping[str, CfgVal]) -> JobKind:
        """Return the kind of job that run options choose; the server is asked once."""
        return choose_kind(self._kinds.find, KubernetesOpts.from_cfg(cfg))

    def _check_request(self, dryrun_info: AppDryRunInfo[KubernetesJob]) -> None:
        if KubernetesOpts.from_cfg(dryrun_info.cfg).validate_spec:
            request = dryrun_info.request
            validate(self._server, self._kinds.of(request.app_id).kind, request.resource, request.others)

    def _validate(self, app: AppDef, scheduler: str, cfg: Mapping[str, CfgVal]) -> None:
        """Accept roles without resources: their pods have no limits."""

    def schedule(self, dryrun_info: AppDryRunInfo[KubernetesJob]) -> str:
        """Create the job of a dry run, after its images were pushed, and return the app's id.

        Raises:
            SchedulerError: nothing was created; the message says why and what to do.
            LaunchCancelledError: the launch was cancelled.
        """
        request = dryrun_info.request
        app_id = launch(self._server, self._kinds.of(request.app_id).kind, request, push_images=self.push_images)
        self._listed.add(split_app_id(app_id)[0])
        return app_id

    def known_values(self) -> dict[str, builtins.list[str]]:
        """Return contexts, namespaces, queues, service accounts and priority classes, as far as they can be listed."""
        return {**known_values(self._server), "kind": [AUTO, *LAUNCHED]}

    # Watching

    def describe(self, app_id: str) -> DescribeAppResponse | None:
        """Describe an app of any user; None if it does not exist."""
        answer = self._followed.describe(app_id)
        if answer is None:
            return None
        job, described = answer
        self._listed.learn(self._kinds.of(app_id).kind, job, described)
        return described

    def describe_native(self, app_id: str) -> str:
        """Return the job and its pods as YAML, secret values masked.

        Raises:
            JobNotFoundError: there is no such app.
        """
        jobs = self._kinds.of(app_id)
        job = jobs.find(app_id)
        if job is None:
            raise JobNotFoundError(app_id, "kubernetes")
        return native_text(job, jobs.pods(job))

    def list(self, cfg: Mapping[str, CfgVal] | None = None) -> builtins.list[ListAppResponse]:
        """Return every job of the namespace, or of all, the latest first; those of others are marked as foreign.

        Args:
            cfg: its ``namespace`` is listed in place of the scheduler's own.
        """
        namespace = (cfg or {}).get("namespace")
        if namespace and namespace != self._namespace:
            return ListedJobs(self._kinds.find, str(namespace)).rows()
        return self._listed.rows()

    def exists(self, app_id: str) -> bool:
        """Return whether the server has the job."""
        return self._kinds.of(app_id).find(app_id) is not None

    def subscribe(self, on_change: Callable[[], object]) -> Callable[[], object]:
        """Call ``on_change`` when a job changed, or the server goes away, or is back."""
        return self._listed.subscribe(on_change)

    def cluster(self) -> ClusterStatus:
        """Return queues, nodes and quotas; see `DescribesCluster`."""
        return self._cluster.read()

    def usage(self, app_id: str) -> builtins.list[ReplicaUsage]:
        """Measure what each running replica uses now; see `MeasuresUsage`."""
        return self._usage.sample(self._kinds.of(app_id), app_id)

    def shell_command(self, app_id: str, role_name: str, k: int) -> builtins.list[str]:
        """Return the argument list of a program that opens a shell in a replica; see `OpensShell`."""
        with self._noting_refusal(app_id):
            pod, container = self._running_container(app_id, role_name, k)
            return shell_command(self._server, pod, container, f"{role_name}/{k}")

    def run_beside(
        self, app_id: str, role_name: str, k: int, argv: Sequence[str], timeout_s: float = RUN_BESIDE_S
    ) -> CommandOutput:
        """Run a command in a replica's container; see `RunsCommands`."""
        with self._noting_refusal(app_id):
            pod, container = self._running_container(app_id, role_name, k)
            return run_command(self._server, pod, container, f"{role_name}/{k}", argv, timeout_s)

    def _running_container(self, app_id: str, role: str, k: int) -> tuple[KubernetesObject, str]:
        """Return the pod of a replica and the name of its main container, which runs.

        Raises:
            JobNotFoundError, ValueError: there is no such app, role or replica.
            SchedulerError: the replica does not run.
        """
        found = self._kinds.of(app_id).snapshot(app_id, time.monotonic())
        replica = found.pick(app_id, role, k)
        pod = found.pods.get(replica)
        if pod is None:
            raise SchedulerError(f"the pod of {replica} of {app_id} does not exist: this needs a running replica")
        container = main_container(pod)
        if not run_of(pod, container).is_running:
            phase = (dig(pod, "status", "phase") or "unknown").lower()
            raise SchedulerError(f"{replica} of {app_id} is {phase}: this needs a running replica")
        return pod, container

    # Ending

    def cancel(self, app_id: str) -> None:
        """Let the controller end the job, which is kept; one that is final or unknown is left alone."""
        self._followed.forget(app_id)
        abort(self._kinds.of(app_id), app_id, self._listed.uid(app_id))

    def delete(self, app_id: str) -> None:
        """Remove the job and its pods; an unknown one is nothing to remove."""
        self._followed.forget(app_id)
        remove(self._kinds.of(app_id), app_id, self._listed.uid(app_id))

    def actions(self, app_id: str) -> builtins.list[JobAction]:
        """List what can be done with a job now: suspend, resume, scale; see `HasActions`."""
        jobs = self._kinds.of(app_id)
        job = jobs.find(app_id)
        if job is None:
            raise JobNotFoundError(app_id, "kubernetes")
        return job_actions(jobs.kind, job)

    def act(self, app_id: str, action: str, value: str = "") -> None:
        """Do one of `actions`; see `HasActions.act`."""
        offered = [one.name for one in self.actions(app_id)]
        if action not in offered:
            raise SchedulerError(f"{action} is not possible now. Possible: {', '.join(offered) or 'nothing'}")
        self._followed.forget(app_id)
        act(self._kinds.of(app_id), app_id, self._listed.uid(app_id), action, value)

    def _cancel_existing(self, app_id: str) -> None:
        self.cancel(app_id)

    @contextmanager
    def _noting_refusal(self, app_id: str) -> Iterator[None]:
        """Stop offering shells once the server refuses one in the listed namespace."""
        try:
            yield
        except ApiError as error:
            if error.status == 403 and self._namespace == split_app_id(app_id)[0]:
                self.capabilities = replace(_ALL, shell=False)
            raise

    # Logs

    def log_stream(
        self,
        app_id: str,
        role_name: str,
        k: int,
        stream: Stream,
        cursor: Cursor | None = None,
        *,
        since: float | None = None,
        follow: bool = True,
        notices: bool = True,
    ) -> LogStream:
        """Return the log of one replica as it arrives; see `StreamsLogs`."""
        if stream is not Stream.COMBINED:
            # A runtime marks each line with its stream, but servers do not pass that on.
            raise UnknownReplicaError(f"Kubernetes keeps no stream {stream.value} of its own. Valid: combined")
        self._kinds.of(app_id).snapshot(app_id, time.monotonic() - 1).pick(app_id, role_name, k)
        place = cursor if isinstance(cursor, PartsCursor) else None
        nanoseconds = None if since is None else int(since * 10**9)
        return KubernetesLogStream(
            self._kinds.of(app_id), app_id, role_name, k, place, since=nanoseconds, follow=follow, says=notices
        )

    def has_ended(self, app_id: str) -> bool:
        """Return whether an app has ended."""
        return self._kinds.of(app_id).snapshot(app_id, time.monotonic()).has_ended

    # Advice

    def check(self) -> builtins.list[Finding]:
        """Return the server's version, what runs the jobs, and what is not allowed; or why it cannot be used."""
        try:
            self._kinds.find()
        except SchedulerError as error:
            return [Finding("error", str(error))]
        missing: set[Right] = set()
        findings = server_findings(self._server, self._launched({}), self._namespace, missing)
        # A right that is missing in the whole cluster may be there in a namespace.
        self.capabilities = replace(_ALL, shell=not self._namespace or not missing & {EXEC, EXEC_1_35})
        return findings

    def check_names(self, app: AppDef, cfg: Mapping[str, CfgVal]) -> builtins.list[NameFault]:
        """Return the names that cannot be those of pods; see `ChecksNames`."""
        return self._launched(self.run_opts().resolve(cfg)).name_faults(app)

    def preflight(self, app: AppDef, cfg: Mapping[str, CfgVal]) -> builtins.list[Finding]:
        """List the faults of a launch: a queue, namespace, account or class that is missing."""
        resolved = self.run_opts().resolve(cfg)
        opts, image_repo = KubernetesOpts.from_cfg(resolved), str(resolved.get("image_repo") or "")
        return launch_findings(self._server, self._launched(resolved), app, opts, image_repo)


def create_scheduler(session_name: str, **kwargs: Any) -> KubernetesScheduler:
    """Return the scheduler kubernetes. Pass the arguments that `KubernetesScheduler` takes, and ignore others."""
    return KubernetesScheduler(session_name, **accepted_arguments(KubernetesScheduler, kwargs))
