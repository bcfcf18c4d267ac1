// The list of problems.

function problemCells(index, place) {
  const name = element("span", { class: "name" });
  if (index.trust[place] === "n") name.append(element("span", { class: "pill differs" }, "not trusted"), " ");
  if (index.answers[place] === null) name.append(element("span", { class: "pill" }, "no answer"), " ");
  name.append(prose(index.sources[place] || index.ids[place], "source"), " ", prose(index.problems[place], "beginning"));
  return [
    outcomeMark(index.outcomes[place]),
    name,
    element("span", { class: "problem-answer" }, quiet("answer "), index.answers[place] === null ? "–" : prose(index.answers[place], "answer")),
    element("span", { class: "problem-confidence" }, quiet("confidence "), chip(index.confidence[place])),
    element("span", { class: "sd" }, `${amount(index.steps[place])} steps`),
  ];
}

whenLoaded("searches", {
  data: "problems-index",
  things: "problems",
  packed: "trees",
  files: "samples/*.parquet",
  start(index) {
    const order = ordered(index);
    listing({
      name: "searches",
      noun: "problem",
      index,
      matching: (wanted) => matching(index, order(wanted.sort), wanted),
      cells: (place) => problemCells(index, place),
      body: (place) => problemBody(index, place),
      unread: () => "",
      drawn: () => {},
    });
  },
});
