"""MkDocs' hook: lists the pages of the API reference, which follow the headers, in the navigation."""

from pathlib import Path


def on_config(config):
    for entry in config.nav:
        if entry.get("API") == "api/index.md":  # Called once per language.
            pages = sorted(Path(config.docs_dir, "api").glob("*.md"))
            entry["API"] = ["api/index.md", *({f"{p.stem}.h": f"api/{p.name}"} for p in pages if p.stem != "index")]
    return config
