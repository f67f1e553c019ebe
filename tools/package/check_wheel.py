#!/usr/bin/env python3
"""Checks with auditwheel that a wheel runs on the systems that its tag promises: apart from torch's libraries it needs
only those of the system, and no newer symbols.

usage: check_wheel.py WHEEL (by a Python that has the module auditwheel)
"""

import json
import subprocess
import sys
from pathlib import Path

from stage import TORCH


def problems(wheel):
    report = json.loads(subprocess.run([sys.executable, "-m", "auditwheel", "show", "--json", wheel], check=True,
                                       capture_output=True, text=True).stdout)
    for name in sorted(set(report["external_libs"]) - TORCH):
        yield f"needs {name}, which neither the wheel nor torch brings"
    if not wheel.stem.endswith(report["sym_tag"]):
        yield f"needs the tag {report['sym_tag']}"


def main():
    wheel = Path(sys.argv[1])
    found = [f"{wheel.name} {problem}" for problem in problems(wheel)]
    if found:
        raise SystemExit("\n".join(found))


if __name__ == "__main__":
    main()
