// The list of problems: the reader's query, the rows that match it, and the keys.

const ROWS = 40;
const HASH_DELAY = 300;
const HEADS = ".chain-head";
const MOVES = { j: 1, ArrowDown: 1, k: -1, ArrowUp: -1 };

function partsOfPage() {
  const names = ["filters", "text", "which", "sort", "count", "list", "pager", "earlier", "later", "place", "nothing", "all"];
  return Object.fromEntries(names.map((name) => [name, document.getElementById(`searches-${name}`)]));
}

function problemRow(index, place) {
  const id = `problem-${place}`;
  const name = element("span", { class: "name" });
  if (index.trust[place] === "n") name.append(element("span", { class: "pill differs" }, "not trusted"), " ");
  if (index.answers[place] === null) name.append(element("span", { class: "pill" }, "no answer"), " ");
  name.append(prose(index.sources[place] || index.ids[place], "source"), " ", prose(index.problems[place], "beginning"));
  const head = element(
    "button",
    { type: "button", class: "chain-head", "aria-expanded": "false", "aria-controls": `${id}-body` },
    outcomeMark(index.outcomes[place]),
    name,
    element("span", { class: "problem-answer" }, quiet("answer "), index.answers[place] === null ? "–" : prose(index.answers[place], "answer")),
    element("span", { class: "problem-confidence" }, quiet("confidence "), chip(index.confidence[place])),
    element("span", { class: "sd" }, `${amount(index.steps[place])} steps`),
  );
  return element("li", { class: "chain", id, "data-place": place }, head, element("div", { class: "chain-body", id: `${id}-body`, hidden: "" }));
}

function start(parts, index) {
  const view = { wanted: wantedOf(location.hash), found: [], first: 0, open: new Set() };

  function filter() {
    view.found = matching(index, view.wanted);
    view.first = 0;
    draw();
  }

  function draw() {
    const places = view.found.slice(view.first, view.first + ROWS);
    parts.list.replaceChildren(...places.map((place) => problemRow(index, place)));
    parts.list.start = view.first + 1;
    for (const place of places) if (view.open.has(place)) show(place);
    const [found, all] = [view.found.length, index.ids.length];
    parts.count.textContent = found === all ? counted(all, "problem") : `${amount(found)} of ${counted(all, "problem")}`;
    parts.nothing.hidden = found > 0;
    parts.pager.hidden = found <= ROWS;
    parts.place.textContent = `${view.first + 1}–${Math.min(found, view.first + ROWS)} of ${amount(found)}`;
    parts.earlier.disabled = view.first === 0;
    parts.later.disabled = view.first + ROWS >= found;
  }

  async function show(place) {
    const shown = document.getElementById(`problem-${place}`);
    const [head, body] = shown.children;
    head.setAttribute("aria-expanded", "true");
    shown.classList.add("open");
    body.hidden = false;
    if (!body.childElementCount) body.replaceChildren(...(await problemBody(index, place)));
  }

  function hide(place) {
    const shown = document.getElementById(`problem-${place}`);
    shown.firstElementChild.setAttribute("aria-expanded", "false");
    shown.classList.remove("open");
    shown.lastElementChild.hidden = true;
  }

  function toggle(place) {
    const opening = !view.open.has(place);
    if (opening) view.open.add(place);
    else view.open.delete(place);
    (opening ? show : hide)(place);
    const last = [...view.open].pop();
    ask({ open: last === undefined ? "" : index.ids[last] });
  }

  function turn(by) {
    const first = view.first + by * ROWS;
    if (first < 0 || first >= view.found.length) return;
    view.first = first;
    draw();
    const heads = parts.list.querySelectorAll(HEADS);
    heads[by > 0 ? 0 : heads.length - 1].focus();
  }

  let saving = 0;
  function ask(change) {
    Object.assign(view.wanted, change);
    clearTimeout(saving);
    saving = setTimeout(() => history.replaceState(null, "", hashOf(view.wanted) || location.pathname + location.search), HASH_DELAY);
  }

  function fill() {
    parts.text.value = view.wanted.text;
    parts.which.value = view.wanted.which;
    parts.sort.value = view.wanted.sort;
    parts.filters.elements.outcome.value = view.wanted.outcome;
  }

  function openAsked() {
    const place = index.ids.indexOf(view.wanted.open);
    const at = place < 0 ? -1 : view.found.indexOf(place);
    if (at < 0) return;
    view.open.add(place);
    view.first = at - (at % ROWS);
    draw();
    document.getElementById(`problem-${place}`).scrollIntoView();
  }

  function moved(by) {
    const heads = [...parts.list.querySelectorAll(HEADS)];
    const around = document.activeElement.closest(".chain")?.querySelector(HEADS);
    const at = heads.indexOf(around);
    const next = heads[at < 0 ? (by > 0 ? 0 : -1) : at + by];
    next?.focus();
    next?.scrollIntoView({ block: "nearest" });
    return Boolean(next);
  }

  const chosen = () => {
    ask({ text: parts.text.value, outcome: parts.filters.elements.outcome.value, which: parts.which.value, sort: parts.sort.value });
    filter();
  };
  parts.filters.addEventListener("input", chosen);
  // Not every browser sends "input" for a menu.
  for (const menu of [parts.which, parts.sort]) menu.addEventListener("change", chosen);
  parts.filters.addEventListener("submit", (event) => event.preventDefault());
  parts.all.addEventListener("click", () => {
    ask({ text: "", outcome: "", which: "" });
    fill();
    filter();
    parts.text.focus();
  });
  parts.list.addEventListener("click", (event) => {
    const head = event.target.closest(HEADS);
    if (head) toggle(Number(head.parentElement.dataset.place));
  });
  parts.earlier.addEventListener("click", () => turn(-1));
  parts.later.addEventListener("click", () => turn(1));
  window.addEventListener("hashchange", () => {
    if (!location.hash.startsWith(HASH)) return;
    view.wanted = wantedOf(location.hash);
    fill();
    filter();
    openAsked();
  });
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const focused = document.activeElement;
    const writing = focused.matches("input, select, textarea");
    if (event.key === "/" && !writing) {
      event.preventDefault();
      parts.text.focus();
      parts.text.select();
    } else if (event.key === "Escape" && parts.list.contains(focused)) {
      const head = focused.closest(".chain").querySelector(HEADS);
      if (head.getAttribute("aria-expanded") === "true") head.click();
      head.focus();
    } else if (Object.hasOwn(MOVES, event.key) && !writing && (parts.list.contains(focused) || (event.key.length === 1 && focused === document.body))) {
      event.preventDefault();
      if (!moved(MOVES[event.key])) turn(MOVES[event.key]);
    } else if (event.key === "Enter" && focused === parts.text) {
      event.preventDefault();
      moved(1);
    }
  });
  parts.filters.hidden = false;
  fill();
  filter();
  openAsked();
}

async function begin() {
  const parts = partsOfPage();
  if (!window.DecompressionStream) {
    parts.count.textContent = "This browser is too old to unpack the trees: it has no DecompressionStream. samples/*.parquet has them.";
    return;
  }
  parts.count.textContent = "The problems are being unpacked.";
  start(parts, await unpacked("problems-index"));
  document.getElementById("searches").dataset.ready = "";
}

if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", begin);
else begin();
