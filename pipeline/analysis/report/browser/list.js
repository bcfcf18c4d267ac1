// A row of the list.

const STRIP_HEIGHT = 24;
const BAR_WIDTH = 10;
const NARROW_BAR_WIDTH = 5;
const MANY_STEPS = 20;
// A smaller drop would be shown as 0.00.
const LEAST_TOLD = 0.005;

// One bar per step. `values` are in percent, null if unknown.
function strip(values) {
  const bar = values.length > MANY_STEPS ? NARROW_BAR_WIDTH : BAR_WIDTH;
  const height = (value) => Math.max(1.5, (value / 100) * STRIP_HEIGHT);
  const bars = values.map((value, at) =>
    value === null
      ? drawing("circle", { class: "unknown", cx: (at + 0.5) * bar - 0.5, cy: STRIP_HEIGHT - 2, r: 1 })
      : drawing("rect", {
          class: level(value / 100),
          x: at * bar,
          y: STRIP_HEIGHT - height(value),
          width: bar - 1,
          height: height(value),
        }),
  );
  const width = values.length * bar;
  const ground = drawing("rect", { class: "ground", x: 0, y: 0, width, height: STRIP_HEIGHT });
  const size = { viewBox: `0 0 ${Math.max(1, width)} ${STRIP_HEIGHT}`, width, height: STRIP_HEIGHT };
  return drawing("svg", { class: "strip", "aria-hidden": "true", preserveAspectRatio: "none", ...size }, ground, ...bars);
}

function lost(size, step) {
  if (size < LEAST_TOLD) return element("span", { class: "lost none" }, "no drop");
  return element("span", { class: "lost" }, `▼ ${size.toFixed(2)} `, element("small", {}, `step ${step}`));
}

function cells(index, place) {
  const name = element("span", { class: "name" });
  const source = index.sources[place] || index.ids[place];
  const marks = marksOf(index, place);
  if (marks & DISAGREE) name.append(element("span", { class: "pill differs", title: "a witness and Monte Carlo name different first errors" }, "≠", quiet(" witnesses disagree")), " ");
  if (marks & LEFT_OUT) name.append(element("span", { class: "pill", title: "no step has a label" }, "left out"), " ");
  name.append(prose(source, "source"), " ", prose(index.problems[index.problem[place]], "beginning"));
  const sd = element("span", { class: "sd" }, quiet("uncertainty "), `± ${fixed(index.uncertainty[place])}`);
  return [
    outcomeMark(index.outcomes[place]),
    name,
    element("span", { class: "strip-place" }, strip(index.strips[place])),
    quiet(` ${counted(index.steps[place], "step")}, `),
    lost(index.drops[place], index.dropped[place]),
    sd,
  ];
}
