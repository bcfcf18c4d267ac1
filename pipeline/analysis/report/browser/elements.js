// What scripts of several pages share: elements, numbers, and packed data. Text enters a page as text nodes only.

const SVG = "http://www.w3.org/2000/svg";
const LEVELS = 10;
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

// Text of a data set or a model, in its own writing direction.
const prose = (text, kind = "prose") => element("span", { class: kind, dir: "auto" }, text);
const quiet = (text) => element("span", { class: "unseen" }, text);
const fixed = (value) => (value === null || value === undefined ? "–" : value.toFixed(2));
const level = (value) => `level-${Math.round(Math.min(1, Math.max(0, value)) * LEVELS)}`;
const counted = (number, word) => `${number.toLocaleString("en")} ${word}${number === 1 ? "" : "s"}`;

function outcomeMark(outcome) {
  const [word, mark] = OUTCOMES[outcome];
  return element("span", { class: `mark mark-${word}`, title: word }, mark, quiet(` ${word}, `));
}

// Data in the page: base64 of gzip in an element that no browser runs.
async function unpacked(name) {
  const text = document.getElementById(name).textContent;
  const bytes = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}

const idle = () =>
  new Promise((done) => {
    if (window.requestIdleCallback) requestIdleCallback(done, { timeout: 500 });
    else setTimeout(done, 20);
  });
