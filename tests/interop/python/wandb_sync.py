"""Sends a run folder with `wandb sync` to a server on this machine that notes what it gets.

Usage: wandb_sync.py RUN_FOLDER SCRATCH_FOLDER. Prints one JSON object: the run's names, config,
history, summary, system metrics, console, exit code and the SHA-256 of each file.
"""

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

from wandb_server import Server

SECONDS = 90


def environment(server, scratch):
    kept = {name: value for name, value in os.environ.items() if not name.startswith("WANDB_")}
    folders = {
        name: str(scratch / name.lower())
        for name in ("HOME", "WANDB_DIR", "WANDB_CACHE_DIR", "WANDB_CONFIG_DIR", "WANDB_DATA_DIR")
    }
    for folder in folders.values():
        Path(folder).mkdir(parents=True, exist_ok=True)
    address = f"http://127.0.0.1:{server.server_port}"
    switches = {
        "WANDB_BASE_URL": address,
        "WANDB_API_KEY": "0123456789" * 4,
        "WANDB_ERROR_REPORTING": "false",
        "NO_PROXY": "127.0.0.1",
        "no_proxy": "127.0.0.1",
    }
    return kept | folders | switches


def main():
    run_folder, scratch = Path(sys.argv[1]), Path(sys.argv[2])
    server = Server()
    threading.Thread(target=server.serve, daemon=True).start()
    client = subprocess.run(
        [str(Path(sys.executable).parent / "wandb"), "sync", str(run_folder)],
        env=environment(server, scratch),
        timeout=SECONDS,
        capture_output=True,
        text=True,
        check=False,
    )
    said = client.stdout + client.stderr
    assert client.returncode == 0 and "Finished syncing" in said, said
    assert list(run_folder.glob("*.wandb.synced")), said
    with server.got.lock:
        print(json.dumps(server.got.summary() | {"said": said}))


main()
