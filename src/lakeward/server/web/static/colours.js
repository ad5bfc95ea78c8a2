// The colours of the style sheet for what is drawn on canvases; they change with the theme.
export function colours() {
  const style = getComputedStyle(document.documentElement);
  return new Proxy({}, { get: (_, name) => style.getPropertyValue(`--${String(name).replace(/_/g, "-")}`).trim() });
}

export function whenColoursChange(redraw) {
  document.addEventListener("themechange", redraw);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
}
