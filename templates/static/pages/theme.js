// Before anything is drawn: the look that this browser chose, else the system's own.
(() => {
  let chosen = null;
  try { chosen = localStorage.getItem("bench-theme"); } catch { /* a browser that keeps nothing follows the system */ }
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
})();
