// Elements, numbers, and packed data. Text enters the page as text nodes only.

const SVG = "http://www.w3.org/2000/svg";
const METER = 100;
const KEPT_BLOCKS = 6;
const LABELS = { "+": ["good", "+"], "-": ["bad", "−"], o: ["neutral", "o"], "?": ["uncertain", "?"] };
const OUTCOMES = { r: ["right", "✓"], w: ["wrong", "✗"], o: ["open", "?"] };

function filled(made, attributes, children) {
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

const element = (name, attributes, ...children) => filled(document.createElement(name), attributes, children);
const drawing = (name, attributes, ...children) => filled(document.createElementNS(SVG, name), attributes, children);

// Text of a data set or a model, in its own writing direction. Characters that turn what follows them around are shown, for with
// them a text looks like another one.
const shown = (text) => text.replace(/[\u202d\u202e]/g, (turn) => `[U+${turn.charCodeAt(0).toString(16).toUpperCase()}]`);
const prose = (text, kind = "prose") => element("span", { class: kind, dir: "auto" }, shown(text));
const quiet = (text) => element("span", { class: "unseen" }, text);
const fixed = (value) => (value === null || value === undefined ? "–" : value.toFixed(2));
const levelled = (kind, value) => ({ class: `level ${kind}`, style: `--level: ${Math.round(100 * Math.min(1, Math.max(0, value)))}%` });
const amount = (number) => number.toLocaleString("en");
const counted = (number, word) => `${amount(number)} ${word}${number === 1 ? "" : "s"}`;

function outcomeMark(outcome) {
  const [word, mark] = OUTCOMES[outcome];
  return element("span", { class: `mark mark-${word}`, title: word }, mark, quiet(` ${word}, `));
}

function labelMark(label) {
  const [word, mark] = LABELS[label];
  return element("span", { class: `label label-${word}`, title: word }, mark, quiet(` ${word}`));
}

// A bar for a value from 0 to 1, with its interval where that is known.
function meter(value, low = null, high = null) {
  const parts = [drawing("rect", { class: "ground", x: 0, y: 4, width: METER, height: 8 })];
  if (value !== null) parts.push(drawing("rect", { ...levelled("", value), x: 0, y: 4, width: Math.max(1, Math.min(1, value) * METER), height: 8 }));
  if (low !== null && high > low) {
    parts.push(drawing("path", { class: "interval", d: `M${low * METER} 8H${high * METER}` }));
    for (const end of [low, high]) parts.push(drawing("path", { class: "interval", d: `M${end * METER} 5V11` }));
  }
  const size = { viewBox: `-1 0 ${METER + 2} 16`, preserveAspectRatio: "none" };
  return drawing("svg", { class: "meter", "aria-hidden": "true", ...size }, ...parts);
}

// Data in the page: base64 of gzip in an element that no browser runs.
async function unpacked(name) {
  const text = document.getElementById(name).textContent;
  const bytes = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}

// Keeps the most recently used blocks of data. It keeps promises, so that two readers of one block unpack it once.
function blocksOf(name) {
  const kept = new Map();
  return (number) => {
    const block = kept.get(number) ?? unpacked(`${name}-${number}`);
    kept.delete(number);
    kept.set(number, block);
    if (kept.size > KEPT_BLOCKS) kept.delete(kept.keys().next().value);
    return block;
  };
}

const idle = () => new Promise((done) => (window.requestIdleCallback ? requestIdleCallback(done, { timeout: 500 }) : setTimeout(done, 20)));
