// What every page does beyond HTML: the colour switch, the menu of small screens, copying, and what htmx needs to say.

const root = document.documentElement;

function store(name, value) {
  try { localStorage.setItem(name, value); } catch { /* storage is shut off: it holds for this page */ }
}

function theme() {
  for (const input of document.querySelectorAll('input[name="theme"]')) {
    input.checked = input.value === (root.dataset.theme || "auto");
    input.addEventListener("change", () => {
      if (input.value === "auto") delete root.dataset.theme; else root.dataset.theme = input.value;
      store("theme", input.value);
      document.dispatchEvent(new CustomEvent("themechange"));
    });
  }
}

function menu() {
  const button = document.querySelector("button.menu");
  const navigation = document.getElementById("navigation");
  if (!button || !navigation) return;
  root.classList.add("scripted");
  const show = (open) => {
    button.setAttribute("aria-expanded", String(open));
    navigation.classList.toggle("open", open);
  };
  button.addEventListener("click", () => show(button.getAttribute("aria-expanded") !== "true"));
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && button.getAttribute("aria-expanded") === "true") { show(false); button.focus(); }
  });
}

function copying(within) {
  for (const button of within.querySelectorAll("button.copy")) {
    if (!navigator.clipboard) continue;
    button.hidden = false;
    button.addEventListener("click", async () => {
      const code = button.closest("figure").querySelector("code").textContent;
      try { await navigator.clipboard.writeText(code); button.textContent = "Copied"; }
      catch { button.textContent = "Select it by hand"; }
      setTimeout(() => { button.textContent = "Copy"; }, 2000);
    });
  }
}

// Forms that send on their own whenever a field changes: their button is for those without scripts.
function sending(within) {
  for (const form of within.querySelectorAll("form[data-send-on-change]")) {
    form.addEventListener("change", () => form.requestSubmit());
  }
}

function arrived(within) { copying(within); sending(within); }

theme();
menu();
arrived(document);
document.addEventListener("htmx:load", (event) => { if (event.detail.elt !== document.body) arrived(event.detail.elt); });
// An answer that says what went wrong is shown, too: the server says where.
document.addEventListener("htmx:beforeSwap", (event) => {
  if (event.detail.xhr.status >= 400 && event.detail.xhr.getResponseHeader("HX-Retarget")) event.detail.shouldSwap = true;
});
document.addEventListener("htmx:sendError", () => {
  const said = document.getElementById("said");
  if (!said) return;
  const message = document.createElement("div");
  message.className = "message error";
  message.textContent = "The server does not answer. What is shown here may be old.";
  said.replaceChildren(message);
});
// What was said of the page before is not of this one.
document.addEventListener("htmx:beforeRequest", (event) => {
  if (!event.detail.elt.closest("[data-quiet]")) document.getElementById("said")?.replaceChildren();
});
