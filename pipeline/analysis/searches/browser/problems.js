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

function matching(index, places, wanted) {
  const text = wanted.text.trim().toLowerCase();
  const said = (place) => [index.ids[place], index.sources[place], index.problems[place], index.answers[place] ?? ""].join("\n").toLowerCase();
  return places.filter(
    (place) =>
      (!wanted.outcome || index.outcomes[place] === wanted.outcome) &&
      (!wanted.which || WHICH[wanted.which](index, place)) &&
      (!text || said(place).includes(text)),
  );
}

const NOTHING = { text: "", outcome: "", which: "", sort: "input", open: "" };
const KNOWN = { outcome: OUTCOMES, which: WHICH, sort: ORDERS };
const HASH = "#problems?";
