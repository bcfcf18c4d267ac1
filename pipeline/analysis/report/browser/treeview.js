// A view of a tree as rows, with one of them in the order of Tab, and arrows to move between them: the pattern of a tree view.
//
// A row has a `key`, a `level` from 1, and `closable`, whether something is below it. `tree.open` has the keys of open rows. A row
// of the kind "more" shows FEW more of what follows `at`, which `tree.shown` counts.

const FEW = 50;
const MOST_INDENT = 12;
const CHUNK = 200;
const MANY = 400;

function moreRow(row) {
  return [element("span", { class: "tree-number" }), element("span", { class: "tree-group" }, `${row.left.toLocaleString("en")} more: Enter shows ${Math.min(FEW, row.left)}`)];
}

function treeItem(tree, row, kind, content) {
  const open = row.closable ? { "aria-expanded": String(tree.open.has(row.key)) } : {};
  const indent = Math.min(MOST_INDENT, row.level - 1);
  const made = element("div", { class: `tree-row ${kind}`, role: "treeitem", tabindex: "-1", "aria-level": row.level, "data-key": row.key, style: `--indent: ${indent}`, ...open });
  made.append(element("span", { class: "tree-toggle", "aria-hidden": "true" }), ...content);
  return made;
}

// `rowElement(tree, row)` makes the element of a row, and `visible(tree)` the rows that are visible, from the top.
//
// Draws the first rows at once and the others frame by frame, in parts: what is out of sight costs no layout. A row that stays as
// it is keeps its element.
function treeView(tree, name, { visible, rowElement }) {
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
  return { list, draw };
}

// What is above a tree: a sentence about it, and two buttons. `openAll` and `closeAll` are the page's own.
function treeBar(tree, view, said) {
  const button = (label, act) => {
    const made = element("button", { type: "button" }, label);
    made.addEventListener("click", () => {
      act(tree);
      view.draw();
    });
    return made;
  };
  return element("div", { class: "tree-bar" }, element("p", {}, said.join("; ")), button("Open all", openAll), button("Close all", closeAll));
}
