// The SQL page: Ctrl+Enter runs the query, and the rows of a result are shown some at a time.
const form = document.getElementById("query");

form?.querySelector("textarea").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); form.requestSubmit(); }
});

function paged(box) {
  const size = Number(box.dataset.pages);
  const rows = [...box.querySelectorAll("tbody tr")];
  if (rows.length <= size || box.querySelector(".pager")) return;
  let first = 0;
  const bar = document.createElement("nav");
  bar.className = "pager foot";
  bar.setAttribute("aria-label", "Pages of the result");
  const back = document.createElement("button");
  const on = document.createElement("button");
  const told = document.createElement("span");
  back.type = on.type = "button";
  back.textContent = "Previous";
  on.textContent = "Next";
  told.className = "faint";
  told.setAttribute("aria-live", "polite");
  const show = (start) => {
    first = start;
    rows.forEach((row, index) => { row.hidden = index < first || index >= first + size; });
    back.disabled = first === 0;
    on.disabled = first + size >= rows.length;
    told.textContent = `${first + 1}–${Math.min(first + size, rows.length)} of ${rows.length}`;
  };
  back.addEventListener("click", () => show(first - size));
  on.addEventListener("click", () => show(first + size));
  bar.append(back, on, told);
  box.append(bar);
  show(0);
}

for (const box of document.querySelectorAll("[data-pages]")) paged(box);
document.addEventListener("htmx:load", (event) => { for (const box of event.detail.elt.querySelectorAll("[data-pages]")) paged(box); });
