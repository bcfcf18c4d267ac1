// A list that a reader filters, sorts, turns and opens, with a query in the page's address. The script of a page has the query:
//   HASH     the beginning of the fragment that holds a query
//   NOTHING  the query that asks for everything: name -> value
//   KNOWN    name -> the values that may be chosen, as keys
//   ORDERS   name of an order -> the key of an entry in it, or null for the order of the input
// and describes the list:
//   name     the id of the part of the page, with which the ids in it begin
//   noun     what an entry is
//   index    what is known of all entries, by place; `index.ids` names them
//   matching(wanted)         the places of the entries that match a query
//   cells(place), body(place)  what an entry shows while it is closed and what it shows below that
//   unread(wanted)           words after the count where not all could be searched yet
//   drawn(wanted)            called after the list was drawn

const ROWS = 40;
const HASH_DELAY = 300;

function ordered(index) {
  const found = {};
  return (name) => {
    if (!found[name]) {
      const places = Array.from(index.ids.keys());
      const key = ORDERS[name](index);
      if (key) places.sort((one, other) => key(one) - key(other) || one - other);
      found[name] = places;
    }
    return found[name];
  };
}

// The reader's query as the fragment of the page's address, and back. Defaults are left out. Numbers are shares.
function hashOf(wanted) {
  const named = Object.entries(wanted).filter(([name, value]) => value !== NOTHING[name]);
  return named.length ? HASH + new URLSearchParams(named) : "";
}

function valueOf(name, text) {
  if (text === null || (KNOWN[name] && !Object.hasOwn(KNOWN[name], text))) return NOTHING[name];
  if (typeof NOTHING[name] !== "number") return text;
  return Number(text) >= 0 && Number(text) <= 1 ? Number(text) : NOTHING[name];
}

function wantedOf(hash) {
  const named = new URLSearchParams(hash.startsWith(HASH) ? hash.slice(HASH.length) : "");
  return Object.fromEntries(Object.keys(NOTHING).map((name) => [name, valueOf(name, named.get(name))]));
}

function listing({ name, noun, index, matching, cells, body, unread, drawn }) {
  const part = (named) => document.getElementById(`${name}-${named}`);
  const parts = Object.fromEntries(["filters", "text", "count", "list", "pager", "earlier", "later", "place", "nothing", "all"].map((named) => [named, part(named)]));
  const view = { wanted: wantedOf(location.hash), found: [], first: 0, open: new Set() };
  const asked = Object.keys(NOTHING).filter((named) => named !== "open");
  const control = (named) => part(named) ?? parts.filters.elements[named];
  const entry = (place) => document.getElementById(`${noun}-${place}`);

  function filter() {
    view.found = matching(view.wanted);
    view.first = 0;
    draw();
  }

  function row(place) {
    const id = `${noun}-${place}`;
    const head = element("button", { type: "button", class: "chain-head", "aria-expanded": "false", "aria-controls": `${id}-body` }, ...cells(place));
    return element("li", { class: "chain", id, "data-place": place }, head, element("div", { class: "chain-body", id: `${id}-body`, hidden: "" }));
  }

  function draw() {
    const places = view.found.slice(view.first, view.first + ROWS);
    parts.list.replaceChildren(...places.map(row));
    parts.list.start = view.first + 1;
    for (const place of places) if (view.open.has(place)) show(place);
    const [found, all, more] = [view.found.length, index.ids.length, unread(view.wanted)];
    parts.count.textContent = found === all ? counted(all, noun) : `${amount(found)} of ${counted(all, noun)}${more}`;
    parts.nothing.hidden = found > 0 || more !== "";
    parts.pager.hidden = found <= ROWS;
    parts.place.textContent = `${view.first + 1}–${Math.min(found, view.first + ROWS)} of ${amount(found)}`;
    parts.earlier.disabled = view.first === 0;
    parts.later.disabled = view.first + ROWS >= found;
    drawn(view.wanted);
  }

  async function show(place) {
    const shown = entry(place);
    const [head, below] = shown.children;
    head.setAttribute("aria-expanded", "true");
    shown.classList.add("open");
    below.hidden = false;
    if (!below.childElementCount) below.replaceChildren(...(await body(place)));
  }

  function hide(place) {
    const shown = entry(place);
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

  function fill() {
    for (const named of asked) control(named).value = view.wanted[named];
  }

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
    ask(Object.fromEntries(asked.map((named) => [named, typeof NOTHING[named] === "number" ? Number(control(named).value) : control(named).value])));
    filter();
  };
  parts.filters.addEventListener("input", chosen);
  // Not every browser sends "input" for a menu. A change of the text comes when it loses the focus, and must draw nothing.
  for (const menu of parts.filters.querySelectorAll("select")) menu.addEventListener("change", chosen);
  parts.filters.addEventListener("submit", (event) => event.preventDefault());
  parts.all.addEventListener("click", () => {
    const { sort, open } = view.wanted;
    ask({ ...NOTHING, sort, open });
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
    if (!location.hash.startsWith(HASH)) return;
    view.wanted = wantedOf(location.hash);
    began();
  });
  listenToKeys(parts, turn);
  parts.filters.hidden = false;
  began();
  return { view, filter };
}
