"""Folders of files for tests of workspaces, and what is sent of them."""

import io
import os
import tarfile

import fsspec


def fill(folder, *names, **texts):
    """Write files with their names as contents, or with these texts; return the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in {**{name: name for name in names}, **texts}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(os.fsencode(text))
    return folder


def fill_memory(folder, texts):
    """Write files into fsspec's memory, under the name of a folder; return the URL there."""
    for name, text in texts.items():
        fsspec.filesystem("memory").pipe(f"/{folder.name}/{name}", text)
    return f"memory://{folder.name}"


def tree(folder):
    """Return the paths of all files and links below a folder."""
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if not path.is_dir() or path.is_symlink()}


def read_packed(tar, name):
    """Return the content of a file that an engine is sent."""
    file = tar.extractfile(name)
    return file.read()


def packed(parts):
    """Open what an engine is sent."""
    return tarfile.open(fileobj=io.BytesIO(b"".join(parts)))
