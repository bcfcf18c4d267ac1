// The tree of a problem: its main line, and other next steps beside each of its steps.
//
// The main line follows the chosen chain, and after its end, or beside it, the next step with the highest score. What else was
// sampled after a step stands in a group that is closed at first, as chess players write variations.

function treeOf(data) {
  const children = data.parents.map(() => []);
  const depths = data.parents.map(() => 0);
  data.parents.forEach((parent, at) => {
    if (parent < 0) return;
    children[parent].push(at);
    depths[at] = depths[parent] + 1;
  });
  const onPath = new Set(data.path);
  const given = new Set(data.given);
  const rank = (at) => (onPath.has(at) ? 2 : (data.scores[at] ?? -1));
  const below = data.parents.map(() => 0);
  const best = data.parents.map((_, at) => (data.ends[at] ? (data.scores[at] ?? null) : null));
  for (let at = data.parents.length - 1; at > 0; at--) {
    const parent = data.parents[at];
    below[parent] += below[at] + 1;
    if (best[at] !== null && (best[parent] === null || best[at] > best[parent])) best[parent] = best[at];
  }
  for (const found of children) found.sort((one, other) => rank(other) - rank(one) || data.visits[other] - data.visits[one] || one - other);
  return { data, children, depths, onPath, given, below, best, open: new Set(), shown: new Map() };
}

// Groups of other next steps are known by the step before them: `g` and its place. A closed variation is known by its first
// step, `n` and its place.
const groupKey = (parent) => `g${parent}`;
const lineKey = (at) => `n${at}`;

// The rows that are visible, from the top. `level` counts groups and variations from 1, as a screen reader says it.
function visible(tree) {
  const rows = [];
  const [first] = tree.children[0];
  if (first !== undefined) line(tree, first, 1, rows);
  return rows;
}

function line(tree, from, level, rows) {
  let at = from;
  while (at !== undefined) {
    const parent = tree.data.parents[at];
    const others = tree.children[parent].slice(1);
    const closable = level > 1 && at === from && tree.children[at].length > 0;
    rows.push({ kind: "step", key: lineKey(at), at, level, closable });
    if (at === tree.children[parent][0] && others.length) {
      rows.push({ kind: "group", key: groupKey(parent), at: parent, level: level + 1, closable: true });
      if (tree.open.has(groupKey(parent))) variations(tree, parent, others, level + 2, rows);
    }
    if (closable && !tree.open.has(lineKey(at))) return;
    at = tree.children[at][0];
  }
}

function variations(tree, parent, others, level, rows) {
  const shown = tree.shown.get(parent) ?? FEW;
  for (const other of others.slice(0, shown)) line(tree, other, level, rows);
  if (others.length > shown) rows.push({ kind: "more", key: `m${parent}`, at: parent, level, closable: false, left: others.length - shown });
}

// Opens what hides a step.
function reveal(tree, at) {
  for (let below = at, parent = tree.data.parents[at]; parent >= 0; below = parent, parent = tree.data.parents[parent]) {
    const place = tree.children[parent].indexOf(below);
    if (below !== at) tree.open.add(lineKey(below));
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
    if (found.length) tree.open.add(lineKey(at));
  });
}

function closeAll(tree) {
  tree.open.clear();
  tree.shown.clear();
}
