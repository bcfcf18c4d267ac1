// The whole tree at a glance: a step is a circle in the colour of its score, beside its depth. The rows say the same in words.

const STEP_WIDTH = 120;
const LEAST_STEP_WIDTH = 12;
const WIDTH = 960;
const BESIDE = 120;
const LINE_HEIGHT = 24;
const LEAST_LINE_HEIGHT = 8;
const HEIGHT = 480;
const LABELLED = 17;
const LABEL = 8;
const LABEL_WIDTH = 34;
const MARGIN = 16;
const TITLED = 400;

// The vertical place of each step: the main line goes straight on, and what varies from it stands below.
function placesOf(tree) {
  const lines = tree.parents.map(() => 0);
  let next = 0;
  const due = tree.children[0].length ? [0] : [];
  while (due.length) {
    const top = due.pop();
    if (top) lines[top] = next++;
    else next = 1;
    const beside = [];
    for (let at = top; at !== undefined; at = tree.children[at][0]) {
      beside.push(...tree.children[at].slice(1).reverse());
      const [first] = tree.children[at];
      if (first !== undefined) lines[first] = lines[at];
    }
    // The last one is taken first, so that variations of deeper steps stand above, and no edge crosses another.
    due.push(...beside);
  }
  return { lines, count: Math.max(1, next) };
}

function picture(tree, onChoose) {
  const { data, depths } = tree;
  const { lines, count } = placesOf(tree);
  const deepest = depths.reduce((one, other) => Math.max(one, other), 1);
  const wide = Math.max(LEAST_STEP_WIDTH, Math.min(STEP_WIDTH, Math.min(WIDTH, innerWidth - BESIDE) / deepest));
  const high = Math.max(LEAST_LINE_HEIGHT, Math.min(LINE_HEIGHT, HEIGHT / count));
  const radius = Math.min(6.5, high * 0.42, wide * 0.3);
  const x = (at) => MARGIN + depths[at] * wide;
  const top = MARGIN + (high >= LABELLED ? LABEL : 0);
  const y = (at) => top + lines[at] * high;
  const edge = (at) => `M${x(tree.parents[at]).toFixed(1)} ${y(tree.parents[at]).toFixed(1)}V${y(at).toFixed(1)}H${x(at).toFixed(1)}`;
  const plain = [];
  const taken = [];
  for (let at = 1; at < tree.parents.length; at++) (tree.chosen.has(at) ? taken : plain).push(edge(at));
  const parts = [drawing("path", { class: "edges", d: plain.join("") }), drawing("path", { class: "edges taken", d: taken.join("") })];
  for (let at = 0; at < tree.parents.length; at++) parts.push(circle(tree, at, x(at), y(at), radius));
  if (data.weak) {
    parts.push(drawing("circle", { class: "weakest-ring", cx: x(data.weak), cy: y(data.weak), r: Math.max(4.5, radius) + 3.5 }));
  }
  const every = Math.ceil(LABEL_WIDTH / wide);
  const labelled = high >= LABELLED ? [...tree.chosen].filter((at) => depths[at] % every === 0) : [];
  for (const at of labelled) parts.push(label(data, at, x(at), y(at) - radius - 4));
  for (const [at, end] of Object.entries(data.ends ?? {})) parts.push(endMark(end, x(at) + radius + 4, y(at)));
  const width = 2 * MARGIN + deepest * wide + 24;
  const height = top + MARGIN + (count - 1) * high;
  const made = drawing("svg", { class: "tree-picture", width, height, viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" }, ...parts);
  made.addEventListener("click", (event) => {
    const at = Number(event.target.dataset.at ?? 0);
    if (at) onChoose(at);
  });
  return element("div", { class: "tree-scroll" }, made);
}

function circle(tree, at, x, y, radius) {
  const { data } = tree;
  const score = data.values[at];
  const taken = tree.chosen.has(at);
  const kind = `dot${taken ? " taken" : ""}`;
  const look = at && score !== null ? levelled(kind, score) : { class: `${kind} ${at ? "unknown" : "root"}` };
  const r = taken ? Math.max(4.5, radius) : data.ends?.[at] ? radius : radius * 0.8;
  const made = drawing("circle", { ...look, cx: x.toFixed(1), cy: y.toFixed(1), r: r.toFixed(1), "data-at": at });
  if (at && tree.parents.length <= TITLED) made.append(drawing("title", {}, `step ${tree.depths[at]}, score ${fixed(score)}`));
  return made;
}

const label = (data, at, x, y) => drawing("text", { class: "dot-score", x, y: y.toFixed(1) }, fixed(data.values[at]));

function endMark([outcome], x, y) {
  const [word, mark] = OUTCOMES[outcome ?? "o"];
  return drawing("text", { class: `dot-end mark-${word}`, x: x.toFixed(1), y: (y + 3.5).toFixed(1) }, mark);
}
