// The page of a problem's rollout trees: one for each unit of the run that has the problem.

function factsOf(data) {
  const facts = element("dl", { class: "chain-facts" });
  const fact = (name, ...value) => facts.append(element("div", {}, element("dt", {}, name), element("dd", {}, ...value)));
  fact("correct answer", prose(data.gold));
  const more = data.more ? [` and ${counted(data.more, "more row")}`] : [];
  if (data.sources.length) fact("id", ...data.sources.flatMap((name, at) => [at ? ", " : "", prose(name, "source")]), ...more);
  fact("problem_id", element("code", {}, data.id));
  return facts;
}

function treePart(data, name) {
  const tree = treeOf(data);
  const view = treeView(tree, name, { visible, rowElement });
  const said = [`${counted(data.steps, "distinct step")} of ${counted(data.rollouts, "rollout")} and the chains`];
  if (data.hidden) said.push(`${counted(data.hidden, "step")} with few rollouts not shown: rollouts/*.parquet has them`);
  return [treeBar(tree, view, said), view.list];
}

whenLoaded("trees", {
  data: "trees-data",
  things: "steps",
  packed: "tree",
  files: "rollouts/*.parquet",
  start(data) {
    const list = document.getElementById("trees-list");
    list.append(element("div", { class: "problem" }, prose(data.problem)), factsOf(data));
    data.trees.forEach((tree, at) => {
      const several = data.trees.length > 1;
      const name = several ? `Tree ${at + 1} of ${data.trees.length}` : "Tree of the problem";
      if (several) list.append(element("h3", {}, `${name}: the input has the problem in several units, which share no rollouts`));
      list.append(...treePart(tree, name));
    });
    document.getElementById("trees-count").textContent = "";
  },
});
