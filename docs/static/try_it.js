// The page "Try it": adds up the terms of TABLE (try_it_table.js), by the decomposition of the error.
"use strict";

const SVG = "http://www.w3.org/2000/svg";
const PLOT = { left: 44, right: 410, top: 12, bottom: 256 };
const TERMS = [
  ["bias", "Squared bias"],
  ["variance", "Variance of a head, over H"],
  ["covariance", "Covariance of two heads, times 1 − 1/H"],
];

function find(name) {
  return document.getElementById(`try-${name}`);
}

function create(tag, attributes, text = "") {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.textContent = text;
  return element;
}

// Two digits: first order is accurate to about 5 %.
function digits(value) {
  return String(Number(value.toPrecision(2)));
}

function percent(value) {
  return `${Math.round(100 * value)} %`.replace("-", "−");
}

// Terms of the error of so many heads at the angle and bandwidth with those indices.
function decompose(angle, bandwidth, heads, noise) {
  const alone = TABLE.alone[bandwidth];
  const shared = TABLE.shared[angle][bandwidth];
  const both = 1 - 1 / heads;
  const terms = {
    bandwidth,
    bias: alone[0] / heads + both * shared[0],
    variance: (alone[1] + noise * alone[2]) / heads,
    covariance: both * (shared[1] + noise * shared[2]),
  };
  terms.error = terms.bias + terms.variance + terms.covariance;
  return terms;
}

// The same, at the chosen bandwidth, or at that of the least error.
function predict(angle, heads, settings) {
  if (!settings.best) return decompose(angle, settings.bandwidth, heads, settings.noise);
  const every = TABLE.alone.map((_, bandwidth) => decompose(angle, bandwidth, heads, settings.noise));
  return every.reduce((least, terms) => (terms.error < least.error ? terms : least));
}

function read() {
  return {
    angle: Number(find("angle").value),
    heads: Number(find("heads").value),
    noise: 10 ** Number(find("noise").value),
    bandwidth: Number(find("selectivity").value),
    best: find("best").checked,
  };
}

function tell(name, text) {
  find(`${name}-value`).textContent = text;
  find(name).setAttribute("aria-valuetext", text);
}

// Bands of the terms over the angle, the error of one head, and the chosen angle.
function draw(settings, single) {
  const chart = find("chart");
  const angles = TABLE.angles;
  const curves = angles.map((_, angle) => predict(angle, settings.heads, settings));
  const highest = Math.max(1, single.error, ...curves.map((terms) => terms.error));
  const x = (degrees) => PLOT.left + (PLOT.right - PLOT.left) * (degrees / 90);
  const y = (value) => PLOT.bottom - (PLOT.bottom - PLOT.top) * (value / (1.05 * highest));
  chart.replaceChildren(chart.firstElementChild);
  const add = (tag, attributes, text) => chart.append(create(tag, attributes, text));

  let floor = angles.map(() => 0);
  for (const [name] of TERMS) {
    const ceiling = floor.map((value, angle) => value + curves[angle][name]);
    const upper = ceiling.map((value, angle) => `${x(angles[angle])},${y(value)}`);
    const lower = floor.map((value, angle) => `${x(angles[angle])},${y(value)}`).reverse();
    add("polygon", { class: `try-${name}`, points: [...upper, ...lower].join(" ") });
    floor = ceiling;
  }
  for (const value of [0, 0.25, 0.5, 0.75, 1, 1.5, 2].filter((tick) => tick <= highest)) {
    add("text", { x: PLOT.left - 6, y: y(value) + 4, "text-anchor": "end" }, String(value));
  }
  for (const degrees of [0, 30, 60, 90]) {
    add("text", { x: x(degrees), y: PLOT.bottom + 16, "text-anchor": "middle" }, `${degrees}°`);
  }
  add("text", { x: (PLOT.left + PLOT.right) / 2, y: PLOT.bottom + 34, "text-anchor": "middle" }, "angle between two heads");
  add("path", { class: "try-axes", d: `M${PLOT.left} ${PLOT.top}V${PLOT.bottom}H${PLOT.right}` });
  add("path", { class: "try-single", d: `M${PLOT.left} ${y(single.error)}H${PLOT.right}` });
  add("text", { x: PLOT.left + 6, y: y(single.error) - 5 }, "error of one head");
  const chosen = x(angles[settings.angle]);
  add("path", { class: "try-chosen", d: `M${chosen} ${PLOT.top}V${PLOT.bottom}` });
  add("circle", { class: "try-chosen", cx: chosen, cy: y(floor[settings.angle]), r: 4 });
}

// Rows of the table, made once: a screen reader tells what changes alone.
function addRows() {
  const labels = [...TERMS, ["", "Error"], ["", "Skill"], ["", "Error against one head"]];
  for (const [name, label] of labels) {
    const row = find("terms").tBodies[0].insertRow();
    const heading = document.createElement("th");
    heading.scope = "row";
    heading.className = name && `try-${name}`;
    heading.textContent = label;
    row.append(heading);
    row.insertCell();
  }
}

function list(terms, single) {
  const values = TERMS.map(([name]) => digits(terms[name]));
  values.push(digits(terms.error), percent(1 - terms.error), percent(terms.error / single.error - 1));
  const rows = find("terms").tBodies[0].rows;
  values.forEach((value, index) => (rows[index].cells[1].textContent = value));
}

function update() {
  const settings = read();
  const terms = predict(settings.angle, settings.heads, settings);
  const single = predict(settings.angle, 1, settings);
  tell("angle", `${TABLE.angles[settings.angle]}°`);
  tell("heads", String(settings.heads));
  tell("noise", digits(settings.noise));
  find("selectivity").disabled = settings.best;
  find("selectivity").value = terms.bandwidth;
  tell("selectivity", digits(TABLE.selectivity[terms.bandwidth]));
  find("accuracy").textContent = percent(TABLE.error[terms.bandwidth]);
  find("chart-title").textContent =
    `Error by angle for ${settings.heads} heads: at ${TABLE.angles[settings.angle]}° it is ` +
    `${digits(terms.error)}, and that of one head is ${digits(single.error)}.`;
  draw(settings, single);
  list(terms, single);
}

find("angle").max = TABLE.angles.length - 1;
find("angle").value = 6;
find("heads").max = TABLE.heads;
find("selectivity").max = TABLE.selectivity.length - 1;
find("static").hidden = true;
document.getElementById("try").hidden = false;
addRows();
for (const input of document.querySelectorAll("#try input")) input.addEventListener("input", update);
update();
