"""What the board costs, and how fast it answers.

Reading: 200 runs with 100,000 recorded losses each (and a validation every 1000), files in the page cache.
  list_s       `lockstep runs FOLDER --json`
  first_list_s from the start of `lockstep board` until its list has all runs with their last values
  page_data_s  a page that opens: the list of 200 runs and the curves of 14 of them, which were not read before;
               target 1
  again_s      the same once more: curves are kept
Page: the same 200 runs in a headless Chromium, which shares the cores with the board.
  page_rows_s    from opening the page until all 200 rows are there
  page_curves_s  from the choice of 14 runs, not read before, until their 14 lines are drawn
  frame_ms, frame_p95_ms, frame_most_ms
                 time between frames while the list is scrolled and filtered, with the 14 curves in the charts; 16.7 is
                 every frame of a screen
Cost: a training of two ranks runs, and every other period a board serves one page that follows it.
  board_core_percent  CPU time of the board in percent of one core; target 0.5 % of what the training takes
  step_ratio          time per step with the board over that without, median of neighbouring periods
"""
import json
import math
import os
import random
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
import urllib.request
from pathlib import Path

import peers

sys.path.insert(0, str(peers.ROOT / "tests" / "board"))
from devtools import Page  # noqa: E402

RUNS, POINTS, SHOWN = 200, 100_000, 14
PERIODS, PERIOD_S = 16, 6
LOCKSTEP = str(peers.BIN / "lockstep")


def metrics_text(seed):
    draw = random.Random(seed)
    lines = []
    for step in range(1, POINTS + 1):
        loss = 3 * math.exp(-step / 20_000) + 0.1 * draw.random()
        lines.append(f'{{"step":{step},"train/loss":{loss!r}}}\n')
        if step % 1000 == 0:
            lines.append(f'{{"step":{step},"val/loss":{loss * 1.1!r}}}\n')
    return "".join(lines)


def make_runs(folder):
    texts = [metrics_text(seed) for seed in range(4)]
    for i in range(RUNS):
        run = folder / f"run{i:03}"
        run.mkdir()
        (run / "metrics.jsonl").write_text(texts[i % len(texts)])
        (run / "run.json").write_text(json.dumps({
            "recipe": "made", "started": 1_700_000_000 + i, "best_metric": "val/loss", "better": "lower",
            "end": {"time": 1_700_100_000, "exit_code": 0, "last_line": "done"}}))


class Board:
    def __init__(self, folder):
        self.process = subprocess.Popen([LOCKSTEP, "board", str(folder), "--port", "0"], stdout=subprocess.PIPE, text=True)
        self.address = re.search(r"http://\S+", self.process.stdout.readline()).group(0).rstrip("/")

    def get(self, path, **values):
        with urllib.request.urlopen(f"{self.address}{path}?{urllib.parse.urlencode(values)}") as answer:
            return json.load(answer)

    def curves(self, run):
        while True:
            answer = self.get("/api/curves", run=run)
            if "metrics" in answer:
                return answer["metrics"]
            time.sleep(0.02)

    def page_data(self):
        runs = self.get("/api/runs")["list"]["runs"]
        for run in runs[:SHOWN]:
            # All are asked for before any is waited for, as the page does.
            self.get("/api/curves", run=run["id"])
        for run in runs[:SHOWN]:
            assert self.curves(run["id"])["train/loss"]["n"] == POINTS
        return runs

    def cpu_seconds(self):
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def close(self):
        self.process.terminate()
        self.process.wait()


def timed(work):
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def measure_reading(folder):
    list_s = statistics.median(
        timed(lambda: subprocess.run([LOCKSTEP, "runs", str(folder), "--json"], check=True, stdout=subprocess.DEVNULL))
        for _ in range(3))
    begin = time.perf_counter()
    board = Board(folder)
    try:
        while sum(run["step"] == POINTS for run in board.get("/api/runs")["list"]["runs"]) < RUNS:
            time.sleep(0.02)
        first_list_s = time.perf_counter() - begin
        page_data_s = timed(board.page_data)
        again_s = statistics.median(timed(board.page_data) for _ in range(3))
    finally:
        board.close()
    return dict(list_s=round(list_s, 3), first_list_s=round(first_list_s, 3), page_data_s=round(page_data_s, 3),
                again_s=round(again_s, 3))


# Scrolls and filters the list for three seconds; the times between frames.
FRAMES = """new Promise((done) => {
  const list = document.querySelector('#runs .scroll'), filter = document.getElementById('filter');
  const times = [];
  let last = performance.now();
  const begin = last;
  const step = (now) => {
    times.push(now - last);
    last = now;
    list.scrollTop = (list.scrollTop + 60) % Math.max(1, list.scrollHeight - list.clientHeight);
    if (times.length % 20 === 0) {
      filter.value = times.length % 40 ? 'run1' : '';
      filter.dispatchEvent(new Event('input'));
    }
    if (now - begin < 3000) requestAnimationFrame(step);
    else done(times.slice(1));
  };
  requestAnimationFrame(step);
})"""
LABEL = "document.querySelector('figure[data-metric=\"train/loss\"] .plot').getAttribute('aria-label')"


def measure_page(folder):
    board = Board(folder)
    page = Page()
    try:
        while sum(run["step"] == POINTS for run in board.get("/api/runs")["list"]["runs"]) < RUNS:
            time.sleep(0.02)
        begin = time.perf_counter()
        page.open(board.address + "/")
        page.wait_for(f"document.querySelectorAll('#rows tr').length === {RUNS}")
        rows_s = time.perf_counter() - begin
        begin = time.perf_counter()
        page.run(f"[...document.querySelectorAll('#rows input:not(:checked)')].slice(0, {SHOWN - 1}).forEach((box) => box.click())")
        page.wait_for(f"{LABEL}.split(';')[0].split(', ').length === {SHOWN} && !{LABEL}.includes('undefined')")
        curves_s = time.perf_counter() - begin
        frames = sorted(page.run(FRAMES))
    finally:
        page.close()
        board.close()
    return dict(page_rows_s=round(rows_s, 3), page_curves_s=round(curves_s, 3),
                frame_ms=round(statistics.median(frames), 1), frame_p95_ms=round(frames[int(0.95 * len(frames))], 1),
                frame_most_ms=round(frames[-1], 1))


def follow(board, stop):
    """What an open page asks for: events, and the curves of the run after each that changes it.

    The browser is on another machine, as a rule: here answers are read and thrown away.
    """
    with urllib.request.urlopen(f"{board.address}/api/events?focus=live", timeout=30) as events:
        while not stop.is_set():
            line = events.readline()
            if line.startswith(b"data:") and b'"runs":[{' in line:
                for path in ("/api/curves?run=live&points=750", "/api/run?run=live"):
                    with urllib.request.urlopen(board.address + path) as answer:
                        answer.read()


def steps_done(folder):
    answer = subprocess.run([LOCKSTEP, "runs", "show", str(folder / "live"), "--json"], capture_output=True, check=True)
    return json.loads(answer.stdout)["ranks"][0]["step"]


def measure_cost(folder):
    training = subprocess.Popen(
        [LOCKSTEP, "train", "tiny", "--nproc", "2", "--device", "cpu", "--n_steps", "10000000", "--log_every", "20",
         "--val_every", "1000000", "--save_every", "1000000", "--save_dir", str(folder / "live")],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=dict(os.environ, OMP_NUM_THREADS="1"))
    step_seconds, shares = {True: [], False: []}, []
    try:
        time.sleep(5)
        for period in range(PERIODS):
            with_board = period % 4 in (1, 2)  # Both orders: the load of the machine drifts.
            stop = threading.Event()
            if with_board:
                board = Board(folder)
                page = threading.Thread(target=follow, args=(board, stop), daemon=True)
                page.start()
                time.sleep(1)
                cpu = board.cpu_seconds()
            first, begin = steps_done(folder), time.perf_counter()
            time.sleep(PERIOD_S)
            last, seconds = steps_done(folder), time.perf_counter() - begin
            step_seconds[with_board].append(seconds / (last - first))
            if with_board:
                shares.append(100 * (board.cpu_seconds() - cpu) / seconds)
                stop.set()
                page.join(30)
                board.close()
    finally:
        training.send_signal(signal.SIGINT)
        training.wait()
    ratios = [a / b for a, b in zip(step_seconds[True], step_seconds[False])]
    return dict(board_core_percent=round(statistics.median(shares), 2),
                board_percent_of_training=round(statistics.median(shares) / min(2, os.cpu_count()), 2),
                step_ms=round(1e3 * statistics.median(step_seconds[False]), 2),
                step_ratio=round(statistics.median(ratios), 3), step_ratios=[round(one, 3) for one in ratios])


def main():
    folder = Path(tempfile.mkdtemp(prefix="lockstep-bench-board-"))
    try:
        (folder / "many").mkdir()
        make_runs(folder / "many")
        reading = measure_reading(folder / "many") | measure_page(folder / "many")
        shutil.rmtree(folder / "many")
        cost = measure_cost(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    peers.report("board", **reading, target_page_data_s=1, **cost, target_percent_of_training=0.5)


main()
