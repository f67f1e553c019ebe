#!/usr/bin/env python3
"""Packs a build: a relocatable archive, a Debian package and a Python wheel. Packing one build twice gives equal bytes.

SOURCE_DATE_EPOCH is the time of all files. usage: pack.py --help
"""

import argparse
import os
import re
import shutil
import tempfile
from pathlib import Path

from archive import make_archive
from debian import make_deb
from stage import problems, stage, write_torch_file
from wheel import make_wheel

KINDS = ("archive", "deb", "wheel")
# What auditwheel confirms (check_wheel.py).
WHEEL_TAG = "py3-none-manylinux_2_35_x86_64"


def version_of(prefix):
    text = (prefix / "lib" / "cmake" / "Lockstep" / "LockstepConfigVersion.cmake").read_text()
    return re.search(r'PACKAGE_VERSION "([^"]+)"', text)[1]


def flavour(prefix, torch):
    """cu130, or cpu where the build has no CUDA parts."""
    if not (prefix / "lib" / "liblockstep_cuda.so").exists():
        return "cpu"
    return "cu" + torch["cuda"].replace(".", "")


def pack_wheel(prefix, version, torch, options):
    write_torch_file(prefix, {**torch, "in_python_environment": True})
    description = {"version": version, "tag": WHEEL_TAG, "torch": torch,
                   "readme": (prefix / "share" / "doc" / "lockstep" / "README.md").read_text()}
    make_wheel(prefix, options.output, description, options)


def pack(options, work):
    prefix = work / "prefix"
    torch, torch_folder = stage(options.build, prefix)
    found = [] if options.is_draft else list(problems(prefix, torch_folder))
    if found:
        raise SystemExit("pack.py: " + "\n  ".join(found) + "\n  is this a build of the preset 'package'?")
    version, kind = version_of(prefix), flavour(prefix, torch)
    if "archive" in options.kinds:
        top = Path(f"lockstep-{version}-linux-x86_64-{kind}")
        make_archive(prefix, options.output / f"{top}.tar.zst", top, options)
    if "deb" in options.kinds:
        make_deb(prefix, work, options.output / f"lockstep_{version}_amd64.deb", version, options)
    if "wheel" in options.kinds:
        # A wheel without CUDA parts must not pass for the one with them.
        pack_wheel(prefix, version + ("+cpu" if kind == "cpu" else ""), torch, options)


def parse():
    parser = argparse.ArgumentParser(description="Packs a build. SOURCE_DATE_EPOCH is the time of all files.")
    parser.add_argument("--draft", dest="is_draft", action="store_true",
                        help="for tests: compress little, and accept programs that need libraries of this machine")
    parser.add_argument("build", type=Path)
    parser.add_argument("output", type=Path)
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=", ".join(KINDS) + " (all)")
    options = parser.parse_args()
    options.kinds = options.kinds or KINDS
    if not set(options.kinds) <= set(KINDS):
        parser.error(f"a KIND is one of {', '.join(KINDS)}")
    if not os.environ.get("SOURCE_DATE_EPOCH", "").isdigit():
        parser.error("SOURCE_DATE_EPOCH is not set; ./lockstep.sh package sets it")
    options.epoch = int(os.environ["SOURCE_DATE_EPOCH"])
    return options


def main():
    options = parse()
    for program in ("cmake", "readelf", "zstd", "dpkg-deb"):
        if not shutil.which(program):
            raise SystemExit(f"pack.py: {program} is missing; as root: apt-get install -y cmake binutils zstd dpkg")
    options.output.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as work:
        pack(options, Path(work))


if __name__ == "__main__":
    main()
