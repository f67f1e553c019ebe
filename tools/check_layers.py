#!/usr/bin/env python3
"""Checks what each folder of src/lockstep, and each public header, may include and call.

The direction is written once, in the DEPS of each lockstep_library(). A folder may
include itself, its DEPS and theirs. Folders without TORCH lie above the torch line. A
header of include/lockstep belongs to the folder that lists it under PUBLIC, and includes
other public headers only.
"""

import re

from source_tree import code_files, numbered_lines, run_check

LIBRARY = re.compile(r"^ *lockstep_library\((\w+)([^)]*)\)", re.MULTILINE)
KEYWORDS = {"TORCH", "SOURCES", "PUBLIC", "DEPS", "LINK"}
INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^">]+)[>"]')
TORCH = ("torch/", "ATen/", "c10/")
THIRD_PARTY = ("fmt/", "nlohmann/", "CLI/", "spdlog/", "yaml-cpp/", "google/protobuf/", "isa-l/", "openssl/", "png.h",
               "stb/", "fontconfig/", "arrow/", "parquet/", "hdf5.h")
PRINTS_OR_EXITS = re.compile(
    r"\bstd::(cout|cerr|clog|printf|puts|exit|quick_exit|abort|terminate)\b"
    r"|\bfmt::print\b|\bfprintf\s*\(\s*std(out|err)\b"
    r"|^\s*(::)?(printf|puts|exit|abort)\s*\("
)


class Libraries:
    """The lockstep_library() calls below src/lockstep."""

    def __init__(self, source):
        self.deps = {}  # name -> names
        self.torch = {}  # name -> whether it says TORCH
        self.folders = {}  # parts of a folder's path -> name
        self.owners = {}  # public header -> name
        for path in sorted(source.rglob("CMakeLists.txt")):
            for name, body in LIBRARY.findall(path.read_text(encoding="utf-8")):
                words = words_by_keyword(body)
                self.deps[name] = words["DEPS"]
                self.torch[name] = "TORCH" in words
                self.folders[path.parent.relative_to(source).parts] = name
                self.owners.update({header: name for header in words["PUBLIC"]})
        self.folders.pop((), None)  # The parts that tie all folders together may include any.

    def owner(self, parts):
        """The library of a file by its path below src/lockstep: the deepest folder's; none for app/."""
        for length in range(len(parts) - 1, 0, -1):
            if parts[:length] in self.folders:
                return self.folders[parts[:length]]
        return None

    def closure(self, name):
        seen, waiting = set(), [name]
        while waiting:
            library = waiting.pop()
            if library not in seen:
                seen.add(library)
                waiting += self.deps.get(library, [])
        return seen


def words_by_keyword(body):
    """The words behind each keyword of a call; TORCH is there when it was said."""
    found, keyword = {"DEPS": [], "PUBLIC": []}, ""
    for word in re.sub(r"#.*", "", body).split():
        if word in KEYWORDS:
            keyword = word
            found.setdefault(keyword, [])
        elif keyword:
            found[keyword].append(word)
    return found


def included_library(include, libraries):
    """The library whose header it is, and what is wrong with the name itself."""
    parts = tuple(include.split("/")[1:])
    if len(parts) > 1:
        return libraries.owner(parts), None
    if parts[0] not in libraries.owners:
        return None, f"no lockstep_library() lists {parts[0]} under PUBLIC"
    return libraries.owners[parts[0]], None


def torch_line_problem(include, is_header, library, libraries):
    if libraries.torch[library]:
        return None
    if include.startswith(TORCH):
        return f"{library} lies above the torch line and may not include {include}"
    if is_header and (include.startswith(THIRD_PARTY) or include.endswith(".pb.h")):
        return f"a header above the torch line may not include {include}"
    return None


def include_problem(include, is_header, is_public, library, libraries):
    if is_header and include == "torch/torch.h":
        return "torch/torch.h belongs in no header: name the parts that are used"
    if include.startswith("lockstep/"):
        if is_public and include.count("/") > 1:
            return f"a public header may not include {include}, which is private"
        other, problem = included_library(include, libraries)
        if problem:
            return problem
        if library in libraries.deps and other and other not in libraries.closure(library):
            return f"{library} may not include {other}"
    if library not in libraries.deps:
        return None
    return torch_line_problem(include, is_header, library, libraries)


def check(root):
    source = root / "src" / "lockstep"
    public = root / "include" / "lockstep"
    libraries = Libraries(source)
    problems = []
    for path in code_files(root, ("include/lockstep", "src/lockstep")):
        is_public = path.is_relative_to(public)
        if is_public:
            library = libraries.owners.get(path.relative_to(public).as_posix())
        else:
            library = libraries.owner(path.relative_to(source).parts)
        for number, line in numbered_lines(path):
            where = f"{path.relative_to(root)}:{number}"
            match = INCLUDE.match(line)
            problem = match and include_problem(match[1], path.suffix in (".h", ".cuh"), is_public, library, libraries)
            if problem:
                problems.append(f"{where}: {problem}")
            code = re.sub(r'"(\\.|[^"\\])*"|//.*', "", line)
            if library and PRINTS_OR_EXITS.search(code):
                problems.append(f"{where}: only app/ may print or exit")
    return problems


if __name__ == "__main__":
    run_check(check)
