"""Compares X.zh-CN.md with X.md, for tools/check_docs.py.

Both say in their first line where the other one is. Code blocks are the same but for comments, so
that running the commands of the English page runs those of both. Messages that the English page
quotes (code of three words or more) are in the Chinese page, too. Headings have the same levels in
the same order. A paragraph of Chinese is one line: browsers show a line break as a space.
"""

import re

CHINESE = ".zh-CN.md"
BLOCK = re.compile(r"^(```|~~~)(\w*)\n(.*?)^\1$", re.MULTILINE | re.DOTALL)
COMMENT = re.compile(r"\s+#\s.*$")
HEADING = re.compile(r"^(#+) +(.*)$", re.MULTILINE)
CODE = re.compile(r"`([^`\n]+)`")
BROKEN_LINE = re.compile("[\u3001-\u9fff\uff01-\uff5e]\n *[\u4e00-\u9fff]")
MESSAGE_WORDS = 3
CHINESE_NAME = "\u4e2d\u6587"


def blocks(text):
    """The lines of each code block; shell comments, which are translated, are left out."""
    found = []
    for _, language, code in BLOCK.findall(text):
        lines = code.splitlines()
        found.append(lines if language else [COMMENT.sub("", line) for line in lines])
    return found


def headings(text):
    """(level, text) of each heading, in order."""
    return [(len(marks), title) for marks, title in HEADING.findall(BLOCK.sub("", text))]


def heading_problems(chinese, english_text, chinese_text):
    ours, theirs = headings(english_text), headings(chinese_text)
    if [level for level, _ in ours] != [level for level, _ in theirs]:
        wrong = next((pair for pair in zip(ours, theirs) if pair[0][0] != pair[1][0]), (ours[-1], theirs[-1]))
        yield f"{chinese}: headings are not those of the English page, near '{wrong[1][1]}'"


def messages(text):
    return [code for code in CODE.findall(BLOCK.sub("", text)) if len(code.split()) >= MESSAGE_WORDS]


def switch_problems(english, chinese, english_text, chinese_text):
    for path, text, line in ((english, english_text, f"English | [{CHINESE_NAME}]({chinese.name})"),
                             (chinese, chinese_text, f"[English]({english.name}) | {CHINESE_NAME}")):
        if text.split("\n", 1)[0] != line:
            yield f"{path}: the first line is not '{line}'"


def block_problems(chinese, english_text, chinese_text):
    ours, theirs = blocks(english_text), blocks(chinese_text)
    if len(ours) != len(theirs):
        yield f"{chinese}: {len(theirs)} code blocks, the English page has {len(ours)}"
        return
    for number, (english, translated) in enumerate(zip(ours, theirs), start=1):
        if english != translated:
            wrong = [line for line in translated if line not in english] or ["a line is missing"]
            yield f"{chinese}: code block {number} is not that of the English page: {wrong[0]}"


def message_problems(chinese, english_text, chinese_text):
    known = " ".join(chinese_text.split())
    for message in messages(english_text):
        if " ".join(message.split()) not in known:
            yield f"{chinese}: does not mention `{message}`"


def line_problems(chinese, _, chinese_text):
    for match in BROKEN_LINE.finditer(BLOCK.sub("", chinese_text)):
        yield f"{chinese}: a line break within Chinese text: {match[0].strip()!r}"


def problems(root, pages):
    found = []
    for path in pages:
        if not path.name.endswith(CHINESE):
            continue
        english = path.with_name(path.name.removesuffix(CHINESE) + ".md")
        place = path.relative_to(root)
        if not english.exists():
            found.append(f"{place}: there is no {english.name} beside it")
            continue
        texts = english.read_text(encoding="utf-8"), path.read_text(encoding="utf-8")
        found += switch_problems(english.relative_to(root), place, *texts)
        found += heading_problems(place, *texts)
        found += line_problems(place, *texts)
        found += block_problems(place, *texts)
        found += message_problems(place, *texts)
    return found
