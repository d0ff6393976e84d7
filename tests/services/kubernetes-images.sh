# The images busybox:local, python:local and the pods' own, imported from what the machine has. Sourced, not run.
# shellcheck source=tests/services/image-roots.sh
. "$HERE/image-roots.sh"

has_image() { ctr_cli images list --quiet | grep -qxF "$1"; }

import_image() { # name, folder, command...
    local name=$1 folder=$2
    shift 2
    python3 "$HERE/make_image.py" "$folder.tar" "$name" "$folder" "$@"
    ctr_cli images import "$folder.tar" >/dev/null
    rm -f "$folder.tar"
}

make_images() {
    local work
    work=$(mktemp -d "${TMPDIR:-/tmp}/kubernetes-images.XXXXXX")
    if ! has_image localhost/pause:local; then
        mkdir "$work/pause"
        cp "$CACHE/pause" "$work/pause/"
        import_image localhost/pause:local "$work/pause" /pause
    fi
    if ! has_image docker.io/library/busybox:local; then
        say "making busybox:local"
        copy_busybox "$work/busybox"
        import_image docker.io/library/busybox:local "$work/busybox" sh
    fi
    if ! has_image docker.io/library/python:local; then
        say "making python:local"
        copy_busybox "$work/python"
        copy_python "$work/python"
        import_image docker.io/library/python:local "$work/python" python3
    fi
    rm -rf "$work"
}
