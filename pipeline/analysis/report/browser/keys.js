// Keys of a list. / works outside text fields, j and k in the list or while nothing has the focus, the arrows and
// Escape in the list.

const FOCUSED = ".chain-head, .step-open";
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

// Closes the open step or chain around the focus, and moves the focus to its button.
function closeAround(focused) {
  const step = focused.closest(".step");
  const inner = step?.querySelector(".step-open[aria-expanded=true]");
  const open = inner ?? focused.closest(".chain")?.querySelector(".chain-head[aria-expanded=true]");
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
