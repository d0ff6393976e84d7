# Folders for the images busybox and python, made of what the machine has: nothing is pulled. Sourced, not run.
# Wants $PYTHON, the interpreter that goes into the second.

copy_busybox() { # folder: busybox and links for its ~270 applets
    mkdir -p "$1"/{bin,dev,etc,proc,root,sys,tmp,usr/bin,usr/lib,lib64,var/tmp}
    chmod 1777 "$1/tmp" "$1/var/tmp"
    cp /bin/busybox "$1/bin/busybox"
    local applet
    for applet in $(/bin/busybox --list); do
        [ "$applet" = busybox ] || ln -s busybox "$1/bin/$applet"
    done
    echo 'root:x:0:0:root:/root:/bin/sh' >"$1/etc/passwd"
    echo 'root:x:0:' >"$1/etc/group"
}

copy_python() { # folder: the interpreter, its standard library, the shared objects that they load
    local exe stdlib version lib
    read -r exe stdlib version < <("$PYTHON" -c '
import os, sys, sysconfig
print(os.path.realpath(sys.executable), sysconfig.get_path("stdlib"), "%d.%d" % sys.version_info[:2])')
    mkdir -p "$1/usr/lib/python$version"
    tar -C "$stdlib" --exclude='./test' --exclude='./site-packages' --exclude='./dist-packages' \
        --exclude='./config-*' --exclude='./idlelib' --exclude='./tkinter' --exclude='./turtledemo' \
        --exclude='./ensurepip' --exclude='./lib2to3' --exclude='./pydoc_data' -c . |
        tar -C "$1/usr/lib/python$version" -x
    cp "$exe" "$1/usr/bin/python3"
    { ldd "$exe" "$stdlib"/lib-dynload/*.so 2>/dev/null || true; } |
        awk '$2 == "=>" && $3 ~ /^\// {print $3} $1 ~ /^\/.*ld-linux/ {print $1}' | sort -u |
        while read -r lib; do
            mkdir -p "$1$(dirname "$lib")"
            cp -L "$lib" "$1$lib"
        done
}
