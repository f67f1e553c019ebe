"""The relocatable folder: lockstep-VERSION-linux-x86_64-cu130.tar.zst. Equal files give equal bytes."""

import io
import subprocess
import tarfile


def entry(path, name, epoch):
    info = tarfile.TarInfo(name)
    info.mtime = epoch
    if path.is_symlink():
        info.type, info.linkname = tarfile.SYMTYPE, str(path.readlink())
    elif path.is_dir():
        info.type, info.mode = tarfile.DIRTYPE, 0o755
    else:
        info.size = path.stat().st_size
        info.mode = 0o755 if path.stat().st_mode & 0o100 else 0o644
    return info


def make_archive(prefix, output, top, options):
    """Writes the files below `prefix` as top/..., owned by root."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for path in [prefix, *sorted(prefix.rglob("*"))]:
            info = entry(path, str(top / path.relative_to(prefix)), options.epoch)
            if info.isreg():
                with path.open("rb") as file:
                    tar.addfile(info, file)
            else:
                tar.addfile(info)
    level = "-1" if options.is_draft else "-19"
    subprocess.run(["zstd", "-q", "-f", level, "-T1", "-o", output], input=buffer.getvalue(), check=True)
