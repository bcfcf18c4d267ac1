// The rows of a rollout tree: a step each, after the problem. Children follow their parent, those with the most rollouts first.

const SMALL = 60;
const key = (at) => `n${at}`;
const graded = (data, at) => data.issued[at][1] + data.passed[at][1];

function treeOf(data) {
  const children = data.parents.map(() => []);
  const depths = data.parents.map(() => 0);
  const below = data.parents.map(() => 0);
  data.parents.forEach((parent, at) => {
    if (parent < 0) return;
    children[parent].push(at);
    depths[at] = depths[parent] + 1;
  });
  for (let at = data.parents.length - 1; at > 0; at--) below[data.parents[at]] += below[at] + 1;
  for (const found of children) found.sort((one, other) => graded(data, other) - graded(data, one) || one - other);
  const tree = { data, children, depths, below, open: new Set(), shown: new Map(), grown: new Set(data.grown) };
  if (data.parents.length <= SMALL) openAll(tree);
  else for (let at = 0; at !== undefined; at = children[at][0]) tree.open.add(key(at));
  return tree;
}

// The rows that are visible, from the top. A chain may be long, so nothing here calls itself.
function visible(tree) {
  const rows = [];
  const waiting = [{ kind: "step", at: 0 }];
  while (waiting.length) {
    const { kind, at, left } = waiting.pop();
    const level = tree.depths[at] + (kind === "more" ? 2 : 1);
    const below = tree.children[at];
    const closable = kind === "step" && below.length > 0;
    rows.push({ kind, key: kind === "more" ? `m${at}` : key(at), at, level, closable, left });
    if (!closable || !tree.open.has(key(at))) continue;
    const shown = tree.shown.get(at) ?? FEW;
    if (below.length > shown) waiting.push({ kind: "more", at, left: below.length - shown });
    for (const child of below.slice(0, shown).reverse()) waiting.push({ kind: "step", at: child });
  }
  return rows;
}

function openAll(tree) {
  tree.children.forEach((found, at) => {
    if (!found.length) return;
    tree.open.add(key(at));
    tree.shown.set(at, found.length);
  });
}

function closeAll(tree) {
  tree.open.clear();
  tree.shown.clear();
}

function valueChip(value, mean) {
  const known = value !== null;
  const number = known ? value : mean;
  const meter = drawing("svg", { class: "chip-bar", viewBox: "0 0 30 10", "aria-hidden": "true", preserveAspectRatio: "none" });
  meter.append(
    drawing("rect", { class: "ground", x: 0, y: 0, width: 30, height: 10 }),
    drawing("rect", { class: level(number), x: 0, y: 0, width: Math.max(1, 30 * number), height: 10 }),
  );
  return element("span", { class: `chip${known ? "" : " estimate"}` }, meter, quiet(known ? "value " : "estimate "), element("b", {}, `${known ? "" : "~"}${fixed(number)}`));
}

function endMark(outcome) {
  const [word, mark] = OUTCOMES[outcome];
  return element("span", { class: `tree-end mark-${word}` }, `${mark} ends, ${word}`);
}

function counts(data, at) {
  const [began, passed] = [data.issued[at], data.passed[at]];
  const said = [`${amount(began[0] + passed[0])} of ${amount(began[1] + passed[1])} right`];
  if (began[1]) said.push(`${amount(began[1])} began here`);
  const ungraded = began[2] + passed[2];
  if (ungraded) said.push(`${amount(ungraded)} not graded`);
  return said.join(" · ");
}

// What is too much for a row.
function hint(data, at) {
  const [right, trials] = data.fair[at];
  const said = [`began here: ${data.issued[at][0]} of ${data.issued[at][1]} right`, `passed through: ${data.passed[at][0]} of ${data.passed[at][1]} right`];
  said.push(`unbiased trials: ${right} of ${trials} right`, `estimate from all: ${fixed(data.means[at])}`);
  if (data.spreads[at] !== null) said.push(`uncertainty of the value: ±${fixed(data.spreads[at])}`);
  return said.join("\n");
}

function stepRow(tree, row) {
  const { data } = tree;
  const { at } = row;
  const marks = element("span", { class: "tree-marks" });
  if (at && data.named[at]) marks.append(labelMark(LABELS[data.labels[at]] ?? UNCERTAIN), " ");
  if (tree.grown.has(at)) marks.append(element("span", { class: "tree-grown" }, "promoted"), " ");
  if (data.ends[at]) marks.append(endMark(data.ends[at]), " ");
  if (row.closable && !tree.open.has(row.key)) marks.append(element("small", {}, `+${counted(tree.below[at], "step")}`));
  const text = at ? prose(data.texts[at]) : element("span", { class: "tree-root" }, "the problem");
  return [
    element("span", { class: "tree-number" }, quiet(at ? "step " : ""), at ? String(tree.depths[at]) : ""),
    valueChip(data.values[at], data.means[at]),
    element("span", { class: "tree-text" }, text, " ", marks),
    element("span", { class: "tree-facts", title: hint(data, at) }, counts(data, at)),
  ];
}

function rowElement(tree, row) {
  const content = row.kind === "more" ? moreRow(row) : stepRow(tree, row);
  return treeItem(tree, row, `${row.kind}${row.kind === "step" && tree.data.named[row.at] ? " taken" : ""}`, content);
}
