#!/usr/bin/env python3
"""Checks which names of our own namespace a built liblockstep shows.

Every exported lockstep:: symbol belongs to a name that a header of include/lockstep declares
with LOCKSTEP_EXPORT, and every function declared so is in the library. (A class may have no symbol of its own.)

usage: check_symbols.py LIBRARY [ROOT]
"""

import re
import subprocess
import sys
from pathlib import Path

KIND = re.compile(r"(?:typeinfo name|typeinfo|vtable|VTT|guard variable) for |(?:non-)?virtual thunk to ")
OWN = re.compile(r"lockstep::(?:detail::)?(\w+)")
DECLARED = re.compile(r"LOCKSTEP_EXPORT\s+(?:(?P<type>\w+)\s*(?:final\s*)?(?:\{|:(?!:))|[^;{(]*?(?P<function>\w+)\()")


def full_name(symbol):
    """What the symbol names, without kind, arguments and, of a template, result."""
    kind = KIND.match(symbol)
    text = symbol[kind.end():] if kind else symbol
    depth, start = 0, 0
    for position, letter in enumerate(text):
        depth += {"<": 1, ">": -1}.get(letter, 0)
        if depth == 0 and letter == "(":
            break
        if depth == 0 and letter == " ":
            start = position + 1
    return text[start:]


def exported_names(library):
    done = subprocess.run(["nm", "-DC", "--defined-only", library], check=True, capture_output=True, text=True)
    names = {}
    for line in done.stdout.splitlines():
        symbol = line.split(maxsplit=2)[-1]
        match = OWN.match(full_name(symbol))
        if match:
            names.setdefault(match[1], symbol)
    return names


def declared_names(headers):
    """The types and the functions that carry LOCKSTEP_EXPORT."""
    types, functions = set(), set()
    for path in sorted(headers.glob("*.h")):
        text = re.sub(r"//.*|#define.*", "", path.read_text(encoding="utf-8"))
        for match in DECLARED.finditer(text):
            types.add(match["type"])
            functions.add(match["function"])
    return types - {None}, functions - {None}


def main():
    library = sys.argv[1]
    root = Path(sys.argv[2]) if len(sys.argv) > 2 else Path(__file__).parent.parent
    exported = exported_names(library)
    types, functions = declared_names(root / "include" / "lockstep")
    problems = [f"{symbol}: exported, but no public header declares {name} with LOCKSTEP_EXPORT"
                for name, symbol in sorted(exported.items()) if name not in types | functions]
    problems += [f"{name}: declared with LOCKSTEP_EXPORT, but {Path(library).name} does not have it"
                 for name in sorted(functions - set(exported))]
    print("\n".join(problems) if problems else f"{len(exported)} names exported")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
