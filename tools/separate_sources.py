#!/usr/bin/env python3
"""Writes a compile_commands.json in which each source has an entry of its own.

CMake's has one per unity file, and tools that look for a source borrow the command of a similar one,
which may lack its include folders.

    separate_sources.py BUILD OUT    from BUILD/compile_commands.json to OUT/compile_commands.json
"""
import json
import re
import sys
from pathlib import Path

INCLUDED = re.compile(r'^#include "(.+)"$', re.MULTILINE)


def entries_of(entry):
    unity = Path(entry["directory"], entry["file"])
    if "/Unity/unity_" not in entry["file"]:
        return [entry]
    return [{**entry, "file": source, "command": entry["command"].replace(entry["file"], source)}
            for source in INCLUDED.findall(unity.read_text(encoding="utf-8"))]


def main():
    build, out = (Path(argument) for argument in sys.argv[1:3])
    commands = json.loads((build / "compile_commands.json").read_text(encoding="utf-8"))
    separate = [each for entry in commands for each in entries_of(entry)]
    (out / "compile_commands.json").write_text(json.dumps(separate, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
