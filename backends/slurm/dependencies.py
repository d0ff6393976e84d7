"""Which jobs were queued behind which. Slurm forgets a dependency once it is fulfilled; this does not."""

from __future__ import annotations

import re
from collections.abc import Mapping

from .jobs import App, Job
from .launches import RecordedLaunch

# Those that order whole jobs one behind the other (sbatch(1), --dependency); `after` waits for a start only.
_LINK = re.compile(r"(?:afterok|afterany|afternotok|aftercorr)((?::\d+(?:_\d+|_\*)?(?:\+\d+)?(?:\(\w+\))?)+)")
_ID = re.compile(r":(\d+)")
# In an sbatch command.
_OPTION = re.compile(r" (?:-d ?|--d\w*[= ])(\S+)")


class Chains:
    """The dependencies of jobs, kept as long as the jobs are known. It is used by one thread at a time."""

    def __init__(self) -> None:
        # By id and time of submission: ids begin anew.
        self._texts: dict[tuple[str, float | None], str] = {}
        self._apps: Mapping[str, App] = {}
        self._after: dict[str, list[str]] = {}

    def find(
        self, apps: Mapping[str, App], launches: Mapping[str, RecordedLaunch], accounted: Mapping[str, Job]
    ) -> dict[str, list[str]]:
        """Return the ids of the known jobs of the same user that each job was queued behind, the earliest first.

        Args:
            apps: all known jobs; the answer for the same object is kept.
            launches: the launches that were made here, whose options have the dependency.
            accounted: the records of accounting, which have the sbatch command.
        """
        if apps is not self._apps:
            texts: dict[tuple[str, float | None], str] = {}
            for app_id, app in apps.items():
                key, record = (app_id, app.submitted_at), accounted.get(app_id, app.first)
                if text := _dependency(app.first, launches.get(app_id), record) or self._texts.get(key, ""):
                    texts[key] = text
            self._apps, self._texts = apps, texts
            self._after = _links(apps, {app_id: text for (app_id, _), text in texts.items()})
        return self._after


def _dependency(job: Job, launch: RecordedLaunch | None, record: Job) -> str:
    if job.dependency:
        return job.dependency
    if launch is not None and launch.cfg.get("dependency"):
        return str(launch.cfg["dependency"])
    found = _OPTION.search(record.submit_line)
    return found[1] if found else ""


def _links(apps: Mapping[str, App], texts: Mapping[str, str]) -> dict[str, list[str]]:
    """Return the jobs behind which each was queued; with ``singleton``, the job before of the same name and user."""
    found: dict[str, list[str]] = {}
    latest: dict[tuple[str, str], str] = {}
    order = [*texts]
    if any("singleton" in text for text in texts.values()):
        order = sorted(apps, key=lambda app_id: (apps[app_id].submitted_at or 0.0, int(app_id)))
    for app_id in order:
        job, text = apps[app_id].first, texts.get(app_id)
        named = job.user, job.name
        if text:
            ids = {each for part in _LINK.finditer(text) for each in _ID.findall(part[1])} & apps.keys() - {app_id}
            known = [each for each in sorted(ids, key=int) if apps[each].first.user == job.user]
            if "singleton" in text and named in latest:
                known.append(latest[named])
            if known:
                found[app_id] = [*dict.fromkeys(known)]
        latest[named] = app_id
    return found
