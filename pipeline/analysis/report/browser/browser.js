// The chain browser: the reader's query, and the list of chains that match it.

const ROWS = 40;
const HASH_DELAY = 300;

function partsOfPage() {
  const named = (name) => document.getElementById(`browser-${name}`);
  const names = ["filters", "text", "drop", "drop-text", "opinions", "opinions-part", "sort", "count", "list", "pager", "earlier", "later", "place", "nothing", "all"];
  return Object.fromEntries(names.map((name) => [name, named(name)]));
}

function start(parts, index) {
  const order = ordered(index);
  const view = { index, wanted: wantedOf(location.hash), found: [], first: 0, open: new Set() };
  const reading = readTexts(index, progressed);

  function filter() {
    if (view.wanted.text.trim()) reading.hurried = true;
    view.found = matching(index, order(view.wanted.sort), reading.texts, view.wanted);
    view.first = 0;
    draw();
  }

  function draw() {
    const places = view.found.slice(view.first, view.first + ROWS);
    parts.list.replaceChildren(...places.map((place) => row(index, place)));
    parts.list.start = view.first + 1;
    for (const place of places) if (view.open.has(place)) show(place);
    announce();
  }

  function announce() {
    const [found, all] = [view.found.length, index.ids.length];
    const whole = reading.done || !view.wanted.text.trim();
    const reads = whole ? "" : `, ${Math.round(100 * reading.share)} % of the texts searched`;
    parts.count.textContent = found === all ? counted(all, "chain") : `${found.toLocaleString("en")} of ${counted(all, "chain")}${reads}`;
    parts.nothing.hidden = found > 0 || !whole;
    parts.pager.hidden = found <= ROWS;
    parts.place.textContent = `${view.first + 1}–${Math.min(found, view.first + ROWS)} of ${found.toLocaleString("en")}`;
    parts.earlier.disabled = view.first === 0;
    parts.later.disabled = view.first + ROWS >= found;
  }

  function progressed() {
    if (view.wanted.text.trim() && (reading.done || view.found.length < ROWS)) filter();
  }

  async function show(place) {
    const shown = document.getElementById(`chain-${place}`);
    const [head, body] = shown.children;
    head.setAttribute("aria-expanded", "true");
    shown.classList.add("open");
    body.hidden = false;
    if (!body.childElementCount) body.replaceChildren(...(await chainBody(place, view)));
  }

  function hide(place) {
    const shown = document.getElementById(`chain-${place}`);
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
    const { text, outcome, drop, opinions, sort } = view.wanted;
    parts.text.value = text;
    parts.drop.value = drop;
    parts["drop-text"].textContent = drop.toFixed(2);
    parts.opinions.value = opinions;
    parts.sort.value = sort;
    parts.filters.elements.outcome.value = outcome;
  }

  function openAsked() {
    const place = index.ids.indexOf(view.wanted.open);
    if (place < 0) return;
    view.open.add(place);
    const at = view.found.indexOf(place);
    if (at < 0) return;
    view.first = at - (at % ROWS);
    draw();
    document.getElementById(`chain-${place}`).scrollIntoView();
  }

  const chosen = () => {
    const drop = Number(parts.drop.value);
    parts["drop-text"].textContent = drop.toFixed(2);
    ask({ text: parts.text.value, outcome: parts.filters.elements.outcome.value, drop, opinions: parts.opinions.value, sort: parts.sort.value });
    filter();
  };
  parts.filters.addEventListener("input", chosen);
  // Not every browser sends "input" for a menu. A change of the text comes when it loses the focus, and must draw nothing.
  for (const menu of [parts.opinions, parts.sort]) menu.addEventListener("change", chosen);
  parts.all.addEventListener("click", () => {
    ask({ text: "", outcome: "", drop: 0, opinions: "" });
    fill();
    filter();
    parts.text.focus();
  });
  parts.filters.addEventListener("submit", (event) => event.preventDefault());
  parts.list.addEventListener("click", (event) => {
    const head = event.target.closest(".chain-head");
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
  listenToKeys(parts, turn);
  parts.filters.hidden = false;
  parts["opinions-part"].hidden = !index.consensus;
  fill();
  filter();
  openAsked();
}

async function begin() {
  const parts = partsOfPage();
  if (!window.DecompressionStream) {
    parts.count.textContent = "This browser is too old to unpack the chains: it has no DecompressionStream. labels/*.parquet has them.";
    return;
  }
  parts.count.textContent = "The chains are being unpacked.";
  start(parts, await unpacked("chains-index"));
  document.getElementById("browser").dataset.ready = "";
}

if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", begin);
else begin();
