"""The Python wheel lockstep_ddp (the name lockstep is taken on PyPI). pip puts its files where `cmake --install` would
put them below the environment's prefix, the programs into its bin: no Python runs when they start. Equal files give
equal bytes."""

import base64
import hashlib
import time
import zipfile

NAME = "lockstep_ddp"


def metadata(version, readme, torch):
    minor = ".".join(torch["version"].split(".")[:2])
    return f"""Metadata-Version: 2.1
Name: {NAME.replace("_", "-")}
Version: {version}
Summary: Data-parallel training for C++20 on libtorch: torchrun, DDP, samplers and trainers without Python
License: Apache-2.0
Requires-Python: >=3.10
Requires-Dist: torch=={minor}.*
Description-Content-Type: text/markdown

{readme}"""


def wheel_file(tag):
    return f"Wheel-Version: 1.0\nGenerator: lockstep\nRoot-Is-Purelib: false\nTag: {tag}\n"


def add(archive, name, data, mode, options):
    info = zipfile.ZipInfo(name, time.gmtime(options.epoch)[:6])
    info.compress_type = zipfile.ZIP_DEFLATED
    info.external_attr = (0o100000 | mode) << 16
    archive.writestr(info, data, compresslevel=1 if options.is_draft else 9)
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    return f"{name},sha256={digest},{len(data)}\n"


def make_wheel(prefix, folder, description, options):
    """`description`: version, tag, readme, torch. Wheels have no symbolic links: those of `prefix` are left out."""
    stem = f"{NAME}-{description['version']}"
    info = f"{stem}.dist-info"
    output = folder / f"{stem}-{description['tag']}.whl"
    with zipfile.ZipFile(output, "w") as archive:
        record = ""
        for path in sorted(prefix.rglob("*")):
            if path.is_symlink() or path.is_dir():
                continue
            mode = 0o755 if path.stat().st_mode & 0o100 else 0o644
            name = f"{stem}.data/data/{path.relative_to(prefix)}"
            record += add(archive, name, path.read_bytes(), mode, options)
        text = metadata(description["version"], description["readme"], description["torch"])
        record += add(archive, f"{info}/METADATA", text.encode(), 0o644, options)
        record += add(archive, f"{info}/WHEEL", wheel_file(description["tag"]).encode(), 0o644, options)
        record += f"{info}/RECORD,,\n"
        add(archive, f"{info}/RECORD", record.encode(), 0o644, options)
    return output
