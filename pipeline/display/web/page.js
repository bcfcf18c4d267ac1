"use strict";
(() => {
  const root = document.documentElement;
  const button = document.getElementById("theme");
  const KEY = "stepvalue-theme";
  const system = window.matchMedia("(prefers-color-scheme: dark)");
  const shown = () => root.dataset.theme || (system.matches ? "dark" : "light");
  const announce = () => {
    button.setAttribute("aria-pressed", String(shown() === "dark"));
  };
  // A page opened from a file may have no local storage.
  try {
    const kept = localStorage.getItem(KEY);
    if (kept === "light" || kept === "dark") root.dataset.theme = kept;
  } catch {}
  button.hidden = false;
  button.addEventListener("click", () => {
    root.dataset.theme = shown() === "dark" ? "light" : "dark";
    try {
      localStorage.setItem(KEY, root.dataset.theme);
    } catch {}
    announce();
  });
  system.addEventListener("change", announce);
  announce();
})();
