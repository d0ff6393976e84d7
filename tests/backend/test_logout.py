"""Whether jobs outlive the login session, by what systemd was told."""

import pytest

from torchx_tui.backends.shared.logout import logout_findings

SESSION = "0::/user.slice/user-1000.slice/session-3.scope\n"
MANAGER = "0::/user.slice/user-1000.slice/user@1000.service/app.slice/run-r1.scope\n"


def system(root, group, files):
    for name, text in {"proc/self/cgroup": group, **files}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


KILLS = {"etc/systemd/logind.conf": "[Login]\n#KillUserProcesses=no\nKillUserProcesses=yes\n"}


@pytest.mark.parametrize(
    ("group", "files", "user", "words"),
    [
        (SESSION, {}, "alice", None),
        (SESSION, {"etc/systemd/logind.conf": "#KillUserProcesses=yes\n"}, "alice", None),
        (SESSION, KILLS, "alice", "KillUserProcesses"),
        (SESSION, KILLS, "root", None),
        (SESSION, {**KILLS, "etc/systemd/logind.conf.d/9.conf": "KillUserProcesses=0"}, "alice", None),
        (SESSION, {"usr/lib/systemd/logind.conf.d/1.conf": "KillUserProcesses = true"}, "alice", "KillUserProcesses"),
        (SESSION, {**KILLS, "run/systemd/logind.conf.d/1.conf": "KillExcludeUsers=root alice"}, "alice", None),
        *(
            (SESSION, {"etc/systemd/logind.conf": f"KillUserProcesses={word}"}, "alice", "KillUserProcesses")
            for word in ("yes", "true", "on", "1", "y", "t", "TRUE")
        ),
        (SESSION, {"etc/systemd/logind.conf": "KillUserProcesses="}, "alice", None),
        (MANAGER, KILLS, "alice", "last login"),
        (MANAGER, {**KILLS, "var/lib/systemd/linger/alice": ""}, "alice", None),
        ("0::/system.slice/docker-1.scope\n", KILLS, "alice", None),
    ],
)
def test_what_ends_with_the_session(tmp_path, group, files, user, words):
    found = logout_findings(system(tmp_path, group, files), user)
    assert [finding.level for finding in found] == (["warning"] if words else [])
    assert all(words in finding.what and "enable-linger" in finding.hint for finding in found if words)


def test_a_system_without_systemd(tmp_path):
    assert logout_findings(tmp_path, "alice") == []
