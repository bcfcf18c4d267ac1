// Which problems are listed, and in which order. A problem is identified by its place in the index.

const ORDERS = {
  input: () => null,
  sure: (index) => (place) => -(index.confidence[place] ?? -1),
  unsure: (index) => (place) => index.confidence[place] ?? -1,
  steps: (index) => (place) => -index.steps[place],
  tokens: (index) => (place) => -(index.policy[place] + index.scorer[place]),
};

const WHICH = {
  trusted: (index, place) => index.trust[place] === "t",
  untrusted: (index, place) => index.trust[place] === "n",
  unanswered: (index, place) => index.answers[place] === null,
};

function ordered(index, name) {
  const places = Array.from(index.ids.keys());
  const key = ORDERS[name](index);
  return key ? places.sort((one, other) => key(one) - key(other) || one - other) : places;
}

function matching(index, wanted) {
  const text = wanted.text.trim().toLowerCase();
  const said = (place) => [index.ids[place], index.sources[place], index.problems[place], index.answers[place] ?? ""].join("\n").toLowerCase();
  return ordered(index, wanted.sort).filter(
    (place) =>
      (!wanted.outcome || index.outcomes[place] === wanted.outcome) &&
      (!wanted.which || WHICH[wanted.which](index, place)) &&
      (!text || said(place).includes(text)),
  );
}

// The reader's query as the fragment of the page's address, and back. Defaults are left out.
const NOTHING = { text: "", outcome: "", which: "", sort: "input", open: "" };
const HASH = "#problems?";

function hashOf(wanted) {
  const named = Object.entries(wanted).filter(([name, value]) => value !== NOTHING[name]);
  return named.length ? HASH + new URLSearchParams(named) : "";
}

function wantedOf(hash) {
  if (!hash.startsWith(HASH)) return { ...NOTHING };
  const named = new URLSearchParams(hash.slice(HASH.length));
  const known = (name, values) => (values.includes(named.get(name)) ? named.get(name) : NOTHING[name]);
  return {
    text: named.get("text") ?? "",
    outcome: known("outcome", ["r", "w", "o"]),
    which: known("which", Object.keys(WHICH)),
    sort: known("sort", Object.keys(ORDERS)),
    open: named.get("open") ?? "",
  };
}
