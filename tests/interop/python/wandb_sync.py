"""Sends a run folder with `wandb sync` to a server on this machine that notes what it gets.

Usage: wandb_sync.py RUN_FOLDER SCRATCH_FOLDER. Prints one JSON object: the run's names, config,
history, summary, system metrics, console, exit code and the SHA-256 of each file.
"""

import gzip
import hashlib
import json
import os
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

SECONDS = 90


class Got:
    """All that the client has sent."""

    def __init__(self):
        self.lock = threading.Lock()
        self.runs = []  # Variables of the calls that name the run.
        self.lines = {}  # File of the stream -> {line number: text}.
        self.files = {}  # Name of an uploaded file -> SHA-256.
        self.exit_code = None

    def take_stream(self, body):
        for name, chunk in body.get("files", {}).items():
            lines = self.lines.setdefault(name, {})
            for number, text in enumerate(chunk["content"], chunk["offset"]):
                lines[number] = text
        if body.get("complete"):
            self.exit_code = body["exitcode"]

    def texts(self, name):
        return [text for _, text in sorted(self.lines.get(name, {}).items())]

    def setting(self, name):
        return next((run[name] for run in reversed(self.runs) if run.get(name)), None)

    def summary(self):
        return {
            "run_id": self.setting("name"),
            "project": self.setting("project"),
            "display_name": self.setting("displayName"),
            "notes": self.setting("notes"),
            "tags": self.setting("tags"),
            "program": self.setting("program"),
            "config": json.loads(self.setting("config")),
            "history": [json.loads(text) for text in self.texts("wandb-history.jsonl")],
            "summary": json.loads(self.texts("wandb-summary.json")[-1]),
            "events": [json.loads(text) for text in self.texts("wandb-events.jsonl")],
            "console": [text.split(" ", 1)[1] for text in self.texts("output.log")],
            "exit_code": self.exit_code,
            "files": self.files,
        }


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def read_body(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        return body

    def reply(self, answer):
        body = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_PUT(self):
        body = self.read_body()
        with self.server.got.lock:
            name = self.path.removeprefix("/upload/")
            self.server.got.files[name] = hashlib.sha256(body).hexdigest()
        self.reply({})

    def do_POST(self):
        body = self.read_body()
        if self.path == "/graphql":
            self.reply({"data": self.answer(json.loads(body))})
            return
        if self.path.endswith("/file_stream"):
            with self.server.got.lock:
                self.server.got.take_stream(json.loads(body))
        self.reply({})

    def answer(self, call):
        given = call.get("variables") or {}
        if call["operationName"] == "UpsertBucket":
            with self.server.got.lock:
                self.server.got.runs.append(given)
            return {"upsertBucket": {"bucket": self.bucket(given), "inserted": True}}
        if call["operationName"] == "CreateRunFiles":
            base = f"http://127.0.0.1:{self.server.server_port}/upload/"
            files = [{"name": name, "uploadUrl": base + name} for name in given["files"]]
            return {"createRunFiles": {"runID": "r", "uploadHeaders": [], "files": files}}
        if call["operationName"] == "Viewer":
            return {"viewer": {"id": "v", "entity": "someone", "username": "someone", "flags": "{}"}}
        return {}

    def bucket(self, given):
        return {
            "id": "r",
            "name": given["name"],
            "displayName": given["displayName"],
            "config": "{}",
            "historyLineCount": 0,
            "project": {
                "id": "p",
                "name": given["project"],
                "entity": {"id": "e", "name": "someone"},
            },
        }


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.got = Got()

    def handle_error(self, *_):
        """Clients leave without saying goodbye."""


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
    threading.Thread(target=server.serve_forever, daemon=True).start()
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
