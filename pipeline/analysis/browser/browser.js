// Starts the part of the page: the list of its entries, or its only one.

async function begin() {
  const page = document.getElementById("browser");
  const status = document.getElementById("browser-note");
  if (!window.DecompressionStream) {
    status.textContent = `This browser is too old to unpack the data: it has no DecompressionStream. ${page.dataset.files} has them.`;
    return;
  }
  status.textContent = "The data are being unpacked.";
  if (document.getElementById("browser-entry")) page.append(element("div", { id: "browser-one" }, ...entryBody(await unpacked("browser-entry"), "only", {})));
  else listing(await unpacked("browser-index"), page.dataset.files);
  status.remove();
  page.dataset.ready = "";
}

if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", begin);
else begin();
