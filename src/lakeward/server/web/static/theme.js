// Before anything is drawn: the colours that were chosen here. Without a choice the system's count, by the style sheet.
(() => {
  let chosen = null;
  try { chosen = localStorage.getItem("theme"); } catch { /* storage is shut off */ }
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
})();
