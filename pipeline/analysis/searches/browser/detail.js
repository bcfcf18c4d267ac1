// An opened problem: what was chosen and what it cost, the answers of its chains, and its tree.

const STOPS = {
  done: "all was sampled",
  accepted: "stopped early: search.accept was reached",
  no_chain: "no chain ended",
  failed: "it killed engines, and was not searched",
};
const TRUST = { t: "yes", n: "no" };
const blockOf = blocksOf("problems");

function answerTable(data) {
  const heads = ["answer", "chains", "best score", "sum of scores"];
  const rows = data.answers.map(([answer, chains, best, total, verdict, chosen]) => {
    const name = element("td", {}, answer === null ? "none stated" : prose(answer, "answer"));
    if (verdict !== null) name.prepend(outcomeMark(outcomeOf(verdict)), " ");
    if (chosen) name.append(" ", element("span", { class: "pill" }, "chosen"));
    return element("tr", {}, name, ...[String(chains), fixed(best), fixed(total)].map((text) => element("td", { class: "number" }, text)));
  });
  const head = element("tr", {}, ...heads.map((name, at) => element("th", { scope: "col", ...(at ? { class: "number" } : {}) }, name)));
  const table = element("table", { class: "tree-answers" }, element("thead", {}, head), element("tbody", {}, ...rows));
  const more = data.more ? [element("p", { class: "browser-note" }, `${counted(data.more, "more answer")} of fewer chains.`)] : [];
  return [element("div", { class: "scroll" }, table), ...more];
}

function factsOf(index, place, data) {
  const facts = element("dl", { class: "chain-facts" });
  const fact = (name, ...value) => facts.append(element("div", {}, element("dt", {}, name), element("dd", {}, ...value)));
  if (data.gold !== null) fact("correct answer", prose(data.gold));
  const answer = index.answers[place];
  fact("chosen answer", answer === null ? "none" : prose(answer));
  if (data.verdict !== null) fact("verdict", data.verdict.replace("_", " "));
  fact("confidence", fixed(index.confidence[place]));
  if (index.trust[place] !== "-") fact("trusted", TRUST[index.trust[place]]);
  fact("ended", STOPS[index.stops[place]] ?? index.stops[place]);
  fact("policy tokens", `${amount(index.policy[place])}, after ${amount(data.prompt)} of prompts`);
  fact("scorer tokens", `${amount(index.scorer[place])} computed of ${amount(data.read)}`);
  if (data.unscored) fact("without a score", counted(data.unscored, "beginning"));
  fact("time", `${data.seconds.toFixed(1)} s`);
  fact("problem_id", element("code", {}, index.ids[place]));
  return facts;
}

function treePart(data) {
  const tree = treeOf(data);
  if (data.parents.length === 1) return [element("p", { class: "browser-note" }, "No step was sampled.")];
  const view = treeView(tree, "Tree of the problem", { visible, rowElement });
  const choose = (at) => {
    reveal(tree, at);
    view.draw(lineKey(at));
  };
  const said = [counted(data.parents.length - 1, "distinct step")];
  if (data.discarded) said.push(`${amount(data.discarded)} tokens were generated after steps that were kept`);
  if (data.hidden) said.push(`${counted(data.hidden, "more step")} with few visits not shown: samples/*.parquet has them`);
  return [picture(tree, choose), treeBar(tree, view, said), view.list];
}

async function problemBody(index, place) {
  const number = index.blocks[place];
  if (number < 0) return [element("p", { class: "browser-note" }, "This page has no tree of this problem; samples/*.parquet has its steps.")];
  const data = (await blockOf(number))[index.places[place]];
  return [
    element("div", { class: "problem" }, prose(data.problem)),
    factsOf(index, place, data),
    ...(data.answers.length ? answerTable(data) : []),
    ...treePart(data),
  ];
}
