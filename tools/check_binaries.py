#!/usr/bin/env python3
"""Checks how the programs and libraries below a folder were linked.

An empty or relative entry of a run path is searched in the working directory: whoever can write
there could plant a library. Programs and libraries resolve all symbols at start and then make
their tables read-only.

usage: check_binaries.py FOLDER (a build folder or an install prefix)
"""

import re
import subprocess

from source_tree import run_check

FOLDERS = ("bin", "lib", "lib64")


def is_elf(path):
    with path.open("rb") as file:
        return file.read(4) == b"\x7fELF"


def binaries(root):
    for folder in FOLDERS:
        for path in sorted((root / folder).glob("*")):
            if path.is_file() and not path.is_symlink() and is_elf(path):
                yield path


def run_path_problems(description):
    for kind, text in re.findall(r"\((RPATH|RUNPATH)\).*\[(.*)\]", description):
        if kind == "RPATH":
            yield "has an RPATH, which no LD_LIBRARY_PATH overrides"
        for entry in text.split(":"):
            if entry != "$ORIGIN" and not entry.startswith(("/", "$ORIGIN/")):
                yield f"run path [{text}] has the entry '{entry}', searched in the working directory"
                break


def problems_of(path):
    description = subprocess.run(["readelf", "--wide", "-h", "-l", "-d", path], check=True,
                                 capture_output=True, text=True).stdout
    yield from run_path_problems(description)
    if not re.search(r"\(FLAGS(_1)?\).*\bNOW\b", description) and "BIND_NOW" not in description:
        yield "is not linked with -z now"
    if "GNU_RELRO" not in description:
        yield "is not linked with -z relro"
    if re.search(r"GNU_STACK.*\bRWE\b", description):
        yield "has an executable stack"
    if not re.search(r"Type:\s+DYN", description):
        yield "is not position-independent"


def check(root):
    found = list(binaries(root))
    if not found:
        return [f"{root}: no programs or libraries in {', '.join(FOLDERS)}"]
    return [f"{path.relative_to(root)}: {problem}" for path in found for problem in problems_of(path)]


if __name__ == "__main__":
    run_check(check)
