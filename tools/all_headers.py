#!/usr/bin/env python3
"""Writes one source file that includes every header of the tree, public and private.

Two types of one name in one namespace make it fail to compile. The file is only written when it changes.

usage: all_headers.py ROOT OUTPUT
"""

import sys
from pathlib import Path

LEFT_OUT = ("comm/gloo_shim",)  # Stand-ins for headers of Gloo.


def headers(root):
    for folder in ("include", "src"):
        for path in sorted((root / folder / "lockstep").rglob("*.h")):
            name = path.relative_to(root / folder).as_posix()
            if not any(part in name for part in LEFT_OUT):
                yield name


def main():
    root, output = Path(sys.argv[1]), Path(sys.argv[2])
    text = "".join(f'#include "{name}"\n' for name in headers(root))
    if not output.exists() or output.read_text(encoding="utf-8") != text:
        output.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
