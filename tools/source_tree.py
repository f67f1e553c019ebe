"""The files that the checks read, and how they report."""

import os
import sys
from pathlib import Path

SOURCE_FOLDERS = ("include", "src", "tests", "bench", "examples")
CODE_SUFFIXES = (".h", ".cpp", ".cu", ".cuh")
LEFT_OUT = {"build", ".git", ".cache", "__pycache__"}
OF_TRAININGS = {"runs", "wandb"}  # At the top only: sources have folders of these names, too.


def files(root, suffixes, folders=(".",)):
    """Paths below the folders of root whose name ends with one of the suffixes."""
    found = []
    for folder in folders:
        for parent, children, names in os.walk(Path(root) / folder):
            left_out = LEFT_OUT | OF_TRAININGS if Path(parent) == Path(root) else LEFT_OUT
            children[:] = [c for c in children if c not in left_out]
            found += [Path(parent) / n for n in names if n.endswith(tuple(suffixes))]
    return sorted(found)


def code_files(root, folders=SOURCE_FOLDERS):
    return files(root, CODE_SUFFIXES, folders)


def numbered_lines(path):
    text = path.read_text(encoding="utf-8", errors="replace")
    return list(enumerate(text.splitlines(), start=1))


def run_check(check):
    """Calls check(root) -> list of problems; root is argv[1] or this repository."""
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent.parent
    problems = check(root.resolve())
    for problem in problems:
        print(problem)
    sys.exit(1 if problems else 0)
