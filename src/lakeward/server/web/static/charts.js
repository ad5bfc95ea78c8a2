// Draws every element with data-chart. What it shows also stands in a table of the page, for those who don't see it.
import { colours, whenColoursChange } from "./colours.js";

const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
const drawn = new Map();

function options(data) {
  const c = colours();
  const marked = new Set(data.marked || []);
  const text = { color: c.ink_soft, fontFamily: c.sans, fontSize: 11 };
  return {
    animation: !still, animationDuration: 250,
    color: [c.accent, c.warn, c.busy, c.good],
    textStyle: { fontFamily: c.sans },
    grid: { left: 8, right: 16, top: data.series.length > 1 ? 30 : 14, bottom: 6, containLabel: true },
    legend: data.series.length > 1 ? { top: 0, textStyle: text, itemHeight: 8 } : undefined,
    // In the canvas: a box of HTML would carry style attributes, which the page's policy forbids.
    tooltip: { trigger: "axis", renderMode: "richText", backgroundColor: c.raised, borderColor: c.line_strong, textStyle: { color: c.ink, fontSize: 12 }, axisPointer: { lineStyle: { color: c.line_strong } } },
    xAxis: { type: "category", data: data.labels, boundaryGap: data.kind === "bar", axisLabel: { ...text, hideOverlap: true }, axisLine: { lineStyle: { color: c.line } }, axisTick: { show: false } },
    yAxis: { type: "value", scale: data.kind !== "bar", splitNumber: 3, axisLabel: { ...text, formatter: (value) => Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 2 }).format(value) }, splitLine: { lineStyle: { color: c.line } } },
    series: data.series.map((each) => ({
      type: data.kind, name: each.name, symbol: "circle", showSymbol: data.labels.length <= 60, symbolSize: 5, connectNulls: true,
      lineStyle: { width: 1.75 }, barMaxWidth: 18,
      data: each.values.map((value, index) => marked.has(index) ? { value, symbolSize: 10, itemStyle: { color: c.bad } } : value),
    })),
  };
}

function draw(element) {
  if (!window.echarts) return;
  const chart = drawn.get(element) || window.echarts.init(element, null, { renderer: "canvas" });
  drawn.set(element, chart);
  chart.setOption(options(JSON.parse(element.dataset.chart)), true);
}

function drawAll(within) {
  for (const element of within.querySelectorAll("[data-chart]")) draw(element);
}

drawAll(document);
new ResizeObserver(() => { for (const chart of drawn.values()) chart.resize(); }).observe(document.getElementById("content"));
whenColoursChange(() => { for (const element of drawn.keys()) draw(element); });
document.addEventListener("htmx:load", (event) => drawAll(event.detail.elt));
