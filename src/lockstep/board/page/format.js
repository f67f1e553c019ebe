// Numbers, times and sizes as the page shows them.

export function number(value, digits = 4) {
  if (value === null || value === undefined) return '–';
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-3 || size >= 1e7)) return value.toExponential(digits - 2);
  return Number(value.toPrecision(digits)).toLocaleString('en-US', {maximumFractionDigits: 6});
}

export function whole(value) {
  return value === null || value === undefined ? '–' : value.toLocaleString('en-US');
}

export function age(then, now) {
  if (!then) return '–';
  const seconds = Math.max(0, now - then);
  if (seconds < 60) return `${Math.round(seconds)} s ago`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`;
  if (seconds < 2 * 86400) return `${Math.floor(seconds / 3600)} h ago`;
  return `${Math.floor(seconds / 86400)} days ago`;
}

export function bytes(count) {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let unit = 0;
  while (count >= 1024 && unit + 1 < units.length) {
    count /= 1024;
    ++unit;
  }
  return `${unit === 0 ? count : count.toFixed(1)} ${units[unit]}`;
}

export function seconds(value) {
  if (value < 1) return `${Math.round(value * 1000)} ms`;
  if (value < 120) return `${value.toFixed(1)} s`;
  return `${Math.floor(value / 60)} min`;
}

export function when(time) {
  return time ? new Date(time * 1000).toLocaleString() : '–';
}

// A shape beside the word and the colour: none of them alone tells a state.
const MARKS = {running: '▶', finished: '✓', stopped: '■', failed: '✕', unknown: '?',
  ok: '✓', waiting: '…', slow: '▲', stuck: '✕', gone: '✕'};

export function badge(word) {
  const span = document.createElement('span');
  span.className = `badge ${word}`;
  span.textContent = `${MARKS[word] || '?'} ${word}`;
  return span;
}

// An element with a class and a text.
export function element(name, options = {}) {
  const made = document.createElement(name);
  if (options.class) made.className = options.class;
  if (options.text !== undefined) made.textContent = options.text;
  if (options.title) made.title = options.title;
  return made;
}

export async function fetched(path, values) {
  const query = new URLSearchParams(values);
  const response = await fetch(`${path}?${query}`);
  if (!response.ok) throw new Error(`${path}: ${response.status}`);
  return response;
}
