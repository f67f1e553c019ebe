// The board: list of runs, choice of runs, events, keys.
import {Charts, MOST_RUNS, colorOf} from './charts.js';
import {Details} from './details.js';
import {age, badge, element, number, when, whole} from './format.js';

const $ = (id) => document.getElementById(id);

const runs = new Map();  // By id: summary.
const rows = new Map();  // By id: {row, cells}.
const slots = new Map();  // Chosen runs: id to place in the list of colours.
let focus = null;  // The run whose details are shown.
let clockSkew = 0;  // Server's time less ours.
let events = null;
const charts = new Charts($('charts'));
const details = new Details($('tab'), $('tabs'));

function serverNow() {
  return Date.now() / 1000 + clockSkew;
}

function sorted() {
  const words = $('filter').value.toLowerCase().split(/\s+/).filter(Boolean);
  const shown = [...runs.values()].filter((run) => words.every((word) =>
    `${run.id} ${run.recipe} ${run.state}`.toLowerCase().includes(word)));
  const isLive = (run) => (run.state === 'running' ? 1 : 0);
  return shown.sort((a, b) => isLive(b) - isLive(a) || b.started - a.started || a.id.localeCompare(b.id));
}

function freeSlot() {
  const taken = new Set(slots.values());
  for (let slot = 0; slot < MOST_RUNS; ++slot) {
    if (!taken.has(slot)) return slot;
  }
  return -1;
}

function saveView() {
  const view = new URLSearchParams();
  for (const id of slots.keys()) view.append('show', id);
  if (focus) view.set('focus', focus);
  history.replaceState(null, '', `#${view}`);
}

function choose(id, isChosen) {
  if (isChosen && !slots.has(id)) {
    const slot = freeSlot();
    if (slot < 0) {
      $('say').textContent = `at most ${MOST_RUNS} runs can be told apart`;
      return;
    }
    slots.set(id, slot);
  } else if (!isChosen) {
    slots.delete(id);
  }
  update();
}

function lookAt(id) {
  if (focus === id) return;
  // The run that was only looked at makes room in the charts.
  if (slots.size === 1 && slots.has(focus)) slots.delete(focus);
  focus = id;
  if (!slots.has(id) && freeSlot() >= 0) slots.set(id, freeSlot());
  listen();
  update();
}

function makeRow(run) {
  const row = element('tr');
  row.tabIndex = -1;
  row.dataset.run = run.id;
  const box = element('input');
  box.type = 'checkbox';
  box.setAttribute('aria-label', `curves of ${run.id}`);
  box.addEventListener('change', () => choose(run.id, box.checked));
  box.addEventListener('click', (event) => event.stopPropagation());
  const cells = {};
  for (const name of ['box', 'id', 'recipe', 'state', 'step', 'loss', 'best', 'speed', 'started', 'sign']) {
    const isNumber = ['step', 'loss', 'best', 'speed', 'started', 'sign'].includes(name);
    cells[name] = element('td', {class: isNumber ? 'number' : name});
    row.append(cells[name]);
  }
  cells.box.append(box);
  row.addEventListener('click', () => {
    row.focus();
    lookAt(run.id);
  });
  return {row, cells, box};
}

function setText(cell, text, title = '') {
  if (cell.textContent !== text) cell.textContent = text;
  if (cell.title !== title) cell.title = title;
}

function fillRow(run) {
  const {row, cells, box} = rows.get(run.id);
  const isChosen = slots.has(run.id);
  box.checked = isChosen;
  box.style.accentColor = isChosen ? colorOf(slots.get(run.id)) : '';
  row.style.setProperty('--run', isChosen ? colorOf(slots.get(run.id)) : 'transparent');
  row.classList.toggle('dashed', isChosen && slots.get(run.id) >= MOST_RUNS / 2);
  row.setAttribute('aria-selected', run.id === focus);
  setText(cells.id, run.id === '.' ? '(this folder)' : run.id);
  setText(cells.recipe, run.recipe);
  if (cells.state.dataset.state !== run.state) {
    cells.state.dataset.state = run.state;
    cells.state.replaceChildren(badge(run.state));
  }
  cells.state.title = run.reason;
  setText(cells.step, whole(run.step) + (run.total_steps ? ` / ${whole(run.total_steps)}` : ''));
  setText(cells.loss, number(run.loss));
  setText(cells.best, run.best === null ? '–' : `${number(run.best)} ${run.best_metric.split('/').pop()}`,
    run.best === null ? '' : `${run.best_metric} at step ${run.best_step}`);
  setText(cells.speed, number(run.samples_per_second));
  setText(cells.started, age(run.started, serverNow()), when(run.started));
  setText(cells.sign, age(run.last_sign, serverNow()), when(run.last_sign));
}

function showList() {
  const shown = sorted();
  const place = $('rows');
  shown.forEach((run, i) => {
    if (!rows.has(run.id)) rows.set(run.id, makeRow(run));
    const {row} = rows.get(run.id);
    if (place.children[i] !== row) place.insertBefore(row, place.children[i] || null);
    fillRow(run);
  });
  while (place.children.length > shown.length) place.lastChild.remove();
  const live = [...runs.values()].filter((run) => run.state === 'running').length;
  $('count').textContent = `${shown.length} of ${runs.size} runs, ${live} running`;
  $('empty').hidden = runs.size > 0;
  const active = place.querySelector('tr[aria-selected=true]') || place.firstChild;
  for (const row of place.children) row.tabIndex = row === active ? 0 : -1;
}

function showVerdict(verdict) {
  const place = $('verdict');
  place.hidden = !verdict;
  place.replaceChildren();
  if (!verdict) return;
  const link = element('a', {text: verdict.cause});
  link.href = `/verdicts.html#${verdict.see.split('#')[1] || ''}`;
  link.title = verdict.see;
  const line = element('p', {text: 'Verdict: '});
  line.append(link, `: ${verdict.meaning}`);
  const next = element('p', {text: 'Next: '});
  next.append(element('code', {text: verdict.next}));
  place.append(line, element('p', {text: `Shown by ${verdict.evidence}`}), next);
}

function showFocus() {
  const run = runs.get(focus);
  $('focus').textContent = run ? (run.id === '.' ? '(this folder)' : run.id) : 'No run chosen';
  $('state').replaceChildren(...(run ? [badge(run.state)] : []));
  $('reason').hidden = !run || !run.reason || run.state === 'finished';
  $('reason').textContent = run ? run.reason : '';
  showVerdict(run ? run.verdict : null);
  $('progress').hidden = !run || run.state !== 'running' || !run.total_steps;
  if (run && run.total_steps) {
    $('progress').title = `step ${whole(run.step)} of ${whole(run.total_steps)}`;
    $('progress').firstElementChild.style.width = `${(100 * (run.step || 0)) / run.total_steps}%`;
  }
  details.choose(run || null, [...slots.keys()].filter((id) => id !== focus));
}

function update() {
  showList();
  showFocus();
  charts.choose(slots, focus);
  saveView();
}

function firstChoice() {
  if (focus && runs.has(focus)) return;
  const view = new URLSearchParams(location.hash.slice(1));
  for (const id of view.getAll('show')) {
    if (runs.has(id) && freeSlot() >= 0) slots.set(id, freeSlot());
  }
  const wanted = view.get('focus');
  const first = runs.has(wanted) ? wanted : (sorted()[0] || {}).id;
  if (first !== undefined) lookAt(first);
}

function take(list) {
  clockSkew = list.now - Date.now() / 1000;
  for (const run of list.runs) {
    const before = runs.get(run.id);
    if (before && before.state !== run.state) {
      $('say').textContent = `${run.id} is ${run.state}`;
    }
    runs.set(run.id, run);
    if (slots.has(run.id) || run.id === focus) charts.refresh(run.id);
    if (run.id === focus) details.refresh();
  }
  for (const id of list.gone) {
    runs.delete(id);
    rows.delete(id);
    slots.delete(id);
    if (focus === id) focus = null;
  }
  firstChoice();
  update();
}

function showLive(isLive) {
  $('live').textContent = isLive ? '● live' : '○ connection lost, trying again';
  $('live').classList.toggle('lost', !isLive);
}

function listen() {
  if (events) events.close();
  events = new EventSource(`/api/events?${new URLSearchParams({focus: focus || ''})}`);
  events.addEventListener('open', () => showLive(true));
  events.addEventListener('error', () => showLive(false));
  events.addEventListener('runs', (event) => take(JSON.parse(event.data)));
  events.addEventListener('ranks', (event) => {
    const {run, ranks} = JSON.parse(event.data);
    if (run === focus) details.setRanks(ranks);
  });
}

function setTheme(theme) {
  if (theme) document.documentElement.dataset.theme = theme;
  else delete document.documentElement.dataset.theme;
  localStorage.setItem('theme', theme || '');
  $('theme').textContent = theme === 'dark' ? 'Dark' : theme === 'light' ? 'Light' : 'System theme';
  update();
}

function nextTheme() {
  const order = ['', 'light', 'dark'];
  const now = order.indexOf(document.documentElement.dataset.theme || '');
  setTheme(order[(now + 1) % order.length]);
}

function moveInList(step) {
  const all = [...$('rows').children];
  const now = all.findIndex((row) => row === document.activeElement || row.contains(document.activeElement));
  const next = all[Math.min(all.length - 1, Math.max(0, now + step))];
  if (next) next.focus();
}

function onKey(event) {
  if (event.ctrlKey || event.altKey || event.metaKey) return;
  const isTyping = event.target.matches('input[type=search]');
  if (event.key === 'Escape' && isTyping) event.target.blur();
  if (isTyping || $('keys').open) return;
  const row = event.target.closest ? event.target.closest('#rows tr') : null;
  const actions = {
    '/': () => $('filter').focus(), '?': () => $('keys').showModal(), t: nextTheme,
    l: () => $('log').click(), ArrowDown: row && (() => moveInList(1)), ArrowUp: row && (() => moveInList(-1)),
    Enter: row && (() => lookAt(row.dataset.run)),
    ' ': row && event.target === row && (() => choose(row.dataset.run, !slots.has(row.dataset.run)))};
  for (let i = 1; i <= 6; ++i) actions[String(i)] = () => details.openNumber(i - 1);
  if (!actions[event.key]) return;
  event.preventDefault();
  actions[event.key]();
}

async function start() {
  setTheme(localStorage.getItem('theme') || '');
  $('theme').addEventListener('click', nextTheme);
  $('help').addEventListener('click', () => $('keys').showModal());
  $('filter').addEventListener('input', showList);
  $('smooth').addEventListener('input', () => {
    charts.smooth = Number($('smooth').value);
    charts.draw();
  });
  $('log').addEventListener('change', () => {
    charts.log = $('log').checked;
    charts.draw();
  });
  document.addEventListener('keydown', onKey);
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', update);
  new ResizeObserver(() => charts.resize()).observe($('charts'));
  setInterval(showList, 5000);  // Ages.
  const answer = await (await fetch('/api/runs')).json();
  $('folder').textContent = answer.title;
  document.title = `${answer.title.split('/').filter(Boolean).pop() || '/'} – Lockstep board`;
  take(answer.list);
  if (!events) listen();
}

start();
