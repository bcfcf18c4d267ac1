// The chain browser: the list of chains. A text is searched in all texts as soon as they are read.

whenLoaded("browser", {
  data: "chains-index",
  things: "chains",
  packed: "chains",
  files: "labels/*.parquet",
  start(index) {
    const order = ordered(index);
    const reading = readTexts(index, progressed);
    const unread = (wanted) => !reading.done && wanted.text.trim() !== "";
    document.getElementById("browser-opinions-part").hidden = !index.consensus;
    const list = listing({
      name: "browser",
      noun: "chain",
      index,
      matching(wanted) {
        if (wanted.text.trim()) reading.hurried = true;
        return matching(index, order(wanted.sort), reading.texts, wanted);
      },
      cells: (place) => cells(index, place),
      body: (place) => chainBody(place, index),
      unread: (wanted) => (unread(wanted) ? `, ${Math.round(100 * reading.share)} % of the texts searched` : ""),
      drawn(wanted) {
        document.getElementById("browser-drop-text").textContent = wanted.drop.toFixed(2);
      },
    });

    function progressed() {
      const { wanted, found } = list.view;
      if (wanted.text.trim() && (reading.done || found.length < ROWS)) list.filter();
    }
  },
});
