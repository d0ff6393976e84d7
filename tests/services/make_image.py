"""Writes an image, as ``docker save`` does, of a folder: without an engine, without a network.

usage: make_image.py OUT.tar NAME:TAG FOLDER COMMAND [ARGUMENT...]
"""

from __future__ import annotations

import hashlib
import io
import json
import platform
import sys
import tarfile
from typing import Any

ENVIRONMENT = ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "PYTHONUNBUFFERED=1"]
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


def main(out: str, name: str, folder: str, *command: str) -> None:
    layer = _layer_of(folder)
    config = _as_json(
        {
            "architecture": ARCHITECTURES.get(platform.machine(), platform.machine()),
            "os": "linux",
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(layer).hexdigest()}"]},
            "config": {"Cmd": list(command), "Env": ENVIRONMENT},
            "history": [{"created_by": "make_image.py"}],
        }
    )
    config_name = f"{hashlib.sha256(config).hexdigest()}.json"
    manifest = _as_json([{"Config": config_name, "RepoTags": [name], "Layers": ["layer.tar"]}])
    with tarfile.open(out, "w") as image:
        for member, data in ((config_name, config), ("layer.tar", layer), ("manifest.json", manifest)):
            entry = tarfile.TarInfo(member)
            entry.size = len(data)
            image.addfile(entry, io.BytesIO(data))


def _layer_of(folder: str) -> bytes:
    layer = io.BytesIO()
    with tarfile.open(fileobj=layer, mode="w") as files:
        files.add(folder, arcname=".")
    return layer.getvalue()


def _as_json(value: Any) -> bytes:
    return json.dumps(value).encode()


if __name__ == "__main__":
    main(*sys.argv[1:])
