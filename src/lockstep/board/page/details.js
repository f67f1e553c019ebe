// The details of one run: ranks, samples, log, settings, checkpoints.
import {age, badge, bytes, element, fetched, number, seconds, when, whole} from './format.js';

const TABS = ['ranks', 'samples', 'log', 'settings', 'checkpoints', 'profile'];
const PARTS = ['compute', 'exchange', 'data', 'other'];
const ATTENTION = new Set(['stuck', 'stopped', 'gone', 'slow']);

function table(heads, rows, numbers = []) {
  const made = element('table');
  const head = element('tr');
  heads.forEach((text, i) => {
    const cell = element('th', {text, class: numbers.includes(i) ? 'number' : ''});
    cell.scope = 'col';
    head.append(cell);
  });
  made.append(element('thead'), element('tbody'));
  made.tHead.append(head);
  for (const cells of rows) {
    const row = element('tr');
    cells.forEach((content, i) => {
      const cell = element('td', {class: numbers.includes(i) ? 'number' : ''});
      cell.append(content);
      row.append(cell);
    });
    made.tBodies[0].append(row);
  }
  return made;
}

function timeBar(ms, most) {
  const bar = element('div', {class: 'timebar'});
  for (const part of PARTS) {
    const piece = element('span', {class: part, title: `${part} ${number(ms[part], 3)} ms per step`});
    piece.style.width = `${(100 * ms[part]) / most}%`;
    bar.append(piece);
  }
  return bar;
}

export class Details {
  constructor(place, tabs) {
    this.place = place;
    this.tabs = tabs;
    this.tab = 'ranks';
    this.isTabChosen = false;  // By the reader; until then the state decides.
    this.run = null;
    this.data = null;  // Answer of /api/run.
    this.ranks = [];
    this.others = [];  // Other chosen runs, whose settings are compared.
    for (const button of tabs.querySelectorAll('[role=tab]')) {
      button.addEventListener('click', () => this.openChosen(button.dataset.tab));
    }
    tabs.addEventListener('keydown', (event) => {
      const step = {ArrowRight: 1, ArrowLeft: -1}[event.key];
      if (!step) return;
      event.preventDefault();
      const next = TABS[(TABS.indexOf(this.tab) + step + TABS.length) % TABS.length];
      this.openChosen(next);
      tabs.querySelector(`[data-tab=${next}]`).focus();
    });
    this.open('ranks');
  }

  open(tab) {
    this.tab = tab;
    for (const button of this.tabs.querySelectorAll('[role=tab]')) {
      const isOpen = button.dataset.tab === tab;
      button.setAttribute('aria-selected', isOpen);
      button.tabIndex = isOpen ? 0 : -1;
    }
    this.place.dataset.tab = tab;
    this.show();
    this.refresh();
  }

  openNumber(place) {
    if (TABS[place]) this.openChosen(TABS[place]);
  }

  openChosen(tab) {
    this.isTabChosen = true;
    this.open(tab);
  }

  choose(run, others) {
    const isOther = !this.run || !run || this.run.id !== run.id;
    this.run = run;
    this.others = others;
    if (isOther) {
      this.data = null;
      this.ranks = [];
      this.place.replaceChildren();
      const usual = {running: 'ranks', finished: 'samples'}[run ? run.state : ''] || 'log';
      this.open(this.isTabChosen ? this.tab : usual);
    }
  }

  setRanks(ranks) {
    this.ranks = ranks;
    if (this.tab === 'ranks') this.show();
  }

  async refresh() {
    if (!this.run) return;
    const id = this.run.id;
    try {
      if (this.tab === 'log') {
        const text = await (await fetched('/api/log', {run: id})).text();
        if (this.run && this.run.id === id && this.tab === 'log') this.showLog(text);
        return;
      }
      const data = await (await fetched('/api/run', {run: id})).json();
      if (!this.run || this.run.id !== id) return;
      this.data = data;
      this.ranks = data.ranks;
      if (this.tab === 'settings') await this.compareSettings();
      this.show();
    } catch {
      // The next event asks again.
    }
  }

  async compareSettings() {
    this.compared = [];
    for (const id of this.others.slice(0, 3)) {
      const data = await (await fetched('/api/run', {run: id})).json();
      this.compared.push({id, settings: new Map(data.details.settings)});
    }
  }

  show() {
    if (!this.run || !this.data) return;
    const contents = {
      ranks: () => this.rankTable(), samples: () => this.samples(), settings: () => this.settings(),
      checkpoints: () => this.checkpoints(), profile: () => this.profile()}[this.tab];
    if (contents) this.place.replaceChildren(contents());
  }

  rankTable() {
    if (this.ranks.length === 0) {
      return element('p', {class: 'quiet', text: this.run.state === 'running'
        ? 'What ranks do is shown for runs of this user that lockstep started on this machine.'
        : 'The run is over: there are no ranks.'});
    }
    const most = Math.max(...this.ranks.map((rank) => (rank.ms ? PARTS.reduce((sum, part) => sum + rank.ms[part], 0) : 0)), 1e-9);
    const box = element('div');
    for (const rank of this.ranks) {
      const row = element('div', {class: `rank ${ATTENTION.has(rank.health) ? 'attention' : ''} ${rank.health}`});
      row.dataset.rank = rank.rank;
      const head = element('div', {class: 'rankhead'});
      const memory = rank.device_bytes > 0 ? `${bytes(rank.device_bytes)} GPU` : bytes(rank.host_bytes);
      head.append(element('strong', {text: `rank ${rank.rank}`}), badge(rank.health),
        element('span', {text: `step ${whole(rank.step)}`}),
        element('span', {class: 'spring'}), element('span', {text: memory, title: 'memory'}));
      row.append(head);
      if (rank.note) row.append(element('p', {class: 'note', text: rank.note}));
      if (rank.ms) {
        row.append(timeBar(rank.ms, most), element('div', {class: 'quiet', text:
          `${PARTS.map((part) => `${part} ${number(rank.ms[part], 2)}`).join('  ·  ')} ms per step`}));
      }
      const doing = rank.in_collective ? `in it for ${seconds(rank.collective_seconds)}`
        : `${seconds(rank.collective_seconds)} ago`;
      const last = rank.collective_number === 0 ? 'no collective yet'
        : `last collective: ${rank.collective} #${whole(rank.collective_number)}, ${bytes(rank.collective_bytes)}, ${doing}`;
      row.append(element('div', {class: 'quiet', text: last}),
        element('div', {class: 'quiet', text: `${rank.phase}  ·  pid ${rank.pid}`}));
      box.append(row);
    }
    const legend = element('div', {class: 'key quiet'});
    for (const part of PARTS) {
      legend.append(element('span', {class: `swatch ${part}`}), element('span', {text: part}));
    }
    box.append(legend);
    return box;
  }

  samples() {
    const samples = this.data.details.samples;
    if (samples.length === 0) {
      return element('p', {class: 'quiet', text: 'No samples yet; --sample_every N draws some every N steps.'});
    }
    const box = element('div', {class: 'samples'});
    for (const sample of samples.slice(0, 40)) {
      const address = `/api/sample?${new URLSearchParams({run: this.run.id, path: sample.path, time: sample.time})}`;
      const figure = element('figure');
      if (sample.path.endsWith('.txt')) {
        const text = element('pre');
        fetch(address).then((answer) => answer.text()).then((words) => { text.textContent = words; });
        figure.append(text);
      } else {
        const link = element('a');
        link.href = address;
        link.target = '_blank';
        const image = element('img');
        image.src = address;
        image.alt = `samples ${sample.path}`;
        image.loading = 'lazy';
        link.append(image);
        figure.append(link);
      }
      figure.append(element('figcaption', {class: 'quiet', title: sample.path,
        text: sample.step >= 0 ? `step ${whole(sample.step)}${/_ema/.test(sample.path) ? ', average' : ''}` : sample.path}));
      box.append(figure);
    }
    return box;
  }

  showLog(text) {
    const scroller = this.place;
    const wasAtEnd = scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight < 40 || !scroller.querySelector('.log');
    const log = element('pre', {class: 'log'});
    for (const line of text.split('\n')) {
      const kind = / - ERROR - /.test(line) ? 'error' : / - WARNING - /.test(line) ? 'warning' : '';
      log.append(element('span', {class: kind, text: `${line}\n`}));
    }
    scroller.replaceChildren(text ? log : element('p', {class: 'quiet', text: 'The run has no log yet.'}));
    if (wasAtEnd) scroller.scrollTop = scroller.scrollHeight;
  }

  settings() {
    const {settings, settings_problem: problem} = this.data.details;
    if (problem) return element('p', {class: 'quiet', text: problem});
    const compared = this.compared || [];
    const box = element('div');
    const differs = ([name, value]) => name !== 'save_dir'
      && compared.some((other) => other.settings.get(name) !== value);
    const rows = [...settings];
    if (compared.length > 0) rows.sort((a, b) => differs(b) - differs(a));
    const made = table(['Setting', this.run.id, ...compared.map((other) => other.id)],
      rows.map(([name, value]) => [name, value, ...compared.map((other) => other.settings.get(name) ?? '–')]));
    rows.forEach((row, i) => made.tBodies[0].rows[i].classList.toggle('differs', differs(row)));
    if (compared.length > 0) {
      box.append(element('p', {class: 'quiet', text: `${rows.filter(differs).length} settings differ between the chosen runs.`}));
    }
    box.append(made);
    return box;
  }

  profile() {
    const profile = this.data.details.profile;
    if (!profile || !Array.isArray(profile.ranks) || profile.ranks.length === 0) {
      return element('p', {class: 'quiet', text: 'No profile; lockstep train RECIPE --profile N records N steps.'});
    }
    const {ranks} = profile;
    const ms = (rank, kind) => (rank.ns[kind] || 0) / 1e6 / Math.max(1, rank.steps);
    const box = element('div');
    box.append(element('p', {class: 'quiet', text: `${whole(ranks[0].steps)} steps on ${profile.device}: ms per step by kind. `
      + `A step took ${number(ranks[0].step_ms)} ms while it was recorded`
      + (ranks[0].before_ms > 0 ? ` and ${number(ranks[0].before_ms)} ms before.` : '.')}));
    box.append(table(['Kind', ...ranks.map((rank) => `rank ${rank.rank}`), '%'], Object.keys(ranks[0].ns).map((kind) => {
      const sum = ranks.reduce((all, rank) => all + ms(rank, kind), 0);
      const whole_ms = ranks.reduce((all, rank) => all + rank.step_ms, 0);
      return [kind, ...ranks.map((rank) => number(ms(rank, kind), 3)), (100 * sum / Math.max(whole_ms, 1e-9)).toFixed(1)];
    }), ranks.map((_, i) => i + 1).concat(ranks.length + 1)));
    const link = element('a', {text: 'trace.json of all ranks'});
    link.href = `/api/trace?${new URLSearchParams({run: this.run.id})}`;
    const line = element('p', {text: 'Open it at ui.perfetto.dev or chrome://tracing: '});
    line.append(link);
    box.append(line);
    return box;
  }

  checkpoints() {
    const files = this.data.details.checkpoints;
    if (files.length === 0) return element('p', {class: 'quiet', text: 'No checkpoints yet.'});
    const now = Date.now() / 1000;
    return table(['File', 'Step', 'Size', 'Written'], files.map((file) => [
      file.path, file.step >= 0 ? whole(file.step) : '–', bytes(file.bytes),
      element('span', {text: age(file.time, now), title: when(file.time)})]), [1, 2, 3]);
  }
}
