"""The board's page in a real browser, over real trainings.

page_test.py LOCKSTEP [--shots FOLDER]: a live run of two ranks appears, its curves grow, a second run
lies over it, a stopped rank is marked, the run ends; the same page through a forwarded port. Screenshots
go to the folder, for people.
"""
import argparse
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from devtools import Page, seconds_left  # noqa: E402

# More than any test waits for.
ENDLESS = "10000000"


class Machine:
    """A board, trainings and a browser; all are ended with it."""

    def __init__(self, lockstep, folder, shots):
        self.lockstep, self.folder, self.shots = lockstep, folder, shots
        self.started = []
        self.page = None
        board = self.start("board", folder, "--port", "0", stdout=subprocess.PIPE)
        self.address = re.search(r"http://\S+", board.stdout.readline().decode()).group(0)
        self.board = board

    def start(self, *words, stdout=subprocess.DEVNULL):
        environment = dict(os.environ, OMP_NUM_THREADS="1")
        process = subprocess.Popen([self.lockstep, *words], stdout=stdout, stderr=subprocess.DEVNULL, env=environment)
        self.started.append(process)
        return process

    def train(self, name, *flags):
        return self.start("train", "tiny", "--nproc", "2", "--device", "cpu", "--save_dir",
                          os.path.join(self.folder, name), "--log_every", "10", *flags)

    def shot(self, name):
        if self.shots:
            self.page.screenshot(os.path.join(self.shots, f"{name}.png"))

    def close(self):
        if self.page:
            self.page.close()
        for process in self.started:
            process.terminate()
        for process in self.started:
            try:
                process.wait(timeout=60)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def row(name, rest=""):
    return f"document.querySelector('#rows tr[data-run={name}]{rest}')"


def state_of(name):
    return f"({row(name, ' td.state')} || {{dataset: {{}}}}).dataset.state"


# The number of points of a run that the chart of its loss draws.
POINTS = """(() => {
  const text = document.querySelector('figure[data-metric="train/loss"] .plot');
  return text ? text.getAttribute('aria-label') : '';
})()"""


def last_step(name):
    return f"parseInt({row(name, ' td:nth-child(5)')}.textContent.replace(/,/g, '')) || 0"


def stop_and_continue_a_rank(machine, page):
    pid = page.run("fetch('/api/run?run=live').then((r) => r.json()).then((r) => r.ranks[1].pid)")
    os.kill(pid, signal.SIGSTOP)
    try:
        page.wait_for("document.querySelector('.rank[data-rank=\"1\"].stopped.attention')", "rank 1 is marked as stopped")
        note = page.run("document.querySelector('.rank[data-rank=\"1\"] .note').textContent")
        assert f"kill -CONT {pid}" in note, note
        page.wait_for("document.querySelector('.rank[data-rank=\"0\"].waiting')", "rank 0 waits for it")
        machine.shot("stopped")
    finally:
        os.kill(pid, signal.SIGCONT)
    page.wait_for("document.querySelectorAll('.rank').length === 2 && !document.querySelector('.rank.stopped')",
                  "rank 1 goes on")


def kill_a_rank(machine, page):
    machine.train("killed", "--n_steps", ENDLESS, "--recover", "restart")
    page.wait_for(f"{state_of('killed')} === 'running'", "a third run appears")
    page.run(f"{row('killed')}.click()")
    ranks = "fetch('/api/run?run=killed').then((r) => r.json()).then((r) => r.ranks)"
    page.wait_for(f"{ranks}.then((list) => list.length === 2 && list[1].step > 0)", "its ranks train")
    os.kill(page.run(f"{ranks}.then((list) => list[1].pid)"), signal.SIGKILL)
    page.wait_for(f"{state_of('killed')} === 'failed'", "it fails")
    page.wait_for("document.getElementById('verdict').textContent.includes('Verdict: signal')", "the verdict is shown")
    text = page.run("document.getElementById('verdict').textContent")
    assert "died by SIGKILL" in text and "Next: dmesg" in text, text
    machine.shot("verdict")
    link = page.run("document.querySelector('#verdict a').href")
    assert link.endswith("/verdicts.html#signal"), link
    page.open(link)
    page.wait_for("document.querySelector('h2:target') && document.querySelector('h2:target').textContent === 'signal'",
                  "the link leads to the cause")
    page.open(machine.address)
    page.wait_for(f"{state_of('killed')} === 'failed'", "the page is there again")


# The first run's colour, and that of computing in the split of a step's time (charts.js).
LIGHT = {"run": [0, 114, 178], "split": [0, 158, 115]}
DARK = {"run": [86, 180, 233], "split": [0, 158, 115]}
# Figure by metric, and which colour its line or area has.
CHARTS = {"train/loss": "run", "val/loss": "run", "train/learning_rate": "run", "perf/samples_per_second": "run",
          "perf/memory_gib": "run", "split": "split"}


def drawn_pixels(metric, color):
    """How many pixels of a chart are near a colour; a part of them is blended with the background."""
    return f"""(() => {{
      let count = 0;
      for (const canvas of document.querySelectorAll('figure[data-metric="{metric}"] canvas')) {{
        const data = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
        for (let i = 0; i < data.length; i += 4) {{
          const [r, g, b] = {color};
          if (data[i + 3] > 30 && Math.abs(data[i] - r) + Math.abs(data[i + 1] - g) + Math.abs(data[i + 2] - b) < 30) ++count;
        }}
      }}
      return count;
    }})()"""


def check_charts(page, colors):
    """Every kind of chart is drawn, in the colours of the theme, and says what it shows."""
    for metric, kind in CHARTS.items():
        page.wait_for(f"{drawn_pixels(metric, colors[kind])} > 15", f"{metric} is drawn in {colors[kind]}")
        label = page.run(f"document.querySelector('figure[data-metric=\"{metric}\"] .plot').getAttribute('aria-label')")
        expected = ["compute", "exchange", "data"] if metric == "split" else ["live"]
        assert all(word in label for word in expected), label


class Relay:
    """A port that leads to another one, as `ssh -L` makes it."""

    def __init__(self, port):
        self.target = port
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                near = self.listener.accept()[0]
                far = socket.create_connection(("127.0.0.1", self.target))
            except OSError:
                return
            for source, target in ((near, far), (far, near)):
                threading.Thread(target=self.pass_on, args=(source, target), daemon=True).start()

    @staticmethod
    def pass_on(source, target):
        try:
            while data := source.recv(65536):
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def close(self):
        self.listener.close()


def check_relay(machine, page):
    """Live through a forwarded port."""
    relay = Relay(int(re.search(r":(\d+)/", machine.address).group(1)))
    page.open(f"http://localhost:{relay.port}/")
    page.wait_for(f"location.port === '{relay.port}' && {state_of('live')} === 'running'", "the run is shown through the relay")
    page.wait_for("!document.getElementById('live').classList.contains('lost') && "
                  "document.getElementById('live').textContent.includes('live')", "events come through the relay")
    before = page.run(last_step("live"))
    page.wait_for(f"{last_step('live')} > {before}", "its step grows through the relay")
    page.open(machine.address)
    page.wait_for(f"location.port !== '{relay.port}' && {state_of('live')} === 'running'", "the board's own address again")
    page.run(f"{row('live')}.click()")
    relay.close()
    return relay.port


def check(machine):
    page = machine.page = Page()
    page.open(machine.address)
    page.wait_for("!document.getElementById('empty').hidden", "an empty folder says so")

    live = machine.train("live", "--n_steps", ENDLESS, "--sample_every", "100", "--lr", "0.001", "--noise", "0.6",
                         "--profile", "3", "--val_every", "50")
    page.wait_for(f"{state_of('live')} === 'running'", "the live run appears")
    page.wait_for("document.querySelectorAll('figure[data-metric=\"train/loss\"] canvas').length > 0", "its loss is drawn")
    page.wait_for("document.querySelectorAll('.rank .timebar').length === 2", "both ranks are shown with their times")
    before, drawn = page.run(last_step("live")), page.run(POINTS)
    page.wait_for(f"{last_step('live')} > {before}", "its step grows")
    page.wait_for(f"{POINTS} !== {drawn!r}", "its curve grows")

    second = machine.train("second", "--n_steps", "60", "--lr", "0.01")
    page.wait_for(f"{state_of('second')} === 'finished'", "a second run appears and ends")
    assert second.wait(timeout=seconds_left()) == 0
    page.run(f"{row('second', ' input')}.click()")
    page.wait_for(f"{POINTS}.includes('live, second')", "both runs are in one chart")
    page.run("document.querySelector('[data-tab=settings]').click()")
    page.wait_for("document.querySelector('tr.differs') && document.querySelector('tr.differs').textContent.includes('lr') || "
                  "[...document.querySelectorAll('tr.differs')].some((r) => r.textContent.startsWith('lr'))",
                  "settings that differ are marked")
    page.press("2")
    page.wait_for("document.querySelector('.samples img') && document.querySelector('.samples img').naturalWidth > 0",
                  "samples are shown")
    page.press("3")
    page.wait_for("document.querySelector('.log') && document.querySelector('.log').textContent.includes('step ')", "the log is shown")
    page.press("5")
    page.wait_for("document.querySelector('#tab table') && document.querySelector('#tab').textContent.includes('.pt')",
                  "checkpoints are shown")
    page.press("6")
    page.wait_for("[...document.querySelectorAll('#tab tr')].some((r) => r.textContent.startsWith('products')) && "
                  "document.querySelector('#tab a[href^=\"/api/trace\"]')", "the profile is shown")
    ranks = page.run("fetch('/api/trace?run=live').then((r) => r.json()).then((t) => "
                     "[...new Set(t.traceEvents.map((e) => e.pid))].sort())")
    assert ranks == [0, 1], ranks
    machine.shot("profile")
    page.press("1")
    page.wait_for("document.querySelectorAll('.rank').length === 2", "ranks are shown again")
    machine.shot("live")
    check_charts(page, LIGHT)
    page.set_dark(True)
    page.wait_for("getComputedStyle(document.body).backgroundColor === 'rgb(20, 23, 26)'", "the page is dark")
    check_charts(page, DARK)
    machine.shot("dark")
    page.set_dark(False)
    page.wait_for("getComputedStyle(document.body).backgroundColor === 'rgb(245, 246, 248)'", "the page is light again")

    relay = check_relay(machine, page)
    stop_and_continue_a_rank(machine, page)
    keys(page)
    live.send_signal(signal.SIGINT)
    page.wait_for(f"{state_of('live')} === 'stopped'", "the run ends")
    page.wait_for("document.getElementById('reason').textContent.includes('stopped by Ctrl-C')", "it says why")
    machine.shot("ended")
    kill_a_rank(machine, page)
    machine.board.terminate()
    assert machine.board.wait(timeout=seconds_left()) == 0, "the board ends with 0"
    page.wait_for("document.getElementById('live').classList.contains('lost')", "the page says that the board is gone")
    check_page_itself(page, [machine.address, f"http://localhost:{relay}/"])


def keys(page):
    """Rows are reached and chosen without a mouse."""
    page.run(f"{row('live')}.focus()")
    page.press("ArrowDown")
    page.wait_for("document.activeElement.dataset.run === 'second'", "the arrow goes to the next run")
    before = page.run(f"{row('second', ' input')}.checked")
    page.press(" ")
    page.wait_for(f"{row('second', ' input')}.checked !== {str(before).lower()}", "space chooses it")
    page.press(" ")
    page.press("?")
    page.wait_for("document.getElementById('keys').open", "? shows the keys")
    page.run("document.getElementById('keys').close()")
    page.press("/")
    page.wait_for("document.activeElement.id === 'filter'", "/ goes to the filter")
    page.run("document.activeElement.blur()")


def check_page_itself(page, addresses):
    """Nothing came from elsewhere, and nothing failed on the page while the board was there."""
    bases = tuple(address.split("?")[0].rstrip("/") for address in addresses)
    foreign = [one for one in page.requests if not one.startswith((*bases, "data:", "about:"))]
    assert not foreign, foreign
    errors = [one for one in page.errors if "ERR_CONNECTION" not in one and "ERR_INCOMPLETE" not in one]
    assert not errors, errors


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("lockstep")
    parser.add_argument("--shots")
    options = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="lockstep-board-")
    machine = None
    try:
        machine = Machine(options.lockstep, folder, options.shots)
        check(machine)
        print("ok")
    finally:
        if machine:
            machine.close()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
