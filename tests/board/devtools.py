"""A headless Chromium, driven by the DevTools protocol over a pipe: no driver and no Python package."""
import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

# Seconds for all that a program does here: machines may be slow, and any one wait may take what is left.
DEADLINE = time.monotonic() + float(os.environ.get("LOCKSTEP_PAGE_LIMIT", 840))


def seconds_left():
    return max(1.0, DEADLINE - time.monotonic())


class Page:
    """One browser with one page."""

    def __init__(self, width=1440, height=900, dark=False):
        program = shutil.which("chromium") or shutil.which("chromium-browser")
        if program is None:
            raise SystemExit("no chromium on PATH: apt-get install chromium")
        self.profile = tempfile.mkdtemp(prefix="lockstep-chromium-")
        commands_out, self.commands = os.pipe()
        self.answers, answers_in = os.pipe()

        def at_3_and_4():
            # Both first out of the way of the numbers that Chromium reads and writes.
            high_out, high_in = os.dup(commands_out), os.dup(answers_in)
            os.dup2(high_out, 3)
            os.dup2(high_in, 4)

        self.process = subprocess.Popen(
            [program, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
             "--no-first-run", "--hide-scrollbars", f"--window-size={width},{height}",
             f"--user-data-dir={self.profile}", "--remote-debugging-pipe", "about:blank"],
            preexec_fn=at_3_and_4, close_fds=False, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(commands_out)
        os.close(answers_in)
        self.rest = b""
        self.number = 0
        self.session = None
        self.errors = []  # Exceptions and errors on the page's console.
        self.requests = []  # Addresses that the page asked for.
        targets = self.call("Target.getTargets")["targetInfos"]
        target = next(one["targetId"] for one in targets if one["type"] == "page")
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.set_dark(dark)

    def set_dark(self, dark):
        self.call("Emulation.setEmulatedMedia",
                  features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def read(self, deadline):
        """The next message."""
        while b"\0" not in self.rest:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.answers], [], [], left)[0]:
                raise TimeoutError("the browser does not answer")
            got = os.read(self.answers, 1 << 20)
            if not got:
                raise RuntimeError("the browser ended")
            self.rest += got
        message, self.rest = self.rest.split(b"\0", 1)
        return json.loads(message)

    def note(self, message):
        method, values = message.get("method"), message.get("params", {})
        if method == "Runtime.exceptionThrown":
            details = values["exceptionDetails"]
            self.errors.append(details.get("exception", {}).get("description") or details["text"])
        elif method == "Log.entryAdded" and values["entry"]["level"] == "error":
            self.errors.append(values["entry"]["text"] + " " + values["entry"].get("url", ""))
        elif method == "Network.requestWillBeSent":
            self.requests.append(values["request"]["url"])

    def call(self, method, **values):
        self.number += 1
        message = {"id": self.number, "method": method, "params": values}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.commands, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.read(DEADLINE)
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer["result"]
            self.note(answer)

    def open(self, address):
        self.call("Page.navigate", url=address)

    def run(self, script):
        """The value of an expression on the page."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"].get("exception", {}).get("description", script))
        return answer["result"].get("value")

    def wait_for(self, script, what=None):
        """Waits until an expression is true; returns its value, or {} for what is not plain data."""
        while True:
            reason = ""
            try:
                value = self.run(script)
                if value or value == {}:
                    return value
            except RuntimeError as error:  # What it names is not there yet.
                reason = f" ({error})"
            if time.monotonic() > DEADLINE - 5:
                raise AssertionError(f"never happened: {what or script}{reason}; errors on the page: {self.errors}")
            time.sleep(0.1)

    def click(self, selector):
        self.run(f"document.querySelector({json.dumps(selector)}).click()")

    def press(self, key):
        text = key if len(key) == 1 else None
        values = {"key": key, "code": key, "windowsVirtualKeyCode": {"Enter": 13, "ArrowDown": 40, "ArrowUp": 38, " ": 32}.get(key, ord(key[0].upper()))}
        self.call("Input.dispatchKeyEvent", type="keyDown", **({"text": text} if text else {}), **values)
        self.call("Input.dispatchKeyEvent", type="keyUp", **values)

    def screenshot(self, path):
        with open(path, "wb") as file:
            file.write(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))

    def close(self):
        self.process.kill()
        self.process.wait()
        os.close(self.commands)
        os.close(self.answers)
        shutil.rmtree(self.profile, ignore_errors=True)
