"""Whether jobs outlive the login session, by the settings of systemd."""

import pytest
from backend.projects import fill
from backend.tables import TABLES

from torchx_tui.backends.shared.logout import logout_findings

CASES = [(case["group"], *row) for case in TABLES["logout"].values() for row in case["files"]]


@pytest.mark.parametrize(("group", "files", "words"), CASES)
def test_jobs_that_end_with_the_session(tmp_path, group, files, words):
    fill(tmp_path, **{"proc/self/cgroup": group}, **files)
    found = logout_findings(tmp_path, "alice")
    assert [(one.level, words in one.what, "enable-linger" in one.hint) for one in found] == (
        [("warning", True, True)] if words else []
    )


def test_processes_of_root_are_kept(tmp_path):
    files = {
        "proc/self/cgroup": TABLES["logout"]["session"]["group"],
        "etc/systemd/logind.conf": "KillUserProcesses=yes",
    }
    assert logout_findings(fill(tmp_path, **files), "root") == []


def test_a_system_without_systemd(tmp_path):
    assert logout_findings(tmp_path, "alice") == []
