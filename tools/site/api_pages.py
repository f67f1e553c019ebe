"""The API reference: a page of Markdown for each public header, from Doxygen's XML.

Doxygen reads the declarations; texts are the headers' own comments (comment_filter.py).
"""

import re
import subprocess
import xml.etree.ElementTree as ElementTree

import comment_filter

SETTINGS = """\
PROJECT_NAME = Lockstep
FILE_PATTERNS = *.h
GENERATE_HTML = NO
GENERATE_LATEX = NO
GENERATE_XML = YES
XML_PROGRAMLISTING = NO
EXTRACT_ALL = YES
MACRO_EXPANSION = YES
EXPAND_ONLY_PREDEF = YES
PREDEFINED = LOCKSTEP_EXPORT=
SORT_MEMBER_DOCS = NO
QUIET = YES
WARN_IF_UNDOCUMENTED = NO
"""
PRIVATE = ("::detail", "::internal", "::base", "::comm", "::data")  # Namespaces that a header only mentions.
INTRODUCTION = """\
# API reference

The public headers, which are all that is installed for programs. `lockstep/lockstep.h` includes those for
[loops of your own](../how-to/own-program.md), `lockstep/train.h` those for [recipes](../tutorial/adding-a-recipe.md). Everything is in
the namespace `lockstep`. What stays between versions: [compatibility](../reference/compatibility.md).
"""


def run_doxygen(headers, work):
    source = work / "headers"
    source.mkdir(parents=True)
    for header in headers:
        (source / header.name).write_text(comment_filter.filtered(header.read_text(encoding="utf-8")), encoding="utf-8")
    (work / "Doxyfile").write_text(f"{SETTINGS}INPUT = {source}\nOUTPUT_DIRECTORY = {work}\n", encoding="utf-8")
    subprocess.run(["doxygen", work / "Doxyfile"], check=True)
    return work / "xml"


def text_of(node):
    """A comment as Markdown: paragraphs, and indented lines as code."""
    comment = "\n".join(v.text or "" for v in node.iter("verbatim")) if node is not None else ""
    out, is_code = [], False
    for line in comment.strip("\n").split("\n"):
        if line.startswith("  ") != is_code and line.strip():
            is_code = not is_code
            out.append("```cpp" if is_code else "```")
            if not is_code:
                out.append("")
        out.append(line[2:] if is_code else line if "`" in line else re.sub(r"(?<![\w`])([<*_#[])", r"\\\1", line))
    if is_code:
        while not out[-1]:
            out.pop()
        out.append("```")
    return re.sub(r"\n+(```cpp)", r"\n\n\1", re.sub(r"\n\n+```\n", "\n```\n", "\n".join(out))).strip()


def content(node):
    return "".join(node.itertext()).strip() if node is not None else ""


def tidy(code):
    code = re.sub(r"< (?=\S)", "<", code)
    code = re.sub(r"(?<=\S) >", ">", code)
    code = re.sub(r"\s*([&*]+)\s*(?=\w)", r"\1 ", code)
    return re.sub(r"\s+([&*]+)(?=[>,).])", r"\1", code).replace("lockstep::", "")


def template_of(node):
    parameters = node.find("templateparamlist")
    if parameters is None:
        return ""
    names = (" ".join(filter(None, (content(p.find("type")), content(p.find("declname"))))) for p in parameters)
    return f"template <{', '.join(names)}>\n"


def declaration(member):
    """One member as C++."""
    kind, name = member.get("kind"), content(member.find("name"))
    if kind == "enum":
        values = ", ".join(content(v.find("name")) for v in member.findall("enumvalue"))
        return f"enum class {name} {{ {values} }};"
    if kind == "typedef":
        return tidy(f"using {name} = {content(member.find('type'))}{content(member.find('argsstring'))};")
    if kind == "variable":
        return tidy(f"{content(member.find('type'))} {name} {content(member.find('initializer'))}".strip() + ";")
    arguments = re.sub(r"=(?=(default|delete)$)", " = ", content(member.find("argsstring")))
    arguments = re.sub(r"(?<=[\w>\])])=(?! )", " = ", arguments)
    static = "static " if member.get("static") == "yes" else ""
    result = content(member.find("type"))
    line = tidy(f"{static}{result} {name}{arguments}".strip() + ";")
    return template_of(member) + (line if len(line) <= 90 else wrapped(line))


def wrapped(line):
    head, _, rest = line.partition("(")
    inner, close, tail = rest.rpartition(")")
    depth, parts = 0, [""]
    for letter in inner:
        depth += (letter in "<({") - (letter in ">)}")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return f"{head}(\n    " + ",\n    ".join(p.strip() for p in parts) + close + tail


def line_of(node):
    return int(node.find("location").get("line"))


def is_shown(member):
    name, arguments = content(member.find("name")), content(member.find("argsstring"))
    is_plumbing = name.startswith(("~", "TORCH_")) or arguments.endswith(("=delete", "=default")) or name == "operator="
    is_inner = re.search(r"\b(base|comm|data|detail|internal)::", arguments) is not None
    return member.get("prot") in (None, "public") and member.get("kind") != "friend" and not (is_plumbing or is_inner)


def table(rows):
    cells = [[cell.replace("|", "\\|").replace("\n", " ") for cell in row] for row in rows]
    return "\n".join("| " + " | ".join(row) + " |" for row in [cells[0], ["---"] * len(cells[0]), *cells[1:]])


def enum_page(member):
    rows = [[f"`{content(v.find('name'))}`", text_of(v.find("detaileddescription"))]
            for v in member.findall("enumvalue")]
    shown = f"```cpp\n{declaration(member)}\n```\n\n{text_of(member.find('detaileddescription'))}\n"
    return shown + ("\n" + table([["value", "meaning"], *rows]) + "\n" if any(row[1] for row in rows) else "")


def fields_table(fields):
    rows = [[f"`{content(f.find('name'))}`", f"`{tidy(content(f.find('type')))}`",
             (lambda value: f"`{value}`" if value else "")(content(f.find("initializer")).lstrip("= ")),
             text_of(f.find("detaileddescription"))] for f in fields]
    return table([["member", "type", "default", "meaning"], *rows])


def is_apart(before, after):
    """Whether the header has an empty line between two members."""
    with open(after.find("location").get("file"), encoding="utf-8") as file:
        return "" in [line.strip() for line in file][line_of(before):line_of(after)]


def functions_text(functions):
    """Those without a comment of their own stand with the ones above them, as in the header."""
    groups = []
    for i, function in enumerate(functions):
        text = text_of(function.find("detaileddescription"))
        if text or not groups or is_apart(functions[i - 1], function):
            groups.append(([], text))
        groups[-1][0].append(declaration(function))
    return "\n".join(f"```cpp\n{chr(10).join(code)}\n```\n\n{text}\n" for code, text in groups)


def class_text(compound, level="##"):
    name = content(compound.find("compoundname")).removeprefix("lockstep::")
    bases = ", ".join(tidy(content(base)) for base in compound.findall("basecompoundref"))
    head = template_of(compound) + f"{compound.get('kind')} {name}" + (f" : {bases}" if bases else "") + ";"
    is_plain = "\n" not in head and not bases
    parts = [f"{level} {name}\n", "" if is_plain else f"```cpp\n{head}\n```\n", text_of(compound.find("detaileddescription")) + "\n"]
    members = sorted(filter(is_shown, compound.iter("memberdef")), key=line_of)
    types = [m for m in members if m.get("kind") in ("enum", "typedef")]
    fields = [m for m in members if m.get("kind") == "variable" and m.get("static") != "yes"]
    functions = [m for m in members if m.get("kind") == "function"]
    parts += [enum_page(m) if m.get("kind") == "enum" else functions_text([m]) for m in types]
    if fields:
        parts.append(fields_table(fields) + "\n")
    if functions:
        parts.append(functions_text(functions))
    return "\n".join(parts)


def header_page(xml, header):
    """The page of one header, and what the index says about it."""
    compound = ElementTree.parse(xml / (header.name.replace("_", "__").replace(".", "_8") + ".xml")).find("compounddef")
    intro = text_of(compound.find("detaileddescription"))
    parts, names = [], []
    for inner in compound.findall("innerclass"):
        if any(space in inner.text for space in PRIVATE):
            continue
        node = ElementTree.parse(xml / (inner.get("refid") + ".xml")).find("compounddef")
        # One that is only declared here belongs to another header.
        if node.find("location").get("bodyfile", "").endswith("/" + header.name) and inner.get("prot") == "public":
            is_nested = "::" in inner.text.removeprefix("lockstep::")
            parts.append((line_of(node), class_text(node, "###" if is_nested else "##")))
            names += [] if is_nested else [inner.text.removeprefix("lockstep::")]
    functions = []
    for namespace in compound.findall("innernamespace"):
        if namespace.text == "lockstep":
            node = ElementTree.parse(xml / (namespace.get("refid") + ".xml")).find("compounddef")
            functions += [m for m in node.iter("memberdef")
                          if m.find("location").get("file").endswith("/" + header.name) and is_shown(m)]
    seen = set()
    for member in sorted(functions, key=line_of):
        name, kind = content(member.find("name")), member.get("kind")
        if name in names and name not in seen:  # A deduction guide.
            continue
        heading = f"## {name}\n\n" if name not in seen else ""
        seen.add(name)
        names += [name] if heading else []
        parts.append((line_of(member), heading + (enum_page(member) if kind == "enum" else functions_text([member]))))
    body = "\n".join(text for _, text in sorted(parts, key=lambda part: part[0]))
    page = f"# lockstep/{header.name}\n\n`#include \"lockstep/{header.name}\"`\n\n{intro}\n\n{body}"
    return page, [f"[`{header.name}`]({header.stem}.md)", first_sentence(intro),
                  ", ".join(f"`{name}`" for name in names[:8]) + (", ..." if len(names) > 8 else "")]


def first_sentence(text):
    return re.split(r"(?<=\.)\s", text.split("\n\n")[0].replace("\n", " "))[0].rstrip(":")


def included_by(header):
    return re.findall(r'#include "lockstep/(\w+\.h)"', header.read_text(encoding="utf-8"))


def pages(headers, work):
    """Markdown by file name, index.md among them."""
    xml = run_doxygen(headers, work)
    found, rows = {}, {}
    for header in headers:
        if header.name not in ("export.h", "value_impl.h"):
            found[header.stem + ".md"], rows[header.name] = header_page(xml, header)
    folder = headers[0].parent
    loops, recipes = included_by(folder / "lockstep.h"), included_by(folder / "train.h")
    groups = (("Own loops", lambda name: name in loops or name == "lockstep.h"),
              ("Recipes", lambda name: name in recipes or name == "train.h"), ("Used by both", lambda name: True))
    index, left = INTRODUCTION, dict(rows)
    for title, belongs in groups:
        chosen = [left.pop(name) for name in list(left) if belongs(name)]
        index += f"\n## {title}\n\n" + table([["header", "what", "names"], *chosen]) + "\n"
    found["index.md"] = index
    return found
