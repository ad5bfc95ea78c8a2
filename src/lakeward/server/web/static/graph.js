// Draws what stands in `data-graph` of an element: {nodes: [{id, label, kind, href}], edges: [{from, to, label}]}. Whatever
// it shows also stands beside it as a list; without scripts, or without Cytoscape, that is all that there is.

const KINDS = { source: "--busy", output: "--good", dataset: "--accent", model: "--warn", python: "--warn", fit: "--warn" };

function colour(name) { return getComputedStyle(document.documentElement).getPropertyValue(name).trim(); }

function style() {
  const kinds = Object.entries(KINDS).map(([kind, name]) => ({ selector: `node[kind="${kind}"]`, style: { "border-color": colour(name) } }));
  return [
    { selector: "node", style: {
      shape: "round-rectangle", label: "data(label)", "text-valign": "center", "text-halign": "center", "text-wrap": "wrap",
      "text-max-width": 220, width: "label", height: "label", padding: "9px", "font-size": 12, "font-family": "system-ui, sans-serif",
      color: colour("--ink"), "background-color": colour("--raised"), "border-width": 1.5, "border-color": colour("--line-strong"),
    } },
    ...kinds,
    { selector: "node[?here]", style: { "background-color": colour("--accent-soft"), "font-weight": "bold" } },
    { selector: "node[href]:active, node.hovered", style: { "background-color": colour("--sunken") } },
    { selector: "edge", style: {
      width: 1.5, "curve-style": "bezier", "target-arrow-shape": "triangle", "arrow-scale": 0.9, "line-color": colour("--line-strong"),
      "target-arrow-color": colour("--line-strong"), label: "data(label)", "font-size": 10, color: colour("--ink-soft"),
      "text-background-color": colour("--raised"), "text-background-opacity": 1, "text-background-padding": "2px",
    } },
  ];
}

function draw(element) {
  if (element.dataset.drawn || typeof cytoscape === "undefined") return;
  element.dataset.drawn = "yes";
  const given = JSON.parse(element.dataset.graph);
  const graph = cytoscape({
    container: element,
    elements: [
      ...given.nodes.map((each) => ({ data: each })),
      ...given.edges.map((each) => ({ data: { source: each.from, target: each.to, label: each.label || "" } })),
    ],
    style: style(),
    layout: { name: "dagre", rankDir: element.clientWidth < 560 ? "TB" : "LR", nodeSep: 18, rankSep: 56, fit: true, padding: 18 },
    minZoom: 0.15, maxZoom: 1.6, wheelSensitivity: 0.2, autoungrabify: true, boxSelectionEnabled: false, userZoomingEnabled: false,
  });
  if (graph.zoom() > 1) { graph.zoom(1); graph.center(); }
  graph.on("tap", "node[href]", (event) => { location.href = event.target.data("href"); });
  graph.on("mouseover", "node[href]", (event) => { event.target.addClass("hovered"); element.style.cursor = "pointer"; });
  graph.on("mouseout", "node[href]", (event) => { event.target.removeClass("hovered"); element.style.cursor = ""; });
  const again = () => graph.style(style());
  document.addEventListener("themechange", again);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", again);
  new ResizeObserver(() => { graph.resize(); graph.fit(undefined, 18); if (graph.zoom() > 1) { graph.zoom(1); graph.center(); } }).observe(element);
}

function drawAll(within) { for (const each of within.querySelectorAll("[data-graph]")) draw(each); }

drawAll(document);
document.addEventListener("htmx:load", (event) => drawAll(event.detail.elt));
