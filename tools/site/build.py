#!/usr/bin/env python3
"""build.py ROOT SITE: makes the site of the repository ROOT in the folder SITE; run by ./lockstep.sh docs.

The pages that it is made of are beside it, in SITE-pages.

Run by the Python that has what requirements.txt lists; Doxygen must be on the path.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import pages  # noqa: E402  (beside this file)


def main(root, site):
    folder = site.with_name(site.name + "-pages")
    shutil.rmtree(folder, ignore_errors=True)
    with tempfile.TemporaryDirectory() as work:
        pages.write_pages(root, folder, Path(work) / "doxygen")
        (folder / "assets").mkdir()
        shutil.copy(HERE / "site.css", folder / "assets")
        # jieba reads a cache of a fixed name there: not one that another user may have written.
        environment = {**os.environ, "TMPDIR": work, "LOCKSTEP_SITE": str(site), "LOCKSTEP_SITE_PAGES": str(folder)}
        return subprocess.run([sys.executable, "-m", "mkdocs", "build", "--strict", "--clean", "--config-file",
                               HERE / "mkdocs.yml"], check=False, cwd=HERE, env=environment).returncode


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()))
