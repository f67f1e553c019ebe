#!/usr/bin/env python3
"""Checks texts: links lead somewhere, quoted programs are those of the examples, sources
are ASCII, nothing is left for later, and no path or package index of one machine is
written down.

<!-- text of PATH --> in front of a code block says that the block is that file without
the comment at its top.
"""

import re

from source_tree import CODE_SUFFIXES, files, numbered_lines, run_check

SOURCES = CODE_SUFFIXES + (".py", ".sh", ".cmake", ".in", ".json", "CMakeLists.txt")
TEXTS = SOURCES + (".md",)
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
QUOTE = re.compile(r"<!-- text of (\S+) -->\n+```\w*\n(.*?)```", re.DOTALL)
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


def quote_problems(root, path):
    text = path.read_text(encoding="utf-8")
    for source, quoted in QUOTE.findall(text):
        file = root / source
        whole = file.read_text(encoding="utf-8") if file.exists() else ""
        if quoted != re.sub(r"\A(//.*\n)*", "", whole):
            yield f"{path.relative_to(root)}: the quoted text of {source} is not what the file holds"


def check(root):
    problems = []
    for path in files(root, (".md",)):
        problems += quote_problems(root, path)
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
