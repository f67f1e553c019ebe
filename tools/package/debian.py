"""The Debian package of the programs without libtorch: lockstep, lockstep-plot, lockstep-board, lockstep-stack and lockstep-prepare."""

import gzip
import os
import shutil
import subprocess

from stage import CARRIED, foreign_libraries, needed, set_times

PROGRAMS = ("lockstep", "lockstep-plot", "lockstep-board", "lockstep-stack", "lockstep-prepare")
# Folders of share that are about the launcher.
SHARED = ("doc", "man", "bash-completion", "zsh", "fish")

CONTROL = """Package: lockstep
Version: {version}
Architecture: amd64
Maintainer: the authors of Lockstep <lockstep@localhost>
Installed-Size: {kilobytes}
Depends: libc6 (>= 2.35), libgcc-s1, libstdc++6 (>= 12), zlib1g
Recommends: libdw1
Section: science
Priority: optional
Description: launcher for data-parallel training
 lockstep run starts a C++ or Python program once per GPU or CPU slot, with
 torchrun's options and environment, and says why a job died. lockstep-prepare
 converts data sets, lockstep-plot draws runs, lockstep-board lists and shows them, lockstep-stack reads the stack of a stuck
 rank (with libdw1). None needs torch; lockstep train needs the worker of
 the archive or of the Python wheel beside it.
"""


def copy_programs(prefix, usr):
    """Programs that need only what the package carries or depends on."""
    (usr / "bin").mkdir(parents=True)
    (usr / "lib" / "lockstep").mkdir(parents=True)
    for name in PROGRAMS:
        program = prefix / "bin" / name
        if foreign_libraries(program):
            continue
        shutil.copy(program, usr / "bin" / name)
        for library in set(needed(program)) & CARRIED:
            shutil.copy(prefix / "lib" / "lockstep" / library, usr / "lib" / "lockstep")


def copy_shared(prefix, usr):
    for name in SHARED:
        if (prefix / "share" / name).exists():
            shutil.copytree(prefix / "share" / name, usr / "share" / name, symlinks=True)
    doc = usr / "share" / "doc" / "lockstep"
    shutil.copy(doc / "LICENSE", doc / "copyright")
    changelog = gzip.compress((doc / "CHANGELOG.md").read_bytes(), mtime=0)
    (doc / "changelog.gz").write_bytes(changelog)


def write_control(root, version):
    kilobytes = sum(path.stat().st_size for path in root.rglob("*") if path.is_file()) // 1024
    (root / "DEBIAN").mkdir()
    (root / "DEBIAN" / "control").write_text(CONTROL.format(version=version, kilobytes=kilobytes))


def set_modes(root):
    for path in [root, *root.rglob("*")]:
        if not path.is_symlink():
            path.chmod(0o755 if path.is_dir() or path.stat().st_mode & 0o100 else 0o644)


def make_deb(prefix, work, output, version, options):
    root = work / "deb"
    copy_programs(prefix, root / "usr")
    copy_shared(prefix, root / "usr")
    write_control(root, version)
    set_modes(root)
    set_times(root, options.epoch)
    level = "-z1" if options.is_draft else "-z9"
    subprocess.run(["dpkg-deb", "--root-owner-group", "-Zxz", level, "--threads-max=1", "--build", root, output],
                   check=True, stdout=subprocess.DEVNULL,
                   env={**os.environ, "SOURCE_DATE_EPOCH": str(options.epoch)})
