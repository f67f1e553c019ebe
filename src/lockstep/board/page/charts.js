// The charts: one card per metric, one line per chosen run.
import {element, fetched, number, whole} from './format.js';

// Okabe and Ito's colours, which the colour-blind tell apart; the second seven runs are dashed.
const LIGHT = ['#0072b2', '#d55e00', '#009e73', '#cc79a7', '#e69f00', '#56b4e9', '#000000'];
const DARK = ['#56b4e9', '#ff8a3d', '#2bc79a', '#e29fc4', '#e69f00', '#5c8dff', '#f0f0f0'];
export const MOST_RUNS = 2 * LIGHT.length;

const TITLES = {
  'train/loss': 'Training loss', 'val/loss': 'Validation loss', 'train/learning_rate': 'Learning rate',
  'perf/samples_per_second': 'Samples per second', 'perf/peak_memory_gib': 'Peak memory (GiB)', 'perf/memory_gib': 'Resident memory (GiB)',
  'train/grad_norm': 'Gradient norm', 'perf/tflops': 'TFLOP/s', 'train/loss_scale': 'Loss scale'};
const FIRST = ['train/loss', 'val/loss', 'perf/samples_per_second', 'train/learning_rate',
  'perf/peak_memory_gib', 'perf/memory_gib', 'train/grad_norm'];
const PARTS = ['perf/compute_ms', 'perf/exchange_ms', 'perf/data_ms', 'perf/other_ms'];
// As the bars of ranks have them (board.css).
const PART_COLORS = {compute: '#009e73', exchange: '#d55e00', data: '#e69f00', other: '#56b4e9'};
const LEFT_OUT = new Set(['train/epoch', 'train/epoch_loss', ...PARTS]);
const SPLIT = 'split';  // The chart of PARTS, of one run.

export function isDark() {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
}

export function colorOf(slot) {
  return (isDark() ? DARK : LIGHT)[slot % LIGHT.length];
}

// Few validations and a schedule need no smoothing.
const IS_NOISY = /^(train\/(?!learning_rate)|perf\/)/;

// As short as an axis needs: 25k, 3e-4.
function compact(value) {
  const size = Math.abs(value);
  if (size >= 1e6) return `${Number((value / 1e6).toPrecision(3))}M`;
  if (size >= 1e4) return `${Number((value / 1e3).toPrecision(3))}k`;
  if (size !== 0 && size < 1e-2) return Number(value.toPrecision(3)).toExponential();
  return number(value, 4);
}

function smoothed(values, weight) {
  let mean = 0;
  let sum = 0;
  return values.map((value) => {
    if (value === null) return null;
    mean = weight * mean + (1 - weight) * value;
    sum = weight * sum + (1 - weight);
    return mean / sum;
  });
}

// Rows [x, y of line 1, y of line 2, ...] over all steps that any line has. Null: no point here;
// NaN: a gap.
function rowsOf(lines) {
  const rows = new Map();
  lines.forEach((line, column) => {
    line.x.forEach((x, i) => {
      let row = rows.get(x);
      if (!row) rows.set(x, row = [x, ...lines.map(() => null)]);
      row[column + 1] = line.y[i] === null ? NaN : line.y[i];
    });
  });
  return [...rows.values()].sort((a, b) => a[0] - b[0]);
}

export class Charts {
  constructor(place) {
    this.place = place;
    this.runs = new Map();  // By id: {slot, metrics, busy, again}.
    this.cards = new Map();  // By metric: {card, legend, chart, key}.
    this.smooth = 0;
    this.log = false;
    this.focus = null;
  }

  // Runs by slot; curves that are new are read.
  choose(slots, focus) {
    this.focus = focus;
    for (const id of [...this.runs.keys()]) {
      if (!slots.has(id) && id !== focus) this.runs.delete(id);
    }
    for (const id of new Set([...slots.keys(), focus])) {
      if (id === null) continue;
      const slot = slots.has(id) ? slots.get(id) : -1;
      if (this.runs.has(id)) {
        this.runs.get(id).slot = slot;
      } else {
        this.runs.set(id, {slot, metrics: {}, busy: false, again: false});
        this.refresh(id);
      }
    }
    this.draw();
  }

  // Reads the curves of a run again; requests do not overtake each other.
  async refresh(id) {
    const run = this.runs.get(id);
    if (!run) return;
    run.again = true;
    if (run.busy) return;
    run.busy = true;
    const points = Math.max(150, Math.round(3000 / Math.max(4, this.runs.size)));
    while (run.again && this.runs.get(id) === run) {
      run.again = false;
      try {
        const answer = await (await fetched('/api/curves', {run: id, points})).json();
        if (answer.reading) {
          run.again = true;
          await new Promise((done) => setTimeout(done, 150));
        } else {
          run.metrics = answer.metrics;
          this.draw();
        }
      } catch {
        break;  // The next event asks again.
      }
    }
    run.busy = false;
  }

  metricNames() {
    const names = new Set();
    for (const run of this.runs.values()) {
      if (run.slot < 0) continue;
      Object.keys(run.metrics).forEach((name) => names.add(name));
    }
    const rank = (name) => {
      const place = FIRST.indexOf(name);
      if (name.startsWith('val/') && name !== 'val/loss') return 1.5;
      return place >= 0 ? place : FIRST.length + (name.startsWith('train/') ? 0 : 1);
    };
    const shown = [...names].filter((name) => !LEFT_OUT.has(name));
    shown.sort((a, b) => rank(a) - rank(b) || a.localeCompare(b));
    const focused = this.runs.get(this.focus);
    if (focused && PARTS.some((part) => focused.metrics[part])) {
      shown.splice(Math.min(4, shown.length), 0, SPLIT);
    }
    return shown;
  }

  linesOf(name) {
    if (name === SPLIT) {
      const metrics = this.runs.get(this.focus).metrics;
      return PARTS.filter((part) => metrics[part]).map((part) => ({
        label: part.slice(5, -3), x: metrics[part].x, y: smoothed(metrics[part].y, this.smooth), slot: 0,
        color: PART_COLORS[part.slice(5, -3)]}));
    }
    const lines = [];
    const runs = [...this.runs].filter(([, run]) => run.slot >= 0 && run.metrics[name]);
    runs.sort((a, b) => a[1].slot - b[1].slot);
    for (const [id, run] of runs) {
      const {x, y} = run.metrics[name];
      if (this.smooth > 0 && IS_NOISY.test(name)) {
        lines.push({label: `${id} (raw)`, x, y, slot: run.slot, isFaint: true});
        lines.push({label: id, x, y: smoothed(y, this.smooth), slot: run.slot});
      } else {
        lines.push({label: id, x, y, slot: run.slot});
      }
    }
    return lines;
  }

  draw() {
    if (this.pending) return;
    this.pending = requestAnimationFrame(() => {
      this.pending = null;
      this.drawNow();
    });
  }

  drawNow() {
    const names = this.metricNames();
    for (const [name, card] of [...this.cards]) {
      if (names.includes(name)) continue;
      card.chart.destroy();
      card.card.remove();
      this.cards.delete(name);
    }
    names.forEach((name, i) => {
      const lines = this.linesOf(name);
      const known = this.cards.get(name) || this.addCard(name);
      if (this.place.children[i] !== known.card) {
        this.place.insertBefore(known.card, this.place.children[i] || null);
      }
      this.drawCard(name, known, lines);
    });
    this.place.classList.toggle('empty', names.length === 0);
  }

  addCard(name) {
    const card = element('figure', {class: 'card'});
    card.dataset.metric = name;
    const head = element('figcaption');
    const title = name === SPLIT ? 'Time per step on rank 0 (ms)'
      : TITLES[name] || name.replace(/^val\//, 'Validation: ').replace(/^train\//, 'Training: ');
    head.append(element('strong', {text: title, title: name}));
    const legend = element('span', {class: 'legend'});
    head.append(legend);
    const plot = element('div', {class: 'plot'});
    card.append(head, plot);
    const made = {card, legend, plot, chart: null, key: ''};
    this.cards.set(name, made);
    return made;
  }

  drawCard(name, card, lines) {
    const file = rowsOf(lines);
    const labels = ['step', ...lines.map((line) => line.label)];
    const isLog = this.log && /loss|norm|learning_rate/.test(name);
    // What cannot be changed in a chart that is there.
    const key = JSON.stringify([labels, lines.map((line) => [line.slot, line.isFaint]), isLog, isDark()]);
    this.showLast(card, lines, name);
    if (card.chart && card.key === key) {
      card.chart.updateOptions({file});
      return;
    }
    if (card.chart) card.chart.destroy();
    card.key = key;
    card.chart = new Dygraph(card.plot, file, this.optionsOf(name, card, lines, labels, isLog));
  }

  optionsOf(name, card, lines, labels, isLog) {
    const isSplit = name === SPLIT;
    const style = getComputedStyle(document.documentElement);
    const series = {};
    for (const line of lines) {
      series[line.label] = {
        color: line.color || colorOf(line.slot), strokeWidth: line.isFaint ? 0.6 : 1.8,
        strokePattern: line.slot >= LIGHT.length ? [6, 3] : null,
        drawPoints: line.x.length < 2, pointSize: 3};
    }
    return {
      labels, series, legend: 'never', connectSeparatedPoints: true, logscale: isLog,
      stackedGraph: isSplit, fillGraph: isSplit, includeZero: isSplit || (!isLog && name.startsWith('perf/')),
      xRangePad: 4, yRangePad: isSplit ? 0 : 6, highlightCircleSize: 3, animatedZooms: false,
      gridLineColor: style.getPropertyValue('--grid').trim(), gridLineWidth: 1,
      axisLineColor: style.getPropertyValue('--grid').trim(), axisLabelFontSize: 11,
      axes: {x: {axisLabelFormatter: (value) => compact(value), pixelsPerLabel: 60},
        y: {axisLabelFormatter: compact, axisLabelWidth: 52, pixelsPerLabel: 26}},
      highlightCallback: (event, x, points) => this.showAt(card, lines, x, points),
      unhighlightCallback: () => this.showLast(card, this.linesOf(name), name),
    };
  }

  showValues(card, items) {
    card.legend.replaceChildren(...items.map(([line, text]) => {
      const item = element('span', {class: 'value', text});
      item.style.color = line.color || colorOf(line.slot);
      return item;
    }));
  }

  showAt(card, lines, x, points) {
    const items = points.filter((point) => !Number.isNaN(point.yval) && point.yval !== null)
      .map((point) => [lines.find((line) => line.label === point.name), point.yval])
      .filter(([line]) => line && !line.isFaint)
      .map(([line, value]) => [line, `${line.label} ${number(value)}`]);
    this.showValues(card, items);
    card.legend.prepend(element('span', {class: 'value quiet', text: `step ${whole(x)}`}));
  }

  showLast(card, lines, name) {
    const items = lines.filter((line) => !line.isFaint).map((line) => {
      const value = line.y[line.y.length - 1];
      return [line, name === SPLIT ? `${line.label} ${number(value, 2)}` : number(value)];
    });
    this.showValues(card, items);
    card.plot.setAttribute('role', 'img');
    card.plot.setAttribute('aria-label', `${name}: ${lines.map((line) => line.label).join(', ')}; last values `
      + items.map(([, text]) => text).join(', '));
  }

  resize() {
    for (const card of this.cards.values()) card.chart.resize();
  }
}
