"""Which jobs were queued behind which. Slurm forgets a dependency once it is fulfilled; this does not."""

from __future__ import annotations

import re
from collections.abc import Mapping

from .jobs import App
from .launches import RecordedLaunch
from .submit_line import submit_options

# Those that order whole jobs one behind the other (sbatch(1), --dependency); `after` waits for a start only.
_LINK = re.compile(r"(?:afterok|afterany|afternotok|aftercorr)((?::\d+(?:_\d+|_\*)?(?:\+\d+)?(?:\(\w+\))?)+)")
_ID = re.compile(r":(\d+)")


class Chains:
    """The dependencies of jobs, kept as long as the jobs are known. It is used by one thread at a time."""

    def __init__(self) -> None:
        self._texts: dict[str, tuple[float | None, str]] = {}
        self._apps: Mapping[str, App] = {}
        self._after: dict[str, list[str]] = {}

    def find(
        self, apps: Mapping[str, App], launches: Mapping[str, RecordedLaunch], submit_lines: Mapping[str, str]
    ) -> dict[str, list[str]]:
        """Return the ids of the known jobs of the same user that each job was queued behind, the earliest first.

        Args:
            apps: all known jobs; the answer for the same object is kept.
            launches: the launches that were made here, whose options have the dependency.
            submit_lines: the sbatch commands with a dependency that accounting has, by job.
        """
        if apps is self._apps:
            return self._after
        texts: dict[str, tuple[float | None, str]] = {}
        likely = {*self._texts, *launches, *submit_lines}
        for app_id, app in apps.items():
            job = app.jobs[0]
            if not (job.dependency or job.submit_line or app_id in likely):
                continue
            launch = launches.get(app_id)
            text = job.dependency or (str(launch.cfg.get("dependency") or "") if launch is not None else "")
            if not text and app_id in self._texts and self._texts[app_id][0] == app.submitted_at:
                text = self._texts[app_id][1]
            line = submit_lines.get(app_id) or job.submit_line
            if not text and may_have_dependency(line):
                text = submit_options(line).get("dependency", "")
            if text:
                texts[app_id] = app.submitted_at, text
        self._apps, self._texts = apps, texts
        self._after = _links(apps, {app_id: text for app_id, (_, text) in texts.items()})
        return self._after


def may_have_dependency(submit_line: str) -> bool:
    """Return whether an sbatch command may name a dependency; parsing it takes much longer."""
    return " -d" in submit_line or " --d" in submit_line


def _links(apps: Mapping[str, App], texts: Mapping[str, str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for app_id, text in texts.items():
        user = apps[app_id].first.user
        ids = {each for part in _LINK.finditer(text) for each in _ID.findall(part[1])}
        known = [each for each in ids if each in apps and each != app_id and apps[each].first.user == user]
        if known:
            found[app_id] = sorted(known, key=int)
    if any("singleton" in text for text in texts.values()):
        _add_singletons(apps, texts, found)
    return found


def _add_singletons(apps: Mapping[str, App], texts: Mapping[str, str], found: dict[str, list[str]]) -> None:
    """Add the job before of the same name and user, behind which a job with ``singleton`` was queued."""
    before: dict[tuple[str, str], str] = {}
    for app_id, app in sorted(apps.items(), key=lambda item: (item[1].submitted_at or 0.0, int(item[0]))):
        named = app.first.user, app.first.name
        if named in before and "singleton" in texts.get(app_id, ""):
            found[app_id] = [*dict.fromkeys([*found.get(app_id, ()), before[named]])]
        before[named] = app_id
