// The data in the page: the index, and blocks of texts and rollouts that are unpacked when they are needed.

const KEPT_BLOCKS = 6;

// Keeps the most recently used blocks of a kind. It keeps promises, so that two readers of one block unpack it once.
function blocksOf(kind) {
  const kept = new Map();
  return (number) => {
    const block = kept.get(number) ?? unpacked(`chains-${kind}-${number}`);
    kept.delete(number);
    kept.set(number, block);
    if (kept.size > KEPT_BLOCKS) kept.delete(kept.keys().next().value);
    return block;
  };
}

const textsOf = blocksOf("texts");
const examplesOf = blocksOf("examples");

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
