# What docker-up.sh and docker-down.sh agree on. Sourced, not run.
#
# Settings (environment):
#   DOCKER_TEST_DIR      state: data root, exec root, pid file, log     (default $TMPDIR/torchx-tui-docker)
#   DOCKER_TEST_SOCK     the engine's socket                            (default $DOCKER_TEST_DIR.sock)
#   DOCKER_TEST_BRIDGE   the name of its default bridge                 (default txtui0)
#   DOCKER_TEST_NET      the first two numbers of its addresses         (default 172.29)
#   DOCKER_TEST_PYTHON   the interpreter that goes into python:local    (default /usr/bin/python3)
#   DOCKER_TEST_IMAGES   the images to make                             (default "busybox:local python:local")
#   DOCKER_TEST_DRIVERS  storage drivers to try, in order               (default "overlay2 vfs")
# Go collects garbage each time that a small heap doubles.
export GOGC=${GOGC:-400}
DIR=${DOCKER_TEST_DIR:-${TMPDIR:-/tmp}/torchx-tui-docker}
SOCK=${DOCKER_TEST_SOCK:-$DIR.sock}
BRIDGE=${DOCKER_TEST_BRIDGE:-txtui0}
NET=${DOCKER_TEST_NET:-172.29}
PYTHON=${DOCKER_TEST_PYTHON:-/usr/bin/python3}
IMAGES=${DOCKER_TEST_IMAGES:-busybox:local python:local}
DRIVERS=${DOCKER_TEST_DRIVERS:-overlay2 vfs}
# Each engine's cgroups hang below a parent of its own, so that stopping one clears only that.
CGROUP=/torchx-tui-docker-$BRIDGE
# The package's own client: another one that is first on the PATH may be of another version.
DOCKER=/usr/bin/docker

say() { printf '%s: %s\n' "$(basename "$0" .sh)" "$*" >&2; }
die() { say "$*"; exit 1; }
docker_cli() { "$DOCKER" --host "unix://$SOCK" "$@"; }
is_up() { [ -x "$DOCKER" ] && docker_cli version >/dev/null 2>&1; }
