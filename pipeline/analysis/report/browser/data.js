// The data in the page: the index, and blocks of texts and rollouts that are unpacked when they are needed.

const textsOf = blocksOf("chains-texts");
const examplesOf = blocksOf("chains-examples");

// The searchable text of each chain in lower case, read block by block. It waits for idle time unless `hurried` is set.
function readTexts(index, onProgress) {
  const texts = new Array(index.ids.length).fill(null);
  const reading = { texts, done: !texts.length, share: 0, hurried: false };
  const blocks = Math.ceil(texts.length / index.block);
  (async () => {
    for (let number = 0; number < blocks; number++) {
      if (!reading.hurried) await idle();
      const block = await unpacked(`chains-texts-${number}`);
      block.chains.forEach((chain, at) => {
        const place = number * index.block + at;
        const parts = [index.ids[place], index.sources[place], block.problems[chain.problem]];
        texts[place] = [...parts, chain.gold, chain.answer ?? "", ...chain.texts].join("\n").toLowerCase();
      });
      reading.done = number === blocks - 1;
      reading.share = (number + 1) / blocks;
      onProgress();
    }
  })();
  return reading;
}
