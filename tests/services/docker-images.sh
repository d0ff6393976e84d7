# The images busybox:local and python:local, imported from what the machine has: nothing is pulled. Sourced, not run.
# shellcheck source=tests/services/image-roots.sh
. "$HERE/image-roots.sh"

wants() { [[ " $IMAGES " == *" $1 "* ]]; }

make_images() {
    local work
    work=$(mktemp -d "${TMPDIR:-/tmp}/docker-images.XXXXXX")
    if wants busybox:local && ! docker_cli image inspect busybox:local >/dev/null 2>&1; then
        say "making busybox:local"
        copy_busybox "$work/busybox"
        tar -C "$work/busybox" -c . |
            docker_cli import -c 'ENV PATH=/bin:/usr/bin' -c 'CMD ["sh"]' - busybox:local >/dev/null
    fi
    if wants python:local && ! docker_cli image inspect python:local >/dev/null 2>&1; then
        say "making python:local"
        copy_busybox "$work/python"
        copy_python "$work/python"
        tar -C "$work/python" -c . |
            docker_cli import -c 'ENV PATH=/usr/bin:/bin' -c 'ENV PYTHONUNBUFFERED=1' -c 'CMD ["python3"]' - \
                python:local >/dev/null
    fi
    rm -rf "$work"
}
