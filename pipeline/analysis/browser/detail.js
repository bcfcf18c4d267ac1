// An opened entry: its problem, facts about it, the answers of its chains, its trees, and examples of the rollouts of a step.

const VERDICTS = { correct: "right", incorrect: "wrong", no_answer: "wrong" };
const FINISHES = {
  stop: "",
  length: "cut by sampling.max_tokens",
  abort: "aborted, no longer needed",
  too_long: "too long for the policy's context",
  engine_failed: "no engine answered",
};
const note = (text) => element("p", { class: "browser-note" }, text);

function factList(facts) {
  const value = (text, kind) => (kind === "code" ? element("code", {}, text) : prose(text, `prose ${kind}`));
  return element(
    "dl",
    { class: "chain-facts" },
    ...facts.map(([name, text, kind = ""]) => element("div", {}, element("dt", {}, prose(name)), element("dd", {}, value(text, kind)))),
  );
}

function answerTable(answers, more) {
  const heads = ["answer", "chains", "best score", "sum of scores"];
  const rows = answers.map(([answer, chains, best, total, outcome, chosen]) => {
    const name = element("td", {}, answer === null ? "none stated" : prose(answer, "answer"));
    if (outcome !== null) name.prepend(outcomeMark(outcome), " ");
    if (chosen) name.append(" ", element("span", { class: "pill" }, "chosen"));
    return element("tr", {}, name, ...[String(chains), fixed(best), fixed(total)].map((text) => element("td", { class: "number" }, text)));
  });
  const head = element("tr", {}, ...heads.map((name, at) => element("th", { scope: "col", ...(at ? { class: "number" } : {}) }, name)));
  const table = element("table", { class: "tree-answers" }, element("thead", {}, head), element("tbody", {}, ...rows));
  return [element("div", { class: "scroll" }, table), ...(more ? [note(more)] : [])];
}

function noExamples(data, at) {
  if (data.origins[at] === "terminal") return "No rollouts: the value of the last step is the outcome of the chain.";
  if (!data.rollouts[at] && !data.ungraded[at]) return "No rollouts start here.";
  return "This page has no example of these rollouts; rollouts/*.parquet has all of them.";
}

function example([verdict, finish, tokens, answer, text]) {
  const kind = finish === "stop" || finish === "length" ? (VERDICTS[verdict] ?? "open") : "open";
  const words = [verdict.replace("_", " "), FINISHES[finish] ?? finish, counted(tokens, "token")];
  const head = element("p", { class: "example-head" }, element("span", { class: `verdict mark-${kind}` }, words.filter(Boolean).join(" · ")));
  if (answer) head.append(" · answer ", prose(answer, "answer"));
  return element("li", { class: `example example-${kind}` }, head, prose(text || "(no text)", "prose example-text"));
}

function exampleList(found, data, at) {
  if (!found.length) return [note(noExamples(data, at))];
  const all = data.rollouts[at] + data.ungraded[at];
  const head = `${counted(found.length, "example")}${all > found.length ? ` of ${counted(all, "rollout")}` : ""}`;
  return [element("p", { class: "rollouts-head" }, head), element("ul", {}, ...found.map(example))];
}

function treePart(data, name, more) {
  const tree = treeOf(data, { name, ...more });
  const view = treeView(tree, data.name || "Tree of the problem");
  const choose = (at) => {
    reveal(tree, at);
    view.draw(stepKey(at));
  };
  return [
    ...(data.name ? [element("h3", {}, data.name)] : []),
    ...(data.picture ? [picture(tree, choose)] : []),
    ...(data.summary ? [treeBar(tree, view)] : []),
    view.list,
  ];
}

// `name` is in the ids of the elements of this entry. `more` has `examplesOf`, which finds examples of rollouts by the number of
// a prefix, and the `confidence` of intervals.
function entryBody(entry, name, more) {
  return [
    element("div", { class: "problem" }, prose(entry.problem)),
    factList(entry.facts),
    ...(entry.answers?.length ? answerTable(entry.answers, entry.more) : []),
    ...entry.trees.flatMap((data, at) => treePart(data, `${name}-${at}`, more)),
    ...(entry.trees.length ? [] : [note("No step was sampled.")]),
  ];
}
