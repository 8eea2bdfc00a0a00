// Search, filters and sorting for the table of claims; it is whole and readable without them.
// Also opens what a link leads to, where a browser does not do so by itself.
"use strict";

function reveal() {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (!target) return;
  const folded = target.closest("details") || (target.matches("tr") && target.querySelector("details"));
  if (!folded) return;
  folded.open = true;
  target.scrollIntoView();
}

function choice(label, values, update) {
  const select = document.createElement("select");
  select.append(new Option("all", ""), ...values.map((value) => new Option(value, value)));
  select.addEventListener("input", update);
  const field = document.createElement("label");
  field.append(`${label} `, select);
  return [field, select];
}

function prepare(table) {
  const body = table.tBodies[0];
  const rows = [...body.rows];
  const distinct = (key) => [...new Set(rows.map((row) => row.dataset[key]))].sort();
  const search = Object.assign(document.createElement("input"), { type: "search" });
  const asked = document.createElement("label");
  asked.append("Search ", search);
  const told = document.createElement("output");
  const selects = {};
  const update = () => {
    const words = search.value.toLowerCase().split(/\s+/);
    for (const row of rows) {
      const text = row.textContent.toLowerCase();
      const chosen = Object.entries(selects).every(([key, select]) => !select.value || row.dataset[key] === select.value);
      row.hidden = !chosen || !words.every((word) => text.includes(word));
    }
    told.value = `${rows.filter((row) => !row.hidden).length} of ${rows.length} shown`;
  };
  search.addEventListener("input", update);
  const controls = document.createElement("form");
  controls.className = "controls";
  controls.addEventListener("submit", (event) => event.preventDefault());
  controls.append(asked);
  for (const key of ["verdict", "kind", "seeds"]) {
    const values = distinct(key);
    if (values.length < 2) continue;
    const [field, select] = choice(key[0].toUpperCase() + key.slice(1), values, update);
    selects[key] = select;
    controls.append(field);
  }
  controls.append(told);
  table.parentElement.before(controls);
  update();
  const places = new Map(rows.map((row, place) => [row, place]));
  const keys = { Claim: places, Expectation: places, Kind: "kind", Seeds: "seeds", Verdict: "verdict" };
  for (const head of table.tHead.rows[0].cells) {
    const key = keys[head.textContent];
    if (!key) continue;
    const value = (row) => (key === places ? places.get(row) : row.dataset[key]);
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      for (const each of table.tHead.rows[0].cells) each.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const compare = (a, b) => String(value(a)).localeCompare(value(b), "en", { numeric: true }) || places.get(a) - places.get(b);
      rows.sort((a, b) => (down ? compare(b, a) : compare(a, b)));
      body.append(...rows);
    });
    head.append(button);
  }
}

for (const table of document.querySelectorAll("table.claims")) if (table.tBodies[0].rows.length > 3) prepare(table);
addEventListener("hashchange", reveal);
reveal();
