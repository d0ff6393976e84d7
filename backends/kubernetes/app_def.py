"""The AppDef of a job, kept in an annotation."""

from __future__ import annotations

from collections.abc import Collection

from ...base.files import user_name
from ...specs.roles import AppDef
from ..kube.objects import KubernetesObject
from ..shared.kept_app_def import kept_text, read_kept
from . import labels


def app_def_annotations(app: AppDef, session: str, built: Collection[str] = ()) -> dict[str, str]:
    """Return the annotations that record a job's AppDef, and its user.

    Args:
        app: the AppDef, as it is launched.
        session: the session part of its handle.
        built: images that have the workspace of their role in them.
    """
    text, left_out = kept_text(app, labels.APP_DEF_LIMIT, built)
    kept = {labels.APP_DEF_LEFT_OUT: left_out} if left_out else {labels.APP_DEF: text}
    kept.update({labels.USER: user_name(), labels.SESSION: session})
    return kept


def read_app_def(job: KubernetesObject, notes: list[str]) -> AppDef | None:
    """Return the AppDef in an annotation of a job; None if there is none.

    Args:
        job: the job.
        notes: gets why there is none, where that is known.
    """
    annotations = job["metadata"].get("annotations") or {}
    return read_kept(annotations.get(labels.APP_DEF) or "", annotations.get(labels.APP_DEF_LEFT_OUT) or "", notes)
