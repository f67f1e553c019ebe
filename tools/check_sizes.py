#!/usr/bin/env python3
"""Checks the length of files and functions. A longer one is split by concept.

A function is found by its shape after clang-format: it starts in column 0 with a
line that ends with an opening brace, and ends with a brace alone in column 0.
"""

import re

from source_tree import code_files, numbered_lines, run_check

HEADER_LINES = 250
SOURCE_LINES = 450
FUNCTION_LINES = 60
NOT_A_FUNCTION = re.compile(r"^(namespace|struct|class|enum|union|extern|#|//|})")


def long_functions(lines):
    """(line number, length) of each function that is too long."""
    start, signature = None, None
    for number, line in lines:
        if start is None:
            if re.match(r"^[A-Za-z_:~\[]", line):
                signature = number
            if line.endswith("{") and signature and not NOT_A_FUNCTION.match(line):
                start = signature
            elif not line or line.startswith(("}", "#", "//")) or NOT_A_FUNCTION.match(line):
                signature = None
        elif line.startswith("}"):
            if line == "}" and number - start + 1 > FUNCTION_LINES:
                yield start, number - start + 1
            start, signature = None, None


def check(root):
    problems = []
    for path in code_files(root):
        lines = numbered_lines(path)
        name = path.relative_to(root)
        limit = HEADER_LINES if path.suffix in (".h", ".cuh") else SOURCE_LINES
        if len(lines) > limit:
            problems.append(f"{name}: {len(lines)} lines; at most {limit}")
        for number, length in long_functions(lines):
            problems.append(f"{name}:{number}: function of {length} lines; at most {FUNCTION_LINES}")
    return problems


if __name__ == "__main__":
    run_check(check)
