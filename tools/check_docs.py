#!/usr/bin/env python3
"""Checks texts: links and their anchors lead somewhere, pages named in sources exist,
quoted programs are those of the examples, drawings of the layers are true, Chinese pages
have the commands of the English ones (translated_pages.py), the READMEs are short, sources are ASCII, nothing is left for later, and no path or package index of one
machine is written down.

<!-- text of PATH --> in front of a code block says that the block is that file without
the comment at its top. <!-- layers --> in front of one says that it draws the layers of
src/lockstep: each folder stands below those in the DEPS of its lockstep_library(), and above
the torch line unless it says TORCH.
"""

import functools
import re

import translated_pages
from check_layers import Libraries
from source_tree import CODE_SUFFIXES, files, numbered_lines, run_check

SOURCES = CODE_SUFFIXES + (".py", ".sh", ".cmake", ".in", ".json", "CMakeLists.txt")
TEXTS = SOURCES + (".md",)
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
QUOTE = re.compile(r"<!-- text of (\S+) -->\n+```\w*\n(.*?)```", re.DOTALL)
ELSEWHERE = re.compile(r"^(https?:|mailto:)")
PAGE = re.compile(r"(?<![\w/])docs/[\w./-]+\.md\b")
LAYERS = re.compile(r"<!-- layers -->\n+```\n(.*?)```", re.DOTALL)
HEADING = re.compile(r"^#+ +(.*)$")
README_LINES = 120
LEFT_FOR_LATER = re.compile(r"\b(TO[D]O|FIX[M]E)\b")
FRAGMENT = re.compile(r"// O[f] ")
MACHINE = re.compile(r"/(home|root|work|farm|Users)/[A-Za-z.]|(extra-)?index[-]url|find[-]links")


@functools.cache
def anchors(path):
    """Anchors of a page's headings, as forges make them."""
    headings = filter(None, (HEADING.match(line) for _, line in numbered_lines(path)))
    return {re.sub(r"[^\w\- ]", "", h[1].strip().lower()).replace(" ", "-") for h in headings}


def link_problems(path, line):
    for target in LINK.findall(line):
        if ELSEWHERE.match(target):
            continue
        name, _, anchor = target.partition("#")
        place = path.parent / name if name else path
        if not place.exists():
            yield f"the link to {target} leads nowhere"
        elif anchor and place.suffix == ".md" and anchor not in anchors(place):
            yield f"{target}: that page has no such heading"


def page_problems(root, line):
    """Pages that a source, or the text of a page, names without a link."""
    for page in PAGE.findall(line):
        if not (root / page).exists():
            yield f"there is no page {page}"


def line_problems(path, line):
    if path.suffix == ".md":
        yield from link_problems(path, line)
    elif not line.isascii():
        yield "not ASCII"
    if LEFT_FOR_LATER.search(line):
        yield "left for later: finish it or take it out"
    if FRAGMENT.search(line):
        yield "a comment that begins with 'Of': say what the thing is"
    if MACHINE.search(line):
        yield "a path or package index of one machine"


def quote_problems(root, path):
    text = path.read_text(encoding="utf-8")
    for source, quoted in QUOTE.findall(text):
        file = root / source
        whole = file.read_text(encoding="utf-8") if file.exists() else ""
        if quoted != re.sub(r"\A(//.*\n)*", "", whole):
            yield f"{path.relative_to(root)}: the quoted text of {source} is not what the file holds"


def layer_problems(root, path):
    libraries = Libraries(root / "src" / "lockstep")
    for drawing in LAYERS.findall(path.read_text(encoding="utf-8")):
        rows, torch_line = {}, 0
        for number, line in enumerate(drawing.splitlines(), start=1):
            if line.startswith("--"):
                torch_line = number
            rows.update(dict.fromkeys(line.split("|")[0].split(), number))
        for name in sorted(libraries.folders.values()):
            deps = libraries.deps[name]
            wrong = [dep for dep in deps if rows.get(dep, 0) >= rows.get(name, 0)]
            if wrong or (rows.get(name, 0) > torch_line) != libraries.torch[name]:
                yield (f"{path.relative_to(root)}: {name} stands wrongly in the drawing of the layers"
                       f" (DEPS: {' '.join(deps)})")


def length_problems(readme):
    lines = len(numbered_lines(readme)) if readme.exists() else 0
    return [f"{readme.name}: {lines} lines, at most {README_LINES}"] if lines > README_LINES else []


def check(root):
    problems = []
    for path in files(root, (".md",)):
        problems += quote_problems(root, path)
        problems += layer_problems(root, path)
    for path in files(root, TEXTS):
        in_code = False
        for number, line in numbered_lines(path):
            if path.suffix == ".md" and line.lstrip().startswith("```"):
                in_code = not in_code
            text = re.sub(r"`[^`]*`", "", line) if path.suffix == ".md" else line
            if in_code:
                text = re.sub(LINK, "", text)
            for problem in [*line_problems(path, text), *page_problems(root, line)]:
                problems.append(f"{path.relative_to(root)}:{number}: {problem}")
    problems += translated_pages.problems(root, files(root, (".md",)))
    for name in ("README.md", "README.zh-CN.md"):
        problems += length_problems(root / name)
    return problems


if __name__ == "__main__":
    run_check(check)
