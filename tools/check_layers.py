#!/usr/bin/env python3
"""Checks what each folder of src/lockstep may include and call.

The direction is written once, in the DEPS of each lockstep_library(). A folder may
include itself, its DEPS and theirs. Folders without TORCH lie above the torch line.
"""

import re

from source_tree import code_files, numbered_lines, run_check

LIBRARY = re.compile(r"^lockstep_library\((\w+)([^)]*)\)", re.MULTILINE)
KEYWORDS = {"TORCH", "SOURCES", "PUBLIC", "DEPS", "LINK"}
INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^">]+)[>"]')
TORCH = ("torch/", "ATen/", "c10/")
THIRD_PARTY = ("fmt/", "nlohmann/", "CLI/", "spdlog/", "yaml-cpp/", "google/protobuf/", "isa-l/", "openssl/", "png.h",
               "stb/", "arrow/", "parquet/", "hdf5.h")
PRINTS_OR_EXITS = re.compile(
    r"\bstd::(cout|cerr|clog|printf|puts|exit|quick_exit|abort|terminate)\b"
    r"|\bfmt::print\b|\bfprintf\s*\(\s*std(out|err)\b"
    r"|^\s*(::)?(printf|puts|exit|abort)\s*\("
)


def read_libraries(source):
    """Folder -> (names in DEPS, whether it says TORCH)."""
    libraries = {}
    for path in sorted(source.glob("*/CMakeLists.txt")):
        for name, body in LIBRARY.findall(path.read_text(encoding="utf-8")):
            words = re.sub(r"#.*", "", body).split()
            deps, keyword = [], None
            for word in words:
                if word in KEYWORDS:
                    keyword = word
                elif keyword == "DEPS":
                    deps.append(word)
            libraries[name] = (deps, "TORCH" in words)
    return libraries


def closure(name, libraries):
    seen, waiting = set(), [name]
    while waiting:
        folder = waiting.pop()
        if folder not in seen:
            seen.add(folder)
            waiting += libraries.get(folder, ([], False))[0]
    return seen


def include_problem(include, path, folder, libraries):
    header = path.suffix in (".h", ".cuh")
    if header and include == "torch/torch.h":
        return "torch/torch.h belongs in no header: name the parts that are used"
    if folder not in libraries:
        return None
    if include.startswith("lockstep/") and include.count("/") >= 2:
        other = include.split("/")[1]
        if other not in closure(folder, libraries):
            return f"{folder} may not include {other}"
    if libraries[folder][1]:
        return None
    if include.startswith(TORCH):
        return f"{folder} lies above the torch line and may not include {include}"
    if header and (include.startswith(THIRD_PARTY) or include.endswith(".pb.h")):
        return f"a header above the torch line may not include {include}"
    return None


def check(root):
    source = root / "src" / "lockstep"
    libraries = read_libraries(source)
    problems = []
    for path in code_files(root, ("src/lockstep",)):
        parts = path.relative_to(source).parts
        folder = parts[0] if len(parts) > 1 else ""
        for number, line in numbered_lines(path):
            where = f"{path.relative_to(root)}:{number}"
            match = INCLUDE.match(line)
            problem = match and include_problem(match[1], path, folder, libraries)
            if problem:
                problems.append(f"{where}: {problem}")
            code = re.sub(r'"(\\.|[^"\\])*"|//.*', "", line)
            if folder not in ("app", "") and PRINTS_OR_EXITS.search(code):
                problems.append(f"{where}: only app/ may print or exit")
    return problems


if __name__ == "__main__":
    run_check(check)
