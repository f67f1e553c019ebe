"""A stand-in for a Weights & Biases server: answers what the client asks and notes what it sends.

Usage: wandb_server.py FOLDER. Writes its port to FOLDER/port and all it has got to FOLDER/got.json,
after each change. FOLDER/mode says how it behaves, and may change at any time:
  ok      answers (also without the file)
  away    refuses connections, until the first "ok"
  error   answers everything with status 500
  hang    takes requests and never answers
"""

import base64
import gzip
import hashlib
import json
import os
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


class Got:
    """All that the client has sent."""

    def __init__(self):
        self.lock = threading.Lock()
        self.runs = []  # Variables of the calls that name the run.
        self.lines = {}  # File of the stream -> {line number: text}.
        self.files = {}  # Name of an uploaded file -> SHA-256.
        self.exit_code = None
        self.num_refused = 0  # Requests answered with an error or not at all.
        self.keys = set()  # API keys of the requests.

    def take_stream(self, body):
        for name, chunk in body.get("files", {}).items():
            lines = self.lines.setdefault(name, {})
            for number, text in enumerate(chunk["content"], chunk["offset"]):
                lines[number] = text
        if body.get("complete"):
            self.exit_code = body["exitcode"]

    def history(self):
        """One row per step, the last one: wandb's developers describe the real server so."""
        rows = [json.loads(text) for text in self.texts("wandb-history.jsonl")]
        return {row["_step"]: row for row in rows}

    def brief(self):
        return {
            "run_ids": sorted({run["name"] for run in self.runs}),
            "steps": sorted(self.history()),
            "num_rows": len(self.lines.get("wandb-history.jsonl", {})),
            "exit_code": self.exit_code,
            "num_refused": self.num_refused,
            "keys": sorted(self.keys),
        }

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

    def is_refused(self):
        mode = self.server.mode()
        if mode not in ("error", "hang"):
            return False
        with self.server.got.lock:
            self.server.got.num_refused += 1
        self.server.changed()
        while self.server.mode() == "hang":
            time.sleep(0.05)
        self.send_response(500)
        self.send_header("Content-Length", "0")
        self.end_headers()
        return True

    def note_key(self):
        kind, _, words = self.headers.get("Authorization", "").partition(" ")
        if kind == "Basic":
            with self.server.got.lock:
                self.server.got.keys.add(base64.b64decode(words).decode().partition(":")[2])

    def do_PUT(self):
        body = self.read_body()
        if self.is_refused():
            return
        with self.server.got.lock:
            name = self.path.removeprefix("/upload/")
            self.server.got.files[name] = hashlib.sha256(body).hexdigest()
        self.server.changed()
        self.reply({})

    def do_POST(self):
        body = self.read_body()
        if self.is_refused():
            return
        self.note_key()
        if self.path == "/graphql":
            self.reply({"data": self.answer(json.loads(body))})
            return
        if self.path.endswith("/file_stream"):
            with self.server.got.lock:
                self.server.got.take_stream(json.loads(body))
        self.server.changed()
        self.reply({})

    def answer(self, call):
        given = call.get("variables") or {}
        if call["operationName"] == "UpsertBucket":
            with self.server.got.lock:
                self.server.got.runs.append(given)
            self.server.changed()
            return {"upsertBucket": {"bucket": self.bucket(given), "inserted": True}}
        if call["operationName"] == "CreateRunFiles":
            base = f"http://127.0.0.1:{self.server.server_port}/upload/"
            files = [{"name": name, "uploadUrl": base + name} for name in given["files"]]
            return {"createRunFiles": {"runID": "r", "uploadHeaders": [], "files": files}}
        if call["operationName"] == "Viewer":
            return {"viewer": {"id": "v", "entity": "someone", "username": "someone", "flags": "{}"}}
        return {}

    def bucket(self, given):
        with self.server.got.lock:
            num_rows = len(self.server.got.lines.get("wandb-history.jsonl", {}))
        return {
            "id": "r",
            "name": given["name"],
            "displayName": given["displayName"],
            "config": "{}",
            "historyLineCount": num_rows,
            "project": {
                "id": "p",
                "name": given["project"],
                "entity": {"id": "e", "name": "someone"},
            },
        }


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, folder=None):
        super().__init__(("127.0.0.1", 0), Handler, bind_and_activate=False)
        self.got = Got()
        self.folder = folder
        self.writing = threading.Lock()
        self.server_bind()

    def mode(self):
        try:
            return (self.folder / "mode").read_text().strip() if self.folder else "ok"
        except FileNotFoundError:
            return "ok"

    def changed(self):
        """Writes what it has got, whole: readers never see half of it."""
        if self.folder is None:
            return
        with self.writing:
            with self.got.lock:
                text = json.dumps(self.got.brief())
            write_whole(self.folder / "got.json", text)

    def serve(self):
        while self.mode() == "away":
            time.sleep(0.05)
        self.server_activate()
        self.serve_forever()

    def handle_error(self, *_):
        """Clients leave without saying goodbye."""


def write_whole(path, text):
    fresh = path.with_suffix(".new")
    fresh.write_text(text)
    os.replace(fresh, path)


def main():
    folder = Path(sys.argv[1])
    server = Server(folder)
    server.changed()
    write_whole(folder / "port", str(server.server_port))
    server.serve()


if __name__ == "__main__":
    main()
