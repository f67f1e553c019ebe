#!/usr/bin/env python3
"""Checks texts: links lead somewhere, sources are ASCII, nothing is left for later,
and no path or package index of one machine is written down."""

import re

from source_tree import CODE_SUFFIXES, files, numbered_lines, run_check

SOURCES = CODE_SUFFIXES + (".py", ".sh", ".cmake", ".in", ".json", "CMakeLists.txt")
TEXTS = SOURCES + (".md",)
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
ELSEWHERE = re.compile(r"^(https?:|mailto:|#)")
LEFT_FOR_LATER = re.compile(r"\b(TO[D]O|FIX[M]E)\b")
MACHINE = re.compile(r"/(home|root|work|farm|Users)/[A-Za-z.]|(extra-)?index[-]url|find[-]links")


def link_problems(path, number, line):
    for target in LINK.findall(line):
        if not ELSEWHERE.match(target):
            place = path.parent / target.split("#")[0]
            if not place.exists():
                yield f"the link to {target} leads nowhere"


def line_problems(path, number, line):
    if path.suffix == ".md":
        yield from link_problems(path, number, line)
    elif not line.isascii():
        yield "not ASCII"
    if LEFT_FOR_LATER.search(line):
        yield "left for later: finish it or take it out"
    if MACHINE.search(line):
        yield "a path or package index of one machine"


def check(root):
    problems = []
    for path in files(root, TEXTS):
        in_code = False
        for number, line in numbered_lines(path):
            if path.suffix == ".md" and line.lstrip().startswith("```"):
                in_code = not in_code
            text = re.sub(r"`[^`]*`", "", line) if path.suffix == ".md" else line
            if in_code:
                text = re.sub(LINK, "", text)
            for problem in line_problems(path, number, text):
                problems.append(f"{path.relative_to(root)}:{number}: {problem}")
    return problems


if __name__ == "__main__":
    run_check(check)
