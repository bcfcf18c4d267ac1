// Which chains are shown, and in which order. A chain is identified by its place in the index.

const ORDERS = {
  input: () => null,
  drop: (index) => (place) => -index.drops[place],
  uncertainty: (index) => (place) => -(index.uncertainty[place] ?? -1),
  least: (index) => (place) => index.least[place] ?? 2,
};

const ROUNDING = 1e-9;

function ordered(index) {
  const found = {};
  return (name) => {
    if (!found[name]) {
      const places = Array.from(index.ids.keys());
      const key = ORDERS[name](index);
      if (key) places.sort((one, other) => key(one) - key(other) || one - other);
      found[name] = places;
    }
    return found[name];
  };
}

// Marks of a chain in labels by consensus: a witness disagrees with Monte Carlo; the chain has no labels.
const DISAGREE = 1;
const LEFT_OUT = 2;
const marksOf = (index, place) => (index.consensus ? Number(index.consensus[place]) : 0);
const OPINIONS = {
  differ: (marks) => (marks & DISAGREE) !== 0,
  kept: (marks) => (marks & LEFT_OUT) === 0,
  out: (marks) => (marks & LEFT_OUT) !== 0,
};

function matching(index, places, texts, wanted) {
  const text = wanted.text.trim().toLowerCase();
  return places.filter(
    (place) =>
      (!wanted.outcome || index.outcomes[place] === wanted.outcome) &&
      index.drops[place] >= wanted.drop - ROUNDING &&
      (!wanted.opinions || !index.consensus || OPINIONS[wanted.opinions](marksOf(index, place))) &&
      (!text || (texts[place] !== null && texts[place].includes(text))),
  );
}

// The reader's query as the fragment of the page's address, and back. Defaults are left out.
const NOTHING = { text: "", outcome: "", drop: 0, opinions: "", sort: "input", open: "" };
const HASH = "#chains?";

function hashOf(wanted) {
  const named = Object.entries(wanted).filter(([name, value]) => value !== NOTHING[name]);
  return named.length ? HASH + new URLSearchParams(named) : "";
}

function wantedOf(hash) {
  if (!hash.startsWith(HASH)) return { ...NOTHING };
  const named = new URLSearchParams(hash.slice(HASH.length));
  const drop = Number(named.get("drop"));
  return {
    text: named.get("text") ?? "",
    outcome: ["r", "w", "o"].includes(named.get("outcome")) ? named.get("outcome") : "",
    drop: drop >= 0 && drop <= 1 ? drop : 0,
    opinions: Object.hasOwn(OPINIONS, named.get("opinions") ?? "") ? named.get("opinions") : "",
    sort: Object.hasOwn(ORDERS, named.get("sort") ?? "") ? named.get("sort") : "input",
    open: named.get("open") ?? "",
  };
}
