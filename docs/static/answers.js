// The page "All answers": shows the rows of its table that fit every field of its form.
"use strict";

const form = document.getElementById("answers-filter");
const rows = Array.from(document.querySelectorAll("#answers tbody tr"), (row) => {
  return { row, text: row.textContent.toLowerCase() };
});

// Whether a row has every word of the text, and the chosen value of every list.
function fits({ row, text }, { text: wanted, ...chosen }) {
  const words = wanted.toLowerCase().split(/\s+/);
  if (!words.every((word) => text.includes(word))) return false;
  return Object.entries(chosen).every(
    ([name, value]) => !value || row.dataset[name].split(";").includes(value),
  );
}

function filter() {
  const fields = Object.fromEntries(new FormData(form));
  let shown = 0;
  for (const item of rows) {
    item.row.hidden = !fits(item, fields);
    shown += !item.row.hidden;
  }
  document.getElementById("answers-count").textContent = `${shown} of ${rows.length} rows`;
}

form.hidden = false;
form.addEventListener("input", filter);
form.addEventListener("reset", () => setTimeout(filter));
form.addEventListener("submit", (event) => event.preventDefault());
filter();
