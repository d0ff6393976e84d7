"""Which kind of job an app becomes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...specs.errors import InvalidRunConfigException, SchedulerError
from ..kube.objects import KubernetesObject
from .launching.batch import INDEXED_JOBS
from .launching.form import LaunchForm
from .launching.jobset import JOB_SETS
from .volcano.kind import VOLCANO

if TYPE_CHECKING:
    from ..kube.api_server import ApiServer
    from .request import KubernetesOpts

AUTO = "auto"
# In the order in which `auto` prefers them: Volcano and JobSet start replicas together, or restart them together.
FORMS: dict[str, LaunchForm] = {"volcano": VOLCANO, "jobset": JOB_SETS, "job": INDEXED_JOBS}


def choose_form(server: ApiServer, options: KubernetesOpts, served: list[LaunchForm]) -> LaunchForm:
    """Return the kind of job of a launch.

    Args:
        server: the server, which `auto` asks.
        options: the run options.
        served: keeps what the server has, so that it is asked once.

    Raises:
        InvalidRunConfigException: there is no such kind.
    """
    if options.kind in FORMS:
        return FORMS[options.kind]
    if options.kind != AUTO:
        valid = ", ".join((AUTO, *FORMS))
        raise InvalidRunConfigException(f"kind is {options.kind!r}. Valid: {valid}", "kind", dict(options))
    try:
        if not served:
            served.append(next(form for form in FORMS.values() if _is_served(server, form)))
    except SchedulerError:
        # TorchX's, where the server cannot be asked.
        return VOLCANO
    return served[0]


def form_of(job: KubernetesObject) -> LaunchForm:
    """Return the kind of a job that was made."""
    version = job.get("apiVersion")
    return next((form for form in FORMS.values() if f"{form.group}/{form.version}" == version), VOLCANO)


def _is_served(server: ApiServer, form: LaunchForm) -> bool:
    return form is INDEXED_JOBS or server.find(f"/apis/{form.group}/{form.version}") is not None
