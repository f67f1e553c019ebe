"""Collects the pages of the site: README and documents, sources that they link to, the API reference.

Links are written for readers of the repository. Here they become those of the site: X.zh-CN.md is the
Chinese version of X.md, which the plugin i18n chooses, and files of the repository become pages.
"""

import os
import re
import shutil
import sys
from pathlib import Path

import api_pages
from pymdownx.slugs import slugify

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import translated_pages  # noqa: E402  (of tools/)

LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")
FENCE = re.compile(r"^(```|~~~)", re.MULTILINE)
LANGUAGE_LINE = re.compile(r"\A(English \| \[|\[English\]\().*\n+")
CHINESE, CHINESE_HERE = ".zh-CN.md", ".zh.md"  # In the repository; the name that the theme knows.
ELSEWHERE = ("http:", "https:", "mailto:")
TOP_PAGES = {"README.md": "index.md", "README.zh-CN.md": "index" + CHINESE, "docs/README.md": "documents.md",
             "docs/README.zh-CN.md": "documents" + CHINESE, "ARCHITECTURE.md": "explanation/architecture.md", "CONTRIBUTING.md": "contributing.md",
             "CHANGELOG.md": "changelog.md"}
LANGUAGES = {".cpp": "cpp", ".h": "cpp", ".cu": "cpp", ".py": "python", ".sh": "bash", ".yaml": "yaml", ".json": "json",
             ".txt": "cmake"}


# Flags and names in tables, which would break after a hyphen; messages may break anywhere.
SHORT_CODE = re.compile(r"(?<!`)`([^`\n]{1,30})`(?![`{])")


def with_unbroken_names(text):
    parts = FENCE.split(text)
    for i in range(0, len(parts), 4):
        parts[i] = re.sub(r"^\|.*$", lambda row: SHORT_CODE.sub(r"`\1`{.name}", row[0]), parts[i], flags=re.MULTILINE)
    return "".join(parts)


class Site:
    """The pages of one repository, written into one folder."""

    def __init__(self, root, folder):
        self.root, self.folder = Path(root).resolve(), Path(folder)
        self.sources = set()  # Files of the repository that pages link to.

    def place(self, path):
        """Where a file of the repository is in the site, and None for what it does not have."""
        name = path.relative_to(self.root).as_posix()
        if name in TOP_PAGES:
            return TOP_PAGES[name]
        if name.startswith("docs/"):
            return name.removeprefix("docs/")
        if name == "include/lockstep":
            return "api/index.md"
        if name.startswith("include/lockstep/"):
            return f"api/{path.stem}.md"
        if path.is_file():
            self.sources.add(path)
            return f"source/{name.replace('.', '-')}.md"  # "a.py.md" would be a page in the language py.
        return None

    def link(self, page, target):
        """A link of the file `page` as one of the site; None when it has no place there."""
        name, _, anchor = target.partition("#")
        if not name or target.startswith(ELSEWHERE):
            return target
        place = self.place((page.parent / name).resolve())
        if place is None:
            return None
        here = os.path.dirname(self.place(page))
        if place.endswith(CHINESE) and not page.name.endswith(CHINESE):
            # Into the other language: an address, for the plugin knows files of one language at a time.
            address = "zh/" + place.removesuffix(CHINESE).removesuffix("index") + "/"
            return os.path.relpath(address, self.address_folder(page)) + "/"
        place = place.replace(CHINESE, ".md")
        return os.path.relpath(place, here or ".") + ("#" + anchor if anchor else "")

    def address_folder(self, page):
        place = self.place(page).removesuffix(".md")
        return "." if place == "index" else place

    def rewrite(self, page, text):
        def replaced(match):
            target = self.link(page, match[3])
            return match[2] if target is None else f"{match[1]}[{match[2]}]({target})"

        text = LANGUAGE_LINE.sub("", text)
        parts = FENCE.split(text)  # Text, fence, code, fence, text, ...
        for i in range(0, len(parts), 4):
            # `code` in text is left alone.
            pieces = re.split(r"(`[^`\n]*`)", parts[i])
            if any(LINK.search(piece) for piece in pieces[1::2]):
                pieces[0::2] = [LINK.sub(replaced, piece) for piece in pieces[0::2]]
                parts[i] = "".join(pieces)
            else:
                parts[i] = LINK.sub(replaced, parts[i])
        return "".join(parts)

    def with_english_anchors(self, page, text):
        """Untranslated pages of the Chinese site link to sections by their English names."""
        english = page.with_name(page.name.replace(CHINESE, ".md")).read_text(encoding="utf-8")
        slug = slugify(case="lower")
        anchors = [slug(title, "-") for _, title in translated_pages.headings(english)]
        own = [f"{'#' * level} {title}" for level, title in translated_pages.headings(text)]
        position = 0
        for anchor, heading in zip(anchors, own):
            position = text.index("\n" + heading + "\n", position)
            mark = f'\n<a id="{anchor}"></a>\n'
            text = text[:position] + mark + text[position:]
            position += len(mark) + len(heading)
        return text

    def write(self, place, text):
        path = self.folder / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(with_unbroken_names(text), encoding="utf-8")

    def write_documents(self):
        pages = [self.root / name for name in TOP_PAGES] + sorted((self.root / "docs").rglob("*.md"))
        for page in dict.fromkeys(pages):
            place = self.place(page).replace(CHINESE, CHINESE_HERE)
            text = page.read_text(encoding="utf-8")
            if page.name.endswith(CHINESE):
                text = self.with_english_anchors(page, text)
            self.write(place, self.rewrite(page, text))
        shutil.copytree(self.root / "docs" / "images", self.folder / "images")

    def write_sources(self):
        for path in sorted(self.sources):
            name = path.relative_to(self.root).as_posix()
            text = path.read_text(encoding="utf-8", errors="replace")
            fence = "````" if "```" in text else "```"
            language = LANGUAGES.get(path.suffix, "text")
            self.write(self.place(path), f"---\ntitle: {name}\nsearch:\n  exclude: true\n---\n\n# `{name}`\n\n"
                       f"{fence}{language}\n{text}\n{fence}\n")

    def write_api(self, work):
        headers = sorted((self.root / "include" / "lockstep").glob("*.h"))
        for name, text in api_pages.pages(headers, work).items():
            self.write("api/" + name, text)


def write_pages(root, folder, work):
    """Writes all pages to `folder`, which must not exist; Doxygen's files go to `work`."""
    site = Site(root, folder)
    site.write_documents()
    site.write_sources()
    site.write_api(Path(work))
