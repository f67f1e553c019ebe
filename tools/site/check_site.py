#!/usr/bin/env python3
"""check_site.py SITE: the built site works without other servers, leads nowhere wrong, and is searchable.

- no page, style or script loads a font, script, style or image of another server;
- links to pages and files of the site lead to some;
- the search finds words of both languages, cut as the browser cuts them.
"""

import json
import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADED = {("script", "src"), ("img", "src"), ("iframe", "src"), ("source", "src"), ("video", "src"), ("object", "data"),
          ("use", "href")}
LOADED_RELATIONS = {"stylesheet", "icon", "preload", "prefetch", "modulepreload", "preconnect", "dns-prefetch", "manifest"}
STYLE_LOADS = re.compile(r"""(?:url\(|@import)\s*["']?((?:https?:)?//[^"')\s]+)""")
# What a search must find, and the pages where.
WORDS = {"\u7aef\u53e3": "zh/how-to/launching/", "\u663e\u5b58": "zh/how-to/errors/",
         "\u65ad\u70b9\u7eed\u8bad": "zh/tutorial/first-training/", "no_sync": "api/ddp/",
         "nproc": "how-to/launching/", "global_batch_size": "reference/flags/"}


class Page(HTMLParser):
    """What a page loads and where it links to."""

    def __init__(self, text):
        super().__init__()
        self.loads, self.links = [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        values = dict(attrs)
        self.loads += [values[name] for wanted, name in LOADED if tag == wanted and values.get(name)]
        relations = set((values.get("rel") or "").split())
        if tag == "link" and relations & LOADED_RELATIONS:
            self.loads.append(values.get("href") or "")
        if tag in ("a", "area") and values.get("href"):
            self.links.append(values["href"])
        if "mermaid" in (values.get("class") or "").split():
            self.loads.append("https://a-server-for/mermaid")  # The theme would load it.


def is_foreign(address):
    return address.startswith("//") or urlsplit(address).scheme in ("http", "https")


def link_problems(site, place, links):
    for link in links:
        parts = urlsplit(link)
        if parts.scheme or parts.netloc or not parts.path:
            continue
        path = unquote(parts.path)
        target = site / path.lstrip("/") if path.startswith("/") else place.parent / path
        if not target.is_file() and not (target / "index.html").is_file():
            yield f"{place.relative_to(site)}: the link to {link} leads nowhere"


def page_problems(site):
    for place in sorted(site.rglob("*.html")):
        page = Page(place.read_text(encoding="utf-8"))
        for address in filter(is_foreign, page.loads):
            yield f"{place.relative_to(site)}: loads {address}"
        if place.name != "404.html":  # Its links are those of the server's root.
            yield from link_problems(site, place, page.links)
    for place in sorted(site.rglob("*.css")):
        for address in STYLE_LOADS.findall(place.read_text(encoding="utf-8")):
            yield f"{place.relative_to(site)}: loads {address}"


def search_problems(site):
    index = json.loads((site / "search" / "search_index.json").read_text(encoding="utf-8"))
    separator = re.compile(index["config"]["separator"])  # JavaScript's and Python's mean the same.
    pages = {}
    for entry in index["docs"]:
        text = re.sub(r"<[^>]*>", " ", entry["title"] + " " + entry["text"])
        pages.setdefault(entry["location"].split("#")[0], set()).update(separator.split(text.lower()))
    for word, page in WORDS.items():
        if word not in pages.get(page, ()):
            yield f"the search does not find {word} in {page}"


def main(site):
    problems = [*page_problems(site), *search_problems(site)]
    for problem in problems:
        print(problem)
    if not problems:
        print(f"{len(list(site.rglob('*.html')))} pages, nothing loaded from elsewhere, links lead to pages, words are found")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve()))
