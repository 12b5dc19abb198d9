"use strict";

const all = (selector, within = document) => [...within.querySelectorAll(selector)];

// -- methods: show and hide them in all figures ---------------------------------------------------

const series = all("[data-series]");
for (const button of all(".methods button")) {
  const own = series.filter((part) => part.dataset.series === button.dataset.method);
  const others = series.filter((part) => part.dataset.series !== button.dataset.method);
  button.addEventListener("click", () => {
    const shown = button.getAttribute("aria-pressed") !== "true";
    button.setAttribute("aria-pressed", shown);
    for (const part of own) part.classList.toggle("off", !shown);
  });
  const stress = (on) => {
    const shown = button.getAttribute("aria-pressed") === "true";
    for (const part of others) part.classList.toggle("faint", on && shown);
  };
  button.addEventListener("pointerenter", (event) => stress(event.pointerType === "mouse"));
  button.addEventListener("pointerleave", () => stress(false));
}

// -- figures: what a point or a bar says of itself ------------------------------------------------

const tip = document.getElementById("tip");
const NEAR = 20;
let spoken = null;

function hide() {
  tip.hidden = true;
}

function show(part) {
  spoken = part;
  tip.textContent = part.dataset.tip;
  tip.hidden = false;
  const box = part.getBoundingClientRect();
  const left = box.left + box.width / 2 - tip.offsetWidth / 2;
  const above = box.top - tip.offsetHeight - 8;
  const most = document.documentElement.clientWidth - tip.offsetWidth - 4;
  tip.style.left = `${Math.max(4, Math.min(left, most))}px`;
  tip.style.top = `${above < 4 ? box.bottom + 8 : above}px`;
}

function distance(part, x, y) {
  const box = part.getBoundingClientRect();
  if (!box.width || !box.height) return Infinity;
  const across = Math.max(box.left - x, 0, x - box.right);
  return Math.hypot(across, Math.max(box.top - y, 0, y - box.bottom));
}

for (const plot of all(".plot")) {
  const parts = all("[data-tip]", plot);
  let place = -1;
  const point = (event) => {
    const away = parts.map((part) => distance(part, event.clientX, event.clientY));
    const least = Math.min(...away);
    // Of those that lie on one another the last was drawn on top.
    place = least <= NEAR ? away.lastIndexOf(least) : -1;
    if (place < 0) hide();
    else show(parts[place]);
  };
  plot.addEventListener("pointermove", point);
  plot.addEventListener("pointerdown", point);
  plot.addEventListener("pointerleave", (event) => event.pointerType === "mouse" && hide());
  plot.addEventListener("blur", hide);
  plot.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (event.key === "Escape") hide();
    const seen = parts.filter((part) => distance(part, 0, 0) < Infinity);
    if (!step || !seen.length) return;
    event.preventDefault();
    const now = seen.indexOf(parts[place]);
    const next = now < 0 && step < 0 ? seen.length - 1 : (now + step + seen.length) % seen.length;
    place = parts.indexOf(seen[next]);
    seen[next].scrollIntoView({ block: "nearest", inline: "nearest" });
    show(seen[next]);
  });
}
const follow = () => tip.hidden || show(spoken);
document.addEventListener("scroll", follow, { capture: true, passive: true });

// -- what is wider than its box: say so, and fade out where it goes on --------------------------

for (const scroll of all(".scroll")) {
  const box = scroll.querySelector(".box, .plot");
  const look = () => {
    const wide = box.scrollWidth - box.clientWidth;
    const tall = box.scrollHeight - box.clientHeight >= 2;
    const hint = scroll.querySelector(".hint");
    hint.hidden = wide < 2 && !tall;
    hint.textContent = wide < 2 ? "Scroll down to see all rows ↓" : hint.dataset.text;
    scroll.classList.toggle("more", wide - box.scrollLeft >= 2);
  };
  box.addEventListener("scroll", look, { passive: true });
  new ResizeObserver(look).observe(box);
}

// -- the table of participants: sort and filter ---------------------------------------------------

const table = document.getElementById("participants");
const body = table.tBodies[0];
const rows = [...body.rows];
const words = new Intl.Collator("en", { numeric: true });
const value = (row, column) => parseFloat(row.cells[column].textContent.replace("−", "-"));

function sort(head, column) {
  const descending = head.getAttribute("aria-sort") === "ascending";
  for (const other of all("th[aria-sort]", table)) other.setAttribute("aria-sort", "none");
  head.setAttribute("aria-sort", descending ? "descending" : "ascending");
  const sign = descending ? -1 : 1;
  const text = (row) => row.cells[column].textContent;
  const ordered = [...rows];
  if (head.classList.contains("number")) {
    // What is missing stands last either way.
    const worst = sign * Infinity;
    const key = new Map(rows.map((row) => [row, value(row, column)]));
    const get = (row) => (Number.isNaN(key.get(row)) ? worst : key.get(row));
    ordered.sort((a, b) => (get(a) === get(b) ? 0 : sign * (get(a) - get(b))));
  } else {
    ordered.sort((a, b) => sign * words.compare(text(a), text(b)));
  }
  body.append(...ordered);
}

[...table.tHead.rows[0].cells].forEach((head, column) => {
  // A true button would keep the head from being printed on every page.
  const button = document.createElement("span");
  button.tabIndex = 0;
  button.setAttribute("role", "button");
  button.append(...head.childNodes);
  head.append(button);
  head.setAttribute("aria-sort", "none");
  button.addEventListener("click", () => sort(head, column));
  button.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    sort(head, column);
  });
});

const find = document.getElementById("find");
const budget = document.getElementById("budget");
const shown = document.getElementById("shown");

function filter() {
  const wanted = find.value.trim().toLowerCase();
  let count = 0;
  for (const row of rows) {
    const named = row.cells[0].textContent.toLowerCase().includes(wanted);
    row.hidden = !named || (budget.value !== "" && row.cells[1].textContent !== budget.value);
    count += !row.hidden;
  }
  shown.textContent = `${count} of ${rows.length} lines`;
}

find.addEventListener("input", filter);
budget.addEventListener("input", filter);
find.form.addEventListener("submit", (event) => event.preventDefault());
filter();

// -- files ----------------------------------------------------------------------------------------

const data = JSON.parse(document.getElementById("data").textContent);
for (const button of all("button.file")) {
  button.addEventListener("click", () => {
    const name = button.dataset.file;
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([data[name]], { type: "text/csv" }));
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  });
}
