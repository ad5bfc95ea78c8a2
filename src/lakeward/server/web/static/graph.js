// Draws what stands in `data-graph` of an element: {nodes: [{id, label, kind, href, here}], edges: [{from, to, label}]}. Whatever
// it shows also stands beside it as a list; without scripts, or without Cytoscape, that is all that there is.
import { colours, whenColoursChange } from "./colours.js";

const KINDS = { source: "busy", output: "good", dataset: "accent", model: "warn", python: "warn", fit: "warn", running: "busy", done: "good", failed: "bad", waiting: "line_strong" };
const LINE = 16;

const measure = document.createElement("canvas").getContext("2d");

function width(text) {
  measure.font = `12px ${colours().sans}`;
  return Math.max(60, ...text.split("\n").map((line) => Math.ceil(measure.measureText(line).width))) + 22;
}

function style() {
  const c = colours();
  const kinds = Object.entries(KINDS).map(([kind, name]) => ({ selector: `node[kind="${kind}"]`, style: { "border-color": c[name] } }));
  return [
    { selector: "node", style: {
      shape: "round-rectangle", label: "data(label)", "text-valign": "center", "text-halign": "center", "text-wrap": "wrap", "line-height": 1.2,
      width: "data(width)", height: "data(height)", "font-size": 12, "font-family": c.sans, color: c.ink,
      "background-color": c.raised, "border-width": 1.5, "border-color": c.line_strong,
    } },
    ...kinds,
    { selector: "node[?here]", style: { "background-color": c.accent_soft, "border-width": 2, "font-weight": "bold" } },
    { selector: "node[href]:active, node.hovered", style: { "background-color": c.sunken } },
    { selector: "edge", style: {
      width: 1.5, "curve-style": "bezier", "target-arrow-shape": "triangle", "arrow-scale": 0.9, "line-color": c.line_strong,
      "target-arrow-color": c.line_strong, label: "data(label)", "font-size": 10, "font-family": c.sans, color: c.ink_soft,
      "text-background-color": c.raised, "text-background-opacity": 1, "text-background-padding": "2px",
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
      ...given.nodes.map((each) => ({ data: { ...each, width: width(each.label), height: LINE * each.label.split("\n").length + 16 } })),
      ...given.edges.map((each) => ({ data: { source: each.from, target: each.to, label: each.label || "" } })),
    ],
    style: style(),
    layout: { name: "dagre", rankDir: element.clientWidth < 560 ? "TB" : "LR", nodeSep: 18, rankSep: 64, fit: true, padding: 18 },
    // The wheel scrolls the page.
    minZoom: 0.15, maxZoom: 1.6, autoungrabify: true, boxSelectionEnabled: false, userZoomingEnabled: false,
  });
  const fit = () => { graph.fit(undefined, 18); if (graph.zoom() > 1) { graph.zoom(1); graph.center(); } };
  const box = graph.elements().boundingBox();
  element.style.height = `${Math.max(110, Math.min(box.h * Math.min(1, element.clientWidth / (box.w + 36)) + 36, 420))}px`;
  fit();
  graph.on("tap", "node[href]", (event) => { if (event.target.data("href")) location.assign(event.target.data("href")); });
  graph.on("mouseover", "node[href]", (event) => { event.target.addClass("hovered"); element.classList.add("pointing"); });
  graph.on("mouseout", "node[href]", (event) => { event.target.removeClass("hovered"); element.classList.remove("pointing"); });
  whenColoursChange(() => graph.style(style()));
  new ResizeObserver(() => { graph.resize(); fit(); }).observe(element);
}

function drawAll(within) { for (const each of within.querySelectorAll("[data-graph]")) draw(each); }

drawAll(document);
document.addEventListener("htmx:load", (event) => drawAll(event.detail.elt));
