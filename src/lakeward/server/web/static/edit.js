// The editor of a manual table: marks what was typed, moves between rows by keyboard, and adds rows.
const sheet = document.getElementById("sheet");
let leaving = false;

const mark = (cell) => cell.classList.toggle("typed", cell.value !== cell.dataset.was);
const typed = () => sheet.querySelector("textarea.typed, .gone") !== null;

sheet.addEventListener("input", (event) => { if (event.target.matches("textarea")) mark(event.target); });
sheet.addEventListener("change", (event) => {
  if (event.target.matches('input[type="checkbox"]')) event.target.closest("tr").classList.toggle("gone", event.target.checked);
});
// Enter goes down, as in a sheet; with Shift it ends a line in the cell. Arrows go up and down from a cell of one line.
sheet.addEventListener("keydown", (event) => {
  const cell = event.target;
  if (!cell.matches("textarea")) return;
  const oneLine = !cell.value.includes("\n");
  const down = (event.key === "Enter" && !event.shiftKey && !event.isComposing) || (event.key === "ArrowDown" && oneLine);
  const up = event.key === "ArrowUp" && oneLine;
  if (!down && !up) return;
  event.preventDefault();
  const rows = [...sheet.querySelectorAll("tbody tr")];
  const next = rows[rows.indexOf(cell.closest("tr")) + (down ? 1 : -1)];
  const place = [...cell.closest("tr").querySelectorAll("textarea")].indexOf(cell);
  next?.querySelectorAll("textarea")[place]?.focus();
});
document.getElementById("add-row").addEventListener("click", () => {
  const rows = sheet.querySelectorAll("tbody.new tr");
  const copy = rows[rows.length - 1].cloneNode(true);
  for (const cell of copy.querySelectorAll("textarea")) {
    cell.name = cell.name.replace(/^n\.\d+/, `n.${rows.length}`);
    cell.setAttribute("aria-label", cell.getAttribute("aria-label").replace(/\d+$/, String(rows.length + 1)));
    cell.value = "";
    cell.classList.remove("typed");
  }
  rows[rows.length - 1].after(copy);
  copy.querySelector("textarea").focus();
});
sheet.addEventListener("submit", () => { leaving = true; });
addEventListener("beforeunload", (event) => { if (!leaving && typed()) event.preventDefault(); });
