// The list of entries, which a reader filters, sorts, turns and opens, with a query in the page's address.

const ROWS = 40;
const HASH_DELAY = 300;
const ROUNDING = 1e-9;
const STRIP_HEIGHT = 24;
const BAR_WIDTH = 10;
const NARROW_BAR_WIDTH = 5;
const MANY_STEPS = 20;
// A smaller drop would be shown as 0.00.
const LEAST_TOLD = 0.005;
const PILLS = {
  differ: ["≠", "a witness and Monte Carlo name different first errors", "differs"],
  out: ["left out", "no step has a label", ""],
  untrusted: ["not trusted", "its confidence is below search.accept", "differs"],
  unanswered: ["no answer", "no chosen chain states one", ""],
};

// One bar per step. `values` are in percent, null if unknown.
function strip(values) {
  const bar = values.length > MANY_STEPS ? NARROW_BAR_WIDTH : BAR_WIDTH;
  const height = (value) => Math.max(1.5, (value / 100) * STRIP_HEIGHT);
  const bars = values.map((value, at) =>
    value === null
      ? drawing("circle", { class: "unknown", cx: (at + 0.5) * bar - 0.5, cy: STRIP_HEIGHT - 2, r: 1 })
      : drawing("rect", { ...levelled("", value / 100), x: at * bar, y: STRIP_HEIGHT - height(value), width: bar - 1, height: height(value) }),
  );
  const width = values.length * bar;
  const ground = drawing("rect", { class: "ground", x: 0, y: 0, width, height: STRIP_HEIGHT });
  const size = { viewBox: `0 0 ${Math.max(1, width)} ${STRIP_HEIGHT}`, width, height: STRIP_HEIGHT };
  return drawing("svg", { class: "strip", "aria-hidden": "true", preserveAspectRatio: "none", ...size }, ground, ...bars);
}

// A drop that may be noise has no mark.
function lost(size, step) {
  if (size < LEAST_TOLD) return element("span", { class: "lost none" }, "no drop");
  if (!step) return element("span", { class: "lost none" }, size.toFixed(2), element("small", {}, " not sure"));
  return element("span", { class: "lost" }, `▼ ${size.toFixed(2)} `, element("small", {}, `step ${step}`));
}

// What an entry shows while it is closed: what the index has of it.
function cells(index, place) {
  const name = element("span", { class: "name" });
  for (const mark of index.marks?.[place].split(" ") ?? []) {
    if (!PILLS[mark]) continue;
    const [text, title, kind] = PILLS[mark];
    name.append(element("span", { class: `pill ${kind}`, title }, text), " ");
  }
  name.append(prose(index.sources[place] || index.ids[place], "source"), " ", prose(index.problems[place], "beginning"));
  const cell = (...content) => element("span", { class: "cell" }, ...content);
  const steps = counted(index.steps[place], "step");
  const answer = index.answers?.[place];
  const shown = index.answers
    ? [cell(quiet("answer "), answer === null ? "–" : prose(answer, "answer")), cell(element("span", { class: "chip" }, meter(index.confidence[place]), quiet("confidence "), element("b", {}, fixed(index.confidence[place])))), cell(steps)]
    : [cell(strip(index.strips[place]), quiet(` ${steps}, `)), cell(lost(index.drops[place], index.dropped[place])), cell(quiet("uncertainty "), `± ${fixed(index.uncertainty[place])}`)];
  return [outcomeMark(index.outcomes[place]), name, ...shown];
}

// The places of all entries in an order.
function ordered(index) {
  const found = { input: [...index.ids.keys()] };
  return (name) => {
    if (!found[name]) {
      const [column, sign, unknown] = index.orders[name];
      const key = (place) => sign * (index[column][place] ?? unknown);
      found[name] = [...found.input].sort((one, other) => key(one) - key(other) || one - other);
    }
    return found[name];
  };
}

function matching(index, places, texts, wanted) {
  const text = wanted.text.trim().toLowerCase();
  const choices = index.menus.map((menu) => wanted[menu]).filter(Boolean);
  return places.filter(
    (place) =>
      (!wanted.outcome || index.outcomes[place] === wanted.outcome) &&
      (!wanted.drop || !index.drops || index.drops[place] >= wanted.drop - ROUNDING) &&
      choices.every((choice) => ` ${index.marks[place]} `.includes(` ${choice} `)) &&
      (!text || texts[place].includes(text)),
  );
}

// The searchable text of each entry in lower case: at first what the index has, then all, read block by block. It waits for idle
// time unless `hurried` is set.
function readTexts(index, onProgress) {
  const texts = index.ids.map((id, place) => [id, index.sources[place], index.problems[place], index.answers?.[place] ?? ""].join("\n").toLowerCase());
  const reading = { texts, done: !texts.length, share: 0, hurried: false };
  (async () => {
    for (const [number, start] of index.starts.entries()) {
      if (!reading.hurried) await idle();
      (await unpacked(`browser-entries-${number}`)).forEach((entry, at) => {
        if (!entry) return;
        const answers = entry.facts.filter(([, , kind]) => kind === "answer").map(([, text]) => text);
        const steps = entry.trees.flatMap((data) => data.texts.slice(1));
        texts[start + at] += ["", entry.problem, ...answers, ...steps].join("\n").toLowerCase();
      });
      reading.share = (number + 1) / index.starts.length;
      reading.done = reading.share === 1;
      onProgress();
    }
  })();
  return reading;
}

function listing(index, files) {
  const part = (named) => document.getElementById(`browser-${named}`);
  const parts = Object.fromEntries(["filters", "text", "count", "list", "pager", "earlier", "later", "place", "nothing", "all"].map((named) => [named, part(named)]));
  const control = (named) => part(named) ?? parts.filters.elements[named];
  const entry = (place) => document.getElementById(`${index.noun}-${place}`);
  const hash = `#${index.noun}s?`;
  const marks = new Set(index.marks.flatMap((each) => each.split(" ")));
  for (const choice of index.menus.flatMap((menu) => [...control(menu).options])) if (choice.value && !marks.has(choice.value)) choice.remove();
  const nothing = { text: "", outcome: "", drop: 0, sort: "input", ...Object.fromEntries(index.menus.map((menu) => [menu, ""])), open: "" };
  const asked = Object.keys(nothing).filter((named) => named !== "open");
  const view = { wanted: wantedOf(location.hash), found: [], first: 0, open: new Set() };
  const order = ordered(index);
  const reading = readTexts(index, () => {
    if (view.wanted.text.trim() && (reading.done || view.found.length < ROWS)) filter();
  });
  const entriesOf = blocksOf("browser-entries");
  const examplesOf = blocksOf("browser-examples");

  // The reader's query as the fragment of the page's address, and back. Defaults are left out. Numbers are shares.
  function hashOf(wanted) {
    const named = Object.entries(wanted).filter(([name, value]) => value !== nothing[name]);
    return named.length ? hash + new URLSearchParams(named) : "";
  }

  function wordOf(name, text) {
    const choices = name === "open" ? null : (control(name).options ?? (name === "outcome" ? control(name) : null));
    if (text === null || (choices && ![...choices].some((choice) => choice.value === text))) return nothing[name];
    if (typeof nothing[name] !== "number") return text;
    return Number(text) >= 0 && Number(text) <= 1 ? Number(text) : nothing[name];
  }

  function wantedOf(fragment) {
    const named = new URLSearchParams(fragment.startsWith(hash) ? fragment.slice(hash.length) : "");
    return Object.fromEntries(Object.keys(nothing).map((name) => [name, wordOf(name, named.get(name))]));
  }

  function filter() {
    const searches = view.wanted.text.trim() !== "";
    if (searches) reading.hurried = true;
    view.unread = searches && !reading.done ? `, ${Math.round(100 * reading.share)} % of the texts searched` : "";
    view.found = matching(index, order(view.wanted.sort), reading.texts, view.wanted);
    view.first = 0;
    draw();
  }

  async function body(place) {
    const number = index.starts.findLastIndex((start) => start <= place);
    const found = (await entriesOf(number))[place - index.starts[number]];
    const more = { examplesOf: async (prefix) => (await examplesOf(number))[prefix] ?? [], confidence: index.confidence };
    return found ? entryBody(found, `${index.noun}-${place}`, more) : [note(`This page has no steps of this ${index.noun}; ${files} has them.`)];
  }

  function row(place) {
    const id = `${index.noun}-${place}`;
    const head = element("button", { type: "button", class: "chain-head", "aria-expanded": "false", "aria-controls": `${id}-body` }, ...cells(index, place));
    return element("li", { class: "chain", id, "data-place": place }, head, element("div", { class: "chain-body", id: `${id}-body`, hidden: "" }));
  }

  function draw() {
    const places = view.found.slice(view.first, view.first + ROWS);
    parts.list.replaceChildren(...places.map(row));
    parts.list.start = view.first + 1;
    for (const place of places) if (view.open.has(place)) show(place, true);
    const [found, all] = [view.found.length, index.ids.length];
    parts.count.textContent = found === all ? counted(all, index.noun) : `${amount(found)} of ${counted(all, index.noun)}${view.unread}`;
    parts.nothing.hidden = found > 0 || view.unread !== "";
    parts.pager.hidden = found <= ROWS;
    parts.place.textContent = `${view.first + 1}–${Math.min(found, view.first + ROWS)} of ${amount(found)}`;
    parts.earlier.disabled = view.first === 0;
    parts.later.disabled = view.first + ROWS >= found;
    part("drop-text").textContent = view.wanted.drop.toFixed(2);
  }

  async function show(place, open) {
    const shown = entry(place);
    const [head, below] = shown.children;
    head.setAttribute("aria-expanded", String(open));
    shown.classList.toggle("open", open);
    below.hidden = !open;
    if (open && !below.childElementCount) below.replaceChildren(...(await body(place)));
  }

  function toggle(place) {
    const opening = !view.open.has(place);
    if (opening) view.open.add(place);
    else view.open.delete(place);
    show(place, opening);
    const last = [...view.open].pop();
    ask({ open: last === undefined ? "" : index.ids[last] });
  }

  function turn(by) {
    const first = view.first + by * ROWS;
    if (first < 0 || first >= view.found.length) return;
    view.first = first;
    draw();
    const heads = parts.list.querySelectorAll(".chain-head");
    const head = heads[by > 0 ? 0 : heads.length - 1];
    head.focus();
    head.scrollIntoView({ block: "nearest" });
  }

  let saving = 0;
  function ask(change) {
    Object.assign(view.wanted, change);
    clearTimeout(saving);
    saving = setTimeout(() => history.replaceState(null, "", hashOf(view.wanted) || location.pathname + location.search), HASH_DELAY);
  }

  const fill = () => asked.forEach((named) => (control(named).value = view.wanted[named]));

  function openAsked() {
    const place = index.ids.indexOf(view.wanted.open);
    if (place < 0) return;
    view.open.add(place);
    const at = view.found.indexOf(place);
    if (at < 0) return;
    view.first = at - (at % ROWS);
    draw();
    entry(place).scrollIntoView();
  }

  function began() {
    fill();
    filter();
    openAsked();
  }

  const chosen = () => {
    ask(Object.fromEntries(asked.map((named) => [named, typeof nothing[named] === "number" ? Number(control(named).value) : control(named).value])));
    filter();
  };
  parts.filters.addEventListener("input", chosen);
  // Not every browser sends "input" for a menu. A change of the text comes when it loses the focus, and must draw nothing.
  for (const menu of parts.filters.querySelectorAll("select")) menu.addEventListener("change", chosen);
  parts.filters.addEventListener("submit", (event) => event.preventDefault());
  parts.all.addEventListener("click", () => {
    const { sort, open } = view.wanted;
    ask({ ...nothing, sort, open });
    fill();
    filter();
    parts.text.focus();
  });
  parts.list.addEventListener("click", (event) => {
    const head = event.target.closest(".chain-head");
    if (head) toggle(Number(head.parentElement.dataset.place));
  });
  parts.earlier.addEventListener("click", () => turn(-1));
  parts.later.addEventListener("click", () => turn(1));
  window.addEventListener("hashchange", () => {
    if (!location.hash.startsWith(hash)) return;
    view.wanted = wantedOf(location.hash);
    parts.filters.scrollIntoView();
    began();
  });
  listenToKeys(parts, turn);
  parts.filters.hidden = false;
  began();
}

// Keys of a list. / works outside text fields, j and k in the list or while nothing has the focus, the arrows and
// Escape in the list.

const FOCUSED = ".chain-head, .tree-row";
const MOVES = { j: 1, ArrowDown: 1, k: -1, ArrowUp: -1 };

function visibleStops(list) {
  return [...list.querySelectorAll(FOCUSED)].filter((stop) => !stop.closest("[hidden]"));
}

// Moves the focus, from the head of an entry if it is elsewhere in it; true if there is an element to move it to.
function moved(list, by) {
  const stops = visibleStops(list);
  const focused = document.activeElement;
  const at = stops.indexOf(focused.matches(FOCUSED) ? focused : focused.closest(".chain")?.querySelector(".chain-head"));
  const next = stops[at < 0 ? (by > 0 ? 0 : -1) : at + by];
  next?.focus();
  next?.scrollIntoView({ block: "nearest" });
  return Boolean(next);
}

// Closes the open step or entry around the focus, and moves the focus to it.
function closeAround(focused) {
  const open = focused.closest(".tree-row[aria-expanded=true]") ?? focused.closest(".chain")?.querySelector(".chain-head[aria-expanded=true]");
  open?.click();
  open?.focus();
}

function listenToKeys(parts, turn) {
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const focused = document.activeElement;
    const writing = focused.matches("input, select, textarea, [contenteditable]");
    if (event.key === "/" && !writing) {
      event.preventDefault();
      parts.text.focus();
      parts.text.select();
    } else if (event.key === "Escape" && parts.list.contains(focused)) {
      closeAround(focused);
    } else if (Object.hasOwn(MOVES, event.key) && !writing && (parts.list.contains(focused) || (event.key.length === 1 && focused === document.body))) {
      event.preventDefault();
      if (!moved(parts.list, MOVES[event.key])) turn(MOVES[event.key]);
    } else if (event.key === "Enter" && focused === parts.text) {
      event.preventDefault();
      moved(parts.list, 1);
    }
  });
}
