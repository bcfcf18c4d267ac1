// What scripts of several pages share: elements, numbers, and packed data. Text enters a page as text nodes only.

const SVG = "http://www.w3.org/2000/svg";
const LEVELS = 10;
const KEPT_BLOCKS = 6;
const LABELS = { 1: ["good", "+"], 0: ["bad", "−"], 2: ["neutral", "o"] };
const UNCERTAIN = ["uncertain", "?"];
const OUTCOMES = { r: ["right", "✓"], w: ["wrong", "✗"], o: ["open", "?"] };

function element(name, attributes, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

function drawing(name, attributes, ...children) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

// Text of a data set or a model, in its own writing direction. Characters that turn what follows them around are shown, for with
// them a text looks like another one.
const shown = (text) => text.replace(/[\u202d\u202e]/g, (turn) => `[U+${turn.charCodeAt(0).toString(16).toUpperCase()}]`);
const prose = (text, kind = "prose") => element("span", { class: kind, dir: "auto" }, shown(text));
const quiet = (text) => element("span", { class: "unseen" }, text);
const fixed = (value) => (value === null || value === undefined ? "–" : value.toFixed(2));
const level = (value) => `level-${Math.round(Math.min(1, Math.max(0, value)) * LEVELS)}`;
const amount = (number) => number.toLocaleString("en");
const counted = (number, word) => `${amount(number)} ${word}${number === 1 ? "" : "s"}`;

function outcomeMark(outcome) {
  const [word, mark] = OUTCOMES[outcome];
  return element("span", { class: `mark mark-${word}`, title: word }, mark, quiet(` ${word}, `));
}

function labelMark(label) {
  return element("span", { class: `label label-${label[0]}`, title: label[0] }, label[1], quiet(` ${label[0]}`));
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

const idle = () =>
  new Promise((done) => {
    if (window.requestIdleCallback) requestIdleCallback(done, { timeout: 500 });
    else setTimeout(done, 20);
  });

// Calls `start` with the unpacked element `data` once the page is there. `things` are listed; `packed` is what an old browser cannot
// show, but `files` have.
function whenLoaded(name, { data, things, packed, files, start }) {
  async function begin() {
    const count = document.getElementById(`${name}-count`);
    if (!window.DecompressionStream) {
      count.textContent = `This browser is too old to unpack the ${packed}: it has no DecompressionStream. ${files} has them.`;
      return;
    }
    count.textContent = `The ${things} are being unpacked.`;
    start(await unpacked(data));
    document.getElementById(name).dataset.ready = "";
  }
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", begin);
  else begin();
}
