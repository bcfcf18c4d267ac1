// Which chains are shown, and in which order. A chain is identified by its place in the index.

const ORDERS = {
  input: () => null,
  drop: (index) => (place) => -index.drops[place],
  uncertainty: (index) => (place) => -(index.uncertainty[place] ?? -1),
  least: (index) => (place) => index.least[place] ?? 2,
};

const ROUNDING = 1e-9;

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

const NOTHING = { text: "", outcome: "", drop: 0, opinions: "", sort: "input", open: "" };
const KNOWN = { outcome: OUTCOMES, opinions: OPINIONS, sort: ORDERS };
const HASH = "#chains?";
