// The rows of a tree, with one of them in the order of Tab, and arrows to move between them: the pattern of a tree view.

const VERDICTS = { correct: "r", incorrect: "w", no_answer: "w" };
const outcomeOf = (verdict) => VERDICTS[verdict] ?? "o";
const MOST_INDENT = 12;
const CHUNK = 200;
const MANY = 400;

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

function moreRow(row) {
  return [element("span", { class: "tree-number" }), element("span", { class: "tree-group" }, `${row.left.toLocaleString("en")} more: Enter shows ${Math.min(FEW, row.left)}`)];
}

const CONTENT = { step: stepRow, group: groupRow, more: (_, row) => moreRow(row) };

function rowElement(tree, row) {
  const kind = `tree-row ${row.kind}${tree.onPath.has(row.at) && row.kind === "step" ? " taken" : ""}${row.kind === "step" && row.at === tree.data.weakest ? " weak" : ""}`;
  const open = row.closable ? { "aria-expanded": String(tree.open.has(row.key)) } : {};
  const indent = Math.min(MOST_INDENT, row.level - 1);
  const made = element("div", { class: kind, role: "treeitem", tabindex: "-1", "aria-level": row.level, "data-key": row.key, style: `--indent: ${indent}`, ...open });
  made.append(element("span", { class: "tree-toggle", "aria-hidden": "true" }), ...CONTENT[row.kind](tree, row));
  return made;
}

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
  addEventListener("beforeprint", finish);
  draw();
  return {
    list,
    draw,
    choose(at) {
      reveal(tree, at);
      draw(lineKey(at));
    },
  };
}
