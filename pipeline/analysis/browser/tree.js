// A path or a tree: its main line, and other next steps beside each of its steps.
//
// The main line follows the chosen steps, and after their end, or beside them, the next step with the highest weight: its value,
// unless the data have weights. What else there is after a step stands in a group that is closed at first, as chess players write
// variations. A path is a main line alone.

const FEW = 50;
const MOST_INDENT = 12;
const CHUNK = 200;
const MANY = 400;
const ORIGINS = {
  measured: "measured by its own rollouts",
  implied: "implied by neighbouring steps",
  terminal: "the outcome of the chain",
  unmeasured: "not measured",
};

function treeOf(data, more) {
  const parents = data.parents ?? data.texts.map((_, at) => at - 1);
  const children = parents.map(() => []);
  const depths = parents.map(() => 0);
  parents.forEach((parent, at) => {
    if (parent < 0) return;
    children[parent].push(at);
    depths[at] = depths[parent] + 1;
  });
  const chosen = new Set(data.chosen);
  const weights = data.weights ?? data.values;
  const weight = (at) => weights[at] ?? -1;
  const visits = (at) => data.visits?.[at] ?? 0;
  const below = parents.map(() => 0);
  const best = parents.map((_, at) => (data.ends?.[at] ? data.values[at] : null));
  for (let at = parents.length - 1; at > 0; at--) {
    const parent = parents[at];
    below[parent] += below[at] + 1;
    if (best[at] !== null && (best[parent] === null || best[at] > best[parent])) best[parent] = best[at];
  }
  for (const found of children) {
    found.sort((one, other) => chosen.has(other) - chosen.has(one) || weight(other) - weight(one) || visits(other) - visits(one) || one - other);
  }
  const tree = { data, parents, children, depths, chosen, below, best, open: new Set(), shown: new Map(), ...more };
  if (data.open) openAll(tree);
  return tree;
}

const valueOf = (data, at) => data.values[at] ?? data.estimates?.[at] ?? null;

// Groups of other next steps are known by the step before them: `g` and its place. A step is known by `n` and its place.
const groupKey = (parent) => `g${parent}`;
const stepKey = (at) => `n${at}`;

// The rows that are visible, from the top. `level` counts groups and variations from 1, as a screen reader says it.
function visible(tree) {
  const rows = [];
  if (tree.data.texts[0]) stepRows(tree, 0, 1, false, rows);
  const [first] = tree.children[0];
  if (first !== undefined) line(tree, first, 1, rows);
  return rows;
}

// A step, and examples of its rollouts. `begins`: whether it begins a variation, which can be closed.
function stepRows(tree, at, level, begins, rows) {
  const key = stepKey(at);
  const closable = begins || Boolean(tree.data.prefixes);
  rows.push({ kind: "step", key, at, level, closable });
  if (tree.data.prefixes && tree.open.has(key)) rows.push({ kind: "examples", key: `e${at}`, at, level: level + 1 });
}

function line(tree, from, level, rows) {
  let at = from;
  while (at !== undefined) {
    const parent = tree.parents[at];
    const others = tree.children[parent].slice(1);
    const begins = level > 1 && at === from && tree.children[at].length > 0;
    stepRows(tree, at, level, begins, rows);
    if (at === tree.children[parent][0] && others.length) {
      rows.push({ kind: "group", key: groupKey(parent), at: parent, level: level + 1, closable: true });
      if (tree.open.has(groupKey(parent))) variations(tree, parent, others, level + 2, rows);
    }
    if (begins && !tree.open.has(stepKey(at))) return;
    at = tree.children[at][0];
  }
}

function variations(tree, parent, others, level, rows) {
  const shown = tree.shown.get(parent) ?? FEW;
  for (const other of others.slice(0, shown)) line(tree, other, level, rows);
  if (others.length > shown) rows.push({ kind: "more", key: `m${parent}`, at: parent, level, left: others.length - shown });
}

// Opens what hides a step.
function reveal(tree, at) {
  for (let below = at, parent = tree.parents[at]; parent >= 0; below = parent, parent = tree.parents[parent]) {
    const place = tree.children[parent].indexOf(below);
    if (below !== at) tree.open.add(stepKey(below));
    if (place <= 0) continue;
    tree.open.add(groupKey(parent));
    if (place - 1 >= (tree.shown.get(parent) ?? FEW)) tree.shown.set(parent, place);
  }
}

function openAll(tree) {
  tree.children.forEach((found, at) => {
    if (found.length > 1) {
      tree.open.add(groupKey(at));
      tree.shown.set(at, found.length);
    }
    if (found.length) tree.open.add(stepKey(at));
  });
}

function closeAll(tree) {
  tree.open.clear();
  tree.shown.clear();
}

// What is too much for a row: one text for hover, focus, tap and print.
function numbersOf({ data, confidence }, at) {
  if (data.hints) return data.hints[at];
  if (!data.origins) return "";
  const lines = [];
  if (data.low[at] !== null) lines.push(`${Math.round(confidence * 100)} % interval ${fixed(data.low[at])} to ${fixed(data.high[at])}`);
  if (data.rollouts[at] || data.origins[at] === "measured") lines.push(`${data.correct[at]} of ${counted(data.rollouts[at], "graded rollout")} correct`);
  if (data.ungraded[at]) lines.push(`${data.ungraded[at]} ungraded`);
  if (data.truncated[at]) lines.push(`${data.truncated[at]} cut by the token limit`);
  if (at) lines.push(`label: ${LABELS[data.labels[at]][0]}`);
  return [...lines, ORIGINS[data.origins[at]] ?? "no value"].join(" · ");
}

function tailOf(data, at) {
  if (data.tails) return data.tails[at];
  return data.rollouts[at] ? `${data.correct[at]}/${data.rollouts[at]}` : (data.origins[at] ?? "");
}

function endOf([outcome, text, more]) {
  const [word, mark] = OUTCOMES[outcome] ?? ["open", ""];
  const made = element("span", { class: `tree-end mark-${word}` }, mark && `${mark} `, prose(text, "answer"));
  if (more) made.append(element("small", {}, ` ${more}`));
  return made;
}

function marksOf(tree, row) {
  const { data } = tree;
  const { at } = row;
  const marks = element("span", { class: "tree-marks" });
  for (const [text, kind] of data.notes?.[at] ?? []) marks.append(element("span", { class: `pill ${kind}` }, text), " ");
  if (data.ends?.[at]) marks.append(endOf(data.ends[at]), " ");
  if (data.visits?.[at] > 1) marks.append(element("small", { class: "visits" }, `×${data.visits[at]}`, quiet(" visits")), " ");
  if (row.closable && !data.prefixes && !tree.open.has(row.key)) {
    const best = tree.best[at] === null ? "" : `, best end ${fixed(tree.best[at])}`;
    marks.append(element("small", {}, ` +${counted(tree.below[at], "step")}${best}`));
  }
  return marks;
}

// What witnesses and verifiers say of a step, with their evidence.
function saidOf(said) {
  const each = ([who, text, kind, evidence]) => element("span", { class: `opinion ${kind}` }, prose(who, "witness"), ` ${text}`, prose(evidence));
  return element("p", { class: "opinions" }, ...said.map(each));
}

function stepRow(tree, row) {
  const { data } = tree;
  const { at } = row;
  const known = data.values[at] !== null;
  const value = valueOf(data, at);
  const estimated = !known && value !== null;
  const text = element("span", { class: "tree-text" }, at ? prose(data.texts[at]) : element("span", { class: "tree-root" }, data.texts[0]), " ", marksOf(tree, row));
  if (data.said?.[at]) text.append(saidOf(data.said[at]));
  const label = data.labels?.[at] ?? " ";
  const chip = element(
    "span",
    { class: `chip${estimated ? " estimate" : ""}` },
    meter(value, data.low?.[at], data.high?.[at]),
    quiet(estimated ? "estimate " : "value "),
    element("b", {}, `${estimated ? "~" : ""}${fixed(value)}`),
    element("span", { class: "tree-facts" }, tailOf(data, at)),
    label === " " ? "" : labelMark(label),
  );
  const numbers = numbersOf(tree, at);
  return [
    element("span", { class: "tree-number" }, quiet(at ? "step " : ""), at ? String(tree.depths[at]) : ""),
    text,
    chip,
    ...(numbers ? [element("span", { class: "numbers", role: "tooltip", id: `${tree.name}-${at}` }, numbers)] : []),
  ];
}

function groupRow({ data, children }, { at }) {
  const others = children[at].slice(1);
  const values = others.map((other) => valueOf(data, other)).filter((value) => value !== null);
  const best = values.length ? `, best ${fixed(values.reduce((one, other) => Math.max(one, other)))}` : "";
  return [element("span", { class: "tree-number" }), element("span", { class: "tree-group" }, `or ${counted(others.length, "other step")}${best}`)];
}

function moreRow(_, row) {
  return [element("span", { class: "tree-number" }), element("span", { class: "tree-group" }, `${amount(row.left)} more: Enter shows ${Math.min(FEW, row.left)}`)];
}

function examplesRow(tree, { at }) {
  const made = element("div", { class: "rollouts" });
  tree.examplesOf(tree.data.prefixes[at]).then((found) => made.append(...exampleList(found, tree.data, at)));
  return [made];
}

const CONTENT = { step: stepRow, group: groupRow, more: moreRow, examples: examplesRow };

function rowElement(tree, row) {
  const { data } = tree;
  const step = row.kind === "step";
  const kind = `${row.kind}${step && tree.chosen.has(row.at) ? " taken" : ""}${step && row.at === data.weak ? " weak" : ""}`;
  const open = row.closable ? { "aria-expanded": String(tree.open.has(row.key)) } : {};
  const more = step && numbersOf(tree, row.at) ? { "aria-describedby": `${tree.name}-${row.at}` } : {};
  const indent = Math.min(MOST_INDENT, row.level - 1);
  const made = element("div", { class: `tree-row ${kind}`, role: "treeitem", tabindex: "-1", "aria-level": row.level, "data-key": row.key, style: `--indent: ${indent}`, ...open, ...more });
  made.append(element("span", { class: "tree-toggle", "aria-hidden": "true" }), ...CONTENT[row.kind](tree, row));
  return made;
}

// A view of a tree as rows, with one of them in the order of Tab, and arrows to move between them: the pattern of a tree view.
//
// Draws the first rows at once and the others frame by frame, in parts: what is out of sight costs no layout. A row that stays as
// it is keeps its element.
function treeView(tree, name) {
  const list = element("div", { class: "tree", role: "tree", "aria-label": name });
  const kept = new Map();
  let rows = [];
  let drawn = [];
  let places = new Map();
  let current = null;
  let frame = 0;

  function elementOf(row) {
    const state = `${tree.open.has(row.key)} ${row.left}`;
    const found = kept.get(row.key);
    if (found?.state === state) return found.made;
    const made = rowElement(tree, row);
    kept.set(row.key, { made, state });
    return made;
  }

  function append(count) {
    const until = Math.min(rows.length, drawn.length + count);
    while (drawn.length < until) {
      const more = rows.slice(drawn.length, Math.min(until, drawn.length + CHUNK)).map(elementOf);
      for (const made of more) {
        places.set(made, drawn.length);
        drawn.push(made);
      }
      list.append(element("div", { class: "tree-part", role: "presentation" }, ...more));
    }
  }

  function goOn() {
    cancelAnimationFrame(frame);
    if (drawn.length < rows.length) {
      frame = requestAnimationFrame(() => {
        append(CHUNK);
        goOn();
      });
    }
  }

  function finish() {
    cancelAnimationFrame(frame);
    append(rows.length);
  }

  // Puts the row at `at` in the order of Tab. Rows up to it are drawn.
  function makeCurrent(at) {
    if (!rows[at]) return null;
    if (drawn.length <= at) append(at + 1 - drawn.length);
    if (current) current.tabIndex = -1;
    current = drawn[at];
    current.tabIndex = 0;
    return current;
  }

  function draw(focus) {
    rows = visible(tree);
    drawn = [];
    places = new Map();
    const at = Math.max(0, rows.findIndex((row) => row.key === focus));
    list.classList.toggle("many", rows.length > MANY);
    list.replaceChildren();
    append(at + CHUNK);
    const made = makeCurrent(at);
    if (focus !== undefined) {
      made?.focus({ preventScroll: true });
      made?.scrollIntoView({ block: "nearest" });
    }
    goOn();
  }

  const focusAt = (at) => makeCurrent(at)?.focus();

  function toggle(row, wanted) {
    if (row.kind === "more") {
      tree.shown.set(row.at, (tree.shown.get(row.at) ?? FEW) + FEW);
      const place = rows.indexOf(row);
      draw();
      focusAt(place);
      return;
    }
    if (!row.closable || tree.open.has(row.key) === wanted) return;
    if (wanted) tree.open.add(row.key);
    else tree.open.delete(row.key);
    draw(row.key);
  }

  const parentOf = (at) => rows.slice(0, at).findLastIndex((row) => row.level < rows[at].level);
  const placeOf = (target) => places.get(target.closest(".tree-row")) ?? -1;

  list.addEventListener("click", (event) => {
    const at = placeOf(event.target);
    if (at < 0 || String(getSelection())) return;
    focusAt(at);
    const row = rows[at];
    toggle(row, !tree.open.has(row.key));
  });
  list.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const at = placeOf(event.target);
    if (at < 0) return;
    // Behind the last row, and above the first one, the keys of the list go on.
    if (tree.examplesOf && event.key === (at ? (at === rows.length - 1 ? "ArrowDown" : "") : "ArrowUp")) return;
    const row = rows[at];
    const open = row.closable && tree.open.has(row.key);
    const right = () => (open ? focusAt(at + 1) : toggle(row, true));
    const acts = {
      ArrowDown: () => focusAt(at + 1),
      ArrowUp: () => focusAt(at - 1),
      Home: () => focusAt(0),
      End: () => focusAt(rows.length - 1),
      ArrowRight: () => row.closable && right(),
      ArrowLeft: () => (open ? toggle(row, false) : focusAt(parentOf(at))),
      Enter: () => toggle(row, !open),
      " ": () => toggle(row, !open),
    };
    if (!Object.hasOwn(acts, event.key)) return;
    event.preventDefault();
    event.stopPropagation();
    acts[event.key]();
  });
  list.addEventListener("focusin", (event) => makeCurrent(placeOf(event.target)));
  addEventListener("beforeprint", finish);
  draw();
  return { list, draw };
}

// What is above a tree: a sentence about it, and two buttons.
function treeBar(tree, view) {
  const button = (label, act) => {
    const made = element("button", { type: "button" }, label);
    made.addEventListener("click", () => {
      act(tree);
      view.draw();
    });
    return made;
  };
  return element("div", { class: "tree-bar" }, element("p", {}, tree.data.summary), button("Open all", openAll), button("Close all", closeAll));
}
