// An opened chain: its problem, its steps, and examples of the rollouts of a step.

const ORIGINS = {
  measured: "measured by its own rollouts",
  implied: "implied by neighbouring steps",
  terminal: "the outcome of the chain",
  unmeasured: "not measured",
};
const VERDICTS = { correct: "right", incorrect: "wrong", no_answer: "wrong" };
const FINISHES = {
  stop: "",
  length: "cut by sampling.max_tokens",
  abort: "aborted, no longer needed",
  too_long: "too long for the policy's context",
  engine_failed: "no engine answered",
};
const METER = 100;

function meter(value, low, high) {
  const parts = [drawing("rect", { class: "ground", x: 0, y: 4, width: METER, height: 8 })];
  if (value !== null) {
    const width = Math.max(1, Math.min(1, value) * METER);
    parts.push(drawing("rect", { class: level(value), x: 0, y: 4, width, height: 8 }));
  }
  if (low !== null && high > low) {
    parts.push(drawing("path", { class: "interval", d: `M${low * METER} 8H${high * METER}` }));
    for (const end of [low, high]) parts.push(drawing("path", { class: "interval", d: `M${end * METER} 5V11` }));
  }
  const size = { viewBox: `-1 0 ${METER + 2} 16`, preserveAspectRatio: "none" };
  return drawing("svg", { class: "meter", "aria-hidden": "true", ...size }, ...parts);
}

// One text for hover, focus, tap and print.
function numbers(chain, at, label, confidence) {
  const lines = [];
  const [low, high] = [chain.low[at], chain.high[at]];
  if (chain.origins[at] !== "terminal" && low !== null) {
    lines.push(`${Math.round(confidence * 100)} % interval ${fixed(low)} to ${fixed(high)}`);
  }
  if (chain.rollouts[at] || chain.origins[at] === "measured") {
    lines.push(`${chain.correct[at]} of ${counted(chain.rollouts[at], "graded rollout")} correct`);
  }
  if (chain.ungraded[at]) lines.push(`${chain.ungraded[at]} ungraded`);
  if (chain.truncated[at]) lines.push(`${chain.truncated[at]} cut by the token limit`);
  if (label) lines.push(`label: ${label[0]}`);
  lines.push(ORIGINS[chain.origins[at]] ?? "no value");
  return lines.join(" · ");
}

// The first error that Monte Carlo or a witness names, in words; null where it names no single place.
const placeText = (place) => (place === null ? "not known" : place === 0 ? "none" : `step ${place}`);
const percent = (share) => `${Math.round(100 * share)} %`;
const HOLDS = { 1: "holds", 0: "refuted" };

// What Monte Carlo and each witness say of a step, and how sure consensus is that no error is before its end.
function opinionsOf(chain, at, witnesses) {
  const agreed = chain.consensus;
  const mc = LABELS[agreed.mc[at - 1]] ?? UNCERTAIN;
  const said = element("p", { class: "opinions" }, element("span", { class: "opinion" }, "Monte Carlo ", labelMark(mc)));
  for (const opinion of agreed.opinions) {
    const share = opinion.shares[at - 1];
    const text = opinion.steps ? (HOLDS[opinion.steps[at - 1]] ?? "not checked") : share ? `first error ${percent(share)}` : "0 %";
    const accuses = opinion.steps ? opinion.steps[at - 1] === 0 : share > 0;
    const kind = opinion.place === at ? "opinion accuses named" : accuses ? "opinion accuses" : "opinion";
    said.append(element("span", { class: kind }, prose(witnesses[opinion.witness], "witness"), ` ${text}`));
  }
  if (agreed.free) said.append(element("span", { class: "opinion" }, `no error so far ${fixed(agreed.free[at - 1])}`));
  return said;
}

// What verifiers say of a step, with their evidence. A part that holds says nothing of its step.
function findingsOf(found) {
  return found.map(([verifier, verdict, whole, evidence]) => {
    const kind = verdict === "refuted" ? "opinion accuses" : "opinion";
    const text = ` ${verdict}${verdict === "holds" && !whole ? " in part" : ""}: `;
    return element("p", { class: "finding" }, element("span", { class: kind }, prose(verifier, "witness"), text), prose(evidence));
  });
}

// The first errors that each of them names, and what consensus made of the chain.
function agreedFacts(chain, witnesses, fact) {
  const agreed = chain.consensus;
  const labelled = chain.labels.some((label) => label !== null);
  fact("consensus", agreed.out === null ? (labelled ? "has labels" : "no step has a label") : element("span", { class: "left-out" }, "left out: ", prose(agreed.out)));
  fact("first error, Monte Carlo", placeText(agreed.mc_place));
  for (const opinion of agreed.opinions) {
    const share = opinion.place === null || opinion.steps ? null : opinion.place ? opinion.shares[opinion.place - 1] : opinion.none;
    const other = agreed.mc_place !== null && opinion.place !== null && opinion.place !== agreed.mc_place;
    const text = `${placeText(opinion.place)}${share === null ? "" : `, ${percent(share)}`}`;
    fact(["first error, ", prose(witnesses[opinion.witness], "witness")], element("span", { class: other ? "left-out" : "" }, text));
  }
  if (!agreed.opinions.length) fact("witnesses", "say nothing of this chain");
}

// Whether the whole interval of a value is below the interval of the last known value before it.
function apart(chain, at) {
  const before = chain.values.slice(0, at).findLastIndex((value) => value !== null);
  const [high, low] = [chain.high[at], chain.low[before]];
  return high !== null && low !== null && high !== undefined && low !== undefined && high < low;
}

// `at` counts prefixes: 0 is the bare problem.
function step(chain, at, place, index, witnesses) {
  const label = at ? (LABELS[chain.labels[at - 1]] ?? UNCERTAIN) : null;
  const id = `chain-${place}-${at}`;
  const drop = at > 0 && at === index.dropped[place] ? index.drops[place] : 0;
  const text = element("div", { class: "step-text" });
  text.append(at ? prose(chain.texts[at - 1]) : element("span", { class: "bare" }, "bare problem (before step 1)"));
  const clear = drop > 0 && apart(chain, at);
  const dropText = `▼ ${drop.toFixed(2)} largest drop`;
  if (drop) text.append(" ", element("span", { class: clear ? "largest" : "largest unsure" }, clear ? dropText : `${dropText}, intervals overlap`));
  if (at && chain.consensus) text.append(opinionsOf(chain, at, witnesses));
  if (at && chain.findings?.[at]) text.append(...findingsOf(chain.findings[at]));
  const counts = chain.rollouts[at] ? `${chain.correct[at]}/${chain.rollouts[at]}` : (chain.origins[at] ?? "");
  const shown = element("span", { class: "value" }, fixed(chain.values[at]));
  const open = element(
    "button",
    {
      type: "button",
      class: "step-open",
      "aria-expanded": "false",
      "aria-controls": `${id}-rollouts`,
      "aria-describedby": `${id}-numbers`,
    },
    quiet(at ? `Step ${at}, value ` : "Bare problem, value "),
    meter(chain.values[at], chain.origins[at] === "terminal" ? null : chain.low[at], chain.high[at]),
    shown,
    element("span", { class: "counts" }, counts),
    label ? labelMark(label) : element("span", {}),
  );
  const facts = numbers(chain, at, label, index.confidence);
  const tip = element("span", { class: "numbers", role: "tooltip", id: `${id}-numbers` }, facts);
  const rollouts = element("div", { class: "rollouts", id: `${id}-rollouts`, hidden: "" });
  const number = element("span", { class: "number-of", "aria-hidden": "true" }, at ? String(at) : "");
  const made = element("li", { class: clear ? "step fell" : "step" }, number, text, element("div", { class: "step-value" }, open, tip), rollouts);
  open.addEventListener("click", () => toggleRollouts(open, rollouts, chain, at, place, index));
  return made;
}

async function toggleRollouts(open, rollouts, chain, at, place, index) {
  const opening = open.getAttribute("aria-expanded") === "false";
  open.setAttribute("aria-expanded", String(opening));
  rollouts.hidden = !opening;
  if (!opening || rollouts.childElementCount) return;
  const block = await examplesOf(Math.floor(place / index.block));
  const found = block[chain.prefixes[at]] ?? [];
  if (rollouts.childElementCount) return;
  rollouts.append(found.length ? exampleList(found, chain, at) : element("p", { class: "browser-note" }, noExamples(chain, at)));
}

function noExamples(chain, at) {
  if (chain.origins[at] === "terminal") return "No rollouts: the value of the last step is the outcome of the chain.";
  if (!chain.rollouts[at] && !chain.ungraded[at]) return "No rollouts start here.";
  return "This page has no example of these rollouts; rollouts/*.parquet has all of them.";
}

function exampleList(found, chain, at) {
  const all = chain.rollouts[at] + chain.ungraded[at];
  const head = `${counted(found.length, "example")}${all > found.length ? ` of ${counted(all, "rollout")}` : ""}`;
  return element("div", {}, element("p", { class: "rollouts-head" }, head), element("ul", {}, ...found.map(example)));
}

function example([verdict, finish, tokens, answer, text]) {
  const kind = finish === "stop" || finish === "length" ? (VERDICTS[verdict] ?? "open") : "open";
  const words = [verdict.replace("_", " "), FINISHES[finish] ?? finish, counted(tokens, "token")];
  const head = element("p", { class: "example-head" }, element("span", { class: `verdict mark-${kind}` }, words.filter(Boolean).join(" · ")));
  if (answer) head.append(" · answer ", prose(answer, "answer"));
  return element("li", { class: `example example-${kind}` }, head, prose(text || "(no text)", "prose example-text"));
}

async function chainBody(place, index) {
  const block = await textsOf(Math.floor(place / index.block));
  const chain = block.chains[place % index.block];
  const facts = element("dl", { class: "chain-facts" });
  const fact = (name, ...value) => facts.append(element("div", {}, element("dt", {}, ...[name].flat()), element("dd", {}, ...value)));
  fact("correct answer", prose(chain.gold));
  fact("chain's answer", chain.answer === null ? "none stated" : prose(chain.answer));
  const outcome = OUTCOMES[index.outcomes[place]][0];
  const before = "by the value before the last step";
  fact("outcome", chain.p_outcome === null ? outcome : `${outcome}, probability ${fixed(chain.p_outcome)} ${before}`);
  if (chain.consensus) agreedFacts(chain, block.witnesses, fact);
  fact("chain_id", element("code", {}, index.ids[place]));
  const steps = chain.values.map((_, at) => step(chain, at, place, index, block.witnesses));
  return [
    element("div", { class: "problem" }, prose(block.problems[chain.problem])),
    facts,
    element("ol", { class: "steps", "aria-label": "Steps" }, ...steps),
  ];
}
