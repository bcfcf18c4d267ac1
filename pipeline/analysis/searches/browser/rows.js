// The rows of the tree of a search.

const VERDICTS = { correct: "r", incorrect: "w", no_answer: "w" };
const outcomeOf = (verdict) => VERDICTS[verdict] ?? "o";

function chip(score) {
  const text = fixed(score);
  const meter = drawing("svg", { class: "chip-bar", viewBox: "0 0 30 10", "aria-hidden": "true", preserveAspectRatio: "none" });
  meter.append(drawing("rect", { class: "ground", x: 0, y: 0, width: 30, height: 10 }));
  if (score !== null) meter.append(drawing("rect", { class: level(score), x: 0, y: 0, width: Math.max(1, 30 * score), height: 10 }));
  return element("span", { class: "chip" }, meter, quiet("score "), element("b", {}, text));
}

function endOf([ends, cuts, answer, verdict]) {
  const outcome = outcomeOf(verdict);
  const [word, mark] = OUTCOMES[outcome];
  const made = element("span", { class: `tree-end mark-${word}` }, verdict === null ? "" : `${mark} `);
  made.append(answer === null ? "no answer" : prose(answer, "answer"));
  if (verdict !== null) made.append(quiet(` ${verdict.replace("_", " ")}`));
  if (ends > 1) made.append(element("small", {}, ` ${ends} chains`));
  if (cuts) made.append(element("small", { class: "cut" }, cuts === ends ? " cut by a limit" : ` ${cuts} cut by a limit`));
  return made;
}

function stepRow(tree, row) {
  const { data } = tree;
  const { at } = row;
  const marks = element("span", { class: "tree-marks" });
  if (at === data.weakest) marks.append(element("span", { class: "pill weakest" }, "weakest step"), " ");
  if (tree.given.has(at)) marks.append(element("small", { class: "given" }, "of the input"), " ");
  if (data.ends[at]) marks.append(endOf(data.ends[at]), " ");
  if (data.faults[at]) marks.append(element("span", { class: "pill" }, `no score: ${data.faults[at]}`), " ");
  if (data.visits[at] > 1) marks.append(element("small", { class: "visits" }, `×${data.visits[at]}`, quiet(" visits")), " ");
  if (row.closable && !tree.open.has(row.key)) marks.append(element("small", {}, leadsTo(tree, at)));
  const text = element("span", { class: "tree-text" }, prose(data.texts[at]), " ", marks);
  const sure = data.sure?.[at];
  const facts = data.tokens[at] || !tree.given.has(at) ? [counted(data.tokens[at], "token")] : [];
  if (data.raw && data.raw[at] !== null) facts.push(`raw score ${fixed(data.raw[at])}`);
  if (sure !== null && sure !== undefined) facts.push(`reliability ${fixed(sure)}`);
  const tail = element("span", { class: "tree-facts" }, facts.join(" · "));
  return [element("span", { class: "tree-number" }, quiet("step "), String(tree.depths[at])), chip(data.scores[at]), text, tail];
}

function leadsTo(tree, at) {
  const best = tree.best[at];
  return ` +${counted(tree.below[at], "step")}${best === null ? "" : `, best end ${fixed(best)}`}`;
}

function groupRow(tree, { at }) {
  const others = tree.children[at].slice(1);
  const scores = others.map((other) => tree.data.scores[other]).filter((score) => score !== null);
  const best = scores.length ? `, best ${fixed(scores.reduce((one, other) => Math.max(one, other)))}` : "";
  return [element("span", { class: "tree-number" }), element("span", { class: "tree-group" }, `or ${counted(others.length, "other step")}${best}`)];
}

const CONTENT = { step: stepRow, group: groupRow, more: (_, row) => moreRow(row) };

function rowElement(tree, row) {
  const kind = `${row.kind}${tree.onPath.has(row.at) && row.kind === "step" ? " taken" : ""}${row.kind === "step" && row.at === tree.data.weakest ? " weak" : ""}`;
  return treeItem(tree, row, kind, CONTENT[row.kind](tree, row));
}
