"""Makes the plain comments of a header comments for Doxygen.

Their text is passed on unchanged (verbatim): it is not written in Doxygen's language. The block at
the top describes the file, a block above a declaration that declaration, and one behind code the
code on its line.
"""

import re

ALONE = re.compile(r"^(\s*)//(?: (.*)|)$")
BEHIND = re.compile(r"^(\s*)(\S.*?)\s+// (.*)$")


def comment(lines, mark=""):
    return ["/**" + mark, "@verbatim", *lines, "@endverbatim", "*/"]


def is_text(code):
    """Whether // is inside a string literal."""
    return code.count('"') % 2 == 1


def filtered(text):
    lines, out, i = text.splitlines(), [], 0
    if lines and ALONE.match(lines[0]):
        top = []
        while i < len(lines) and (match := ALONE.match(lines[i])):
            top.append(match[2] or "")
            i += 1
        out += ["/** @file", *comment(top)[1:]]
    while i < len(lines):
        behind, alone = BEHIND.match(lines[i]), ALONE.match(lines[i])
        if alone:
            block = []
            while i < len(lines) and (match := ALONE.match(lines[i])):
                block.append(match[2] or "")
                i += 1
            # Followed by an empty line or a closing brace it belongs to nothing.
            if i < len(lines) and lines[i].strip() and not lines[i].strip().startswith("}"):
                out += comment(block)
        elif behind and not is_text(behind[2]) and not behind[2].startswith(("}", "#")):
            block = [behind[3]]
            column = lines[i].rindex("// " + behind[3])
            i += 1
            # It goes on in the lines below, at the same column or near to it.
            while i < len(lines) and (match := ALONE.match(lines[i])) and len(match[1]) > column // 2 > len(behind[1]):
                block.append(match[2] or "")
                i += 1
            out += [behind[1] + behind[2], *comment(block, "<")]
        else:
            out.append(lines[i])
            i += 1
    return "\n".join(out) + "\n"

