"use strict";
// Tooltips, sortable tables, and the scatter of sweeps. Without it the page shows all but that scatter.
(() => {
  const NS = "http://www.w3.org/2000/svg";
  const tip = document.getElementById("tip");

  // ---------------------------------------------------------------- tooltips: anything with data-tip, by pointer or focus
  function showTip(target, x, y) {
    tip.textContent = target.dataset.tip;
    tip.hidden = false;
    const box = tip.getBoundingClientRect();
    tip.style.left = Math.max(4, Math.min(x + 14, innerWidth - box.width - 8)) + "px";
    tip.style.top = Math.max(4, y + 18 + box.height > innerHeight ? y - box.height - 10 : y + 18) + "px";
  }
  const owner = (event) => event.target.closest ? event.target.closest("[data-tip]") : null;
  document.addEventListener("pointerover", (event) => {
    const target = owner(event);
    if (target) showTip(target, event.clientX, event.clientY); else tip.hidden = true;
  });
  document.addEventListener("focusin", (event) => {
    const target = owner(event);
    if (!target) return;
    const box = target.getBoundingClientRect();
    showTip(target, box.left, box.top);
  });
  document.addEventListener("focusout", () => { tip.hidden = true; });
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") tip.hidden = true; });

  // ---------------------------------------------------------------- tables
  function keyOf(cell) {
    const data = cell.querySelector("data");
    if (data) return data.value === "" ? null : Number(data.value);
    const text = cell.textContent.trim();
    if (text === "" || text === "-") return null;
    return isNaN(text) ? text : Number(text);
  }
  function compare(a, b) {
    if (a === null || b === null) return (a === null) - (b === null);
    if (typeof a === "number" && typeof b === "number") return a - b;
    return String(a).localeCompare(String(b), undefined, {numeric: true});
  }
  function sortBy(table, column) {
    const heads = [...table.tHead.rows[0].cells];
    const falling = heads[column].getAttribute("aria-sort") === "ascending";
    heads.forEach((head) => head.removeAttribute("aria-sort"));
    heads[column].setAttribute("aria-sort", falling ? "descending" : "ascending");
    const rows = [...table.tBodies[0].rows].map((row) => [keyOf(row.cells[column]), row]);
    // What has no figure stays behind, whichever way.
    rows.sort(([a], [b]) => a === null || b === null ? compare(a, b) : (falling ? compare(b, a) : compare(a, b)));
    table.tBodies[0].append(...rows.map(([, row]) => row));
  }
  for (const table of document.querySelectorAll("table.sortable")) {
    [...table.tHead.rows[0].cells].forEach((head, column) => {
      const button = document.createElement("button");
      button.textContent = head.textContent;
      button.title = "Sort";
      button.addEventListener("click", () => sortBy(table, column));
      head.replaceChildren(button);
    });
  }

  // ---------------------------------------------------------------- sweeps
  function svg(name, attributes, parent) {
    const element = document.createElementNS(NS, name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    if (parent) parent.append(element);
    return element;
  }
  function shown(value) {
    if (typeof value !== "number") return value === null ? "-" : String(value);
    if (Number.isInteger(value) && Math.abs(value) < 1e9) return String(value);
    return Math.abs(value) >= 1e6 || (value !== 0 && Math.abs(value) < 1e-3) ? value.toExponential(2)
      : String(Number(value.toPrecision(5)));
  }
  // A key's value as it was: who reads it may want to type it.
  const exact = (value) => value === null ? "-" : String(value);
  // Of marks so far apart, with the digits in which they differ.
  function tickText(mark, step) {
    const size = Math.abs(mark);
    if (size < 1e9 && (size === 0 || size >= 1e-3)) return String(Number(mark.toPrecision(12)));
    const digits = Math.floor(Math.log10(size) + 1e-9) - Math.floor(Math.log10(step || size) + 1e-9);
    return mark.toExponential(Math.min(20, Math.max(0, digits)));
  }
  function ticks(low, high) {
    if (high <= low) return [low];
    let step = 10 ** Math.floor(Math.log10((high - low) / 5));
    step *= [1, 2, 5, 10].find((m) => (high - low) / (step * m) <= 7);
    const marks = [];
    for (let i = Math.ceil(low / step - 1e-9); i <= Math.floor(high / step + 1e-9); ++i) marks.push(i * step);
    return marks;
  }
  // Indices of `points` to which no other is at least as good in both, and better in one.
  function frontOf(points, signX, signY) {
    const order = points.map((point, index) => [signX * point[0], signY * point[1], index])
      .sort((a, b) => a[0] - b[0] || a[1] - b[1]);
    const front = [];
    let best = Infinity, bestX = NaN;
    for (const [x, y, index] of order) {
      if (y < best || (y === best && x === bestX)) {
        front.push(index);
        best = y;
        bestX = x;
      }
    }
    return front;
  }

  function drawSweep(root) {
    const {columns, points} = JSON.parse(root.querySelector('script[type="application/json"]').textContent);
    const select = (role) => root.querySelector(`select[data-role="${role}"]`);
    if (!select("x")) return;
    const at = (name) => columns.findIndex((column) => column.name === name);
    const textOf = (index, point) => (columns[index].axis ? exact : shown)(point[index]);
    const axes = columns.map((column, index) => ({...column, index})).filter((column) => column.axis);

    function scatter() {
      const x = at(select("x").value), y = at(select("y").value);
      const kept = points.map((point, number) => ({point, number}))
        .filter(({point}) => typeof point[x] === "number" && typeof point[y] === "number");
      const place = root.querySelector(".scatter");
      place.replaceChildren();
      if (kept.length === 0) return;
      const W = 900, H = 420, L = 74, R = 16, T = 14, B = 46;
      const xs = kept.map(({point}) => point[x]), ys = kept.map(({point}) => point[y]);
      const range = (values) => {
        const low = Math.min(...values), high = Math.max(...values), pad = (high - low || Math.abs(high) || 1) * 0.05;
        return [low - pad, high + pad];
      };
      const [x0, x1] = range(xs), [y0, y1] = range(ys);
      const px = (value) => L + (value - x0) / (x1 - x0) * (W - L - R);
      const py = (value) => H - B - (value - y0) / (y1 - y0) * (H - T - B);
      const picture = svg("svg", {class: "chart", viewBox: `0 0 ${W} ${H}`, role: "group",
        "aria-label": `Scatter of ${columns[y].label} over ${columns[x].label}`}, place);
      const yMarks = ticks(y0, y1), xMarks = ticks(x0, x1);
      for (const mark of yMarks) {
        svg("line", {class: "grid", x1: L, x2: W - R, y1: py(mark), y2: py(mark)}, picture);
        svg("text", {class: "tick", x: L - 6, y: py(mark) + 4, "text-anchor": "end"}, picture)
          .textContent = tickText(mark, yMarks[1] - yMarks[0]);
      }
      for (const mark of xMarks) {
        svg("line", {class: "grid", x1: px(mark), x2: px(mark), y1: T, y2: H - B}, picture);
        svg("text", {class: "tick", x: px(mark), y: H - B + 16, "text-anchor": "middle"}, picture)
          .textContent = tickText(mark, xMarks[1] - xMarks[0]);
      }
      svg("text", {x: (L + W - R) / 2, y: H - 8, "text-anchor": "middle"}, picture).textContent = columns[x].label;
      svg("text", {"text-anchor": "middle", transform: `translate(15 ${(T + H - B) / 2}) rotate(-90)`}, picture)
        .textContent = columns[y].label;

      const sign = (role) => select(role).value === "lower" ? 1 : -1;
      const front = new Set(frontOf(kept.map(({point}) => [point[x], point[y]]), sign("x-better"), sign("y-better")));
      const line = [...front].map((index) => kept[index].point).sort((a, b) => a[x] - b[x] || a[y] - b[y]);
      svg("path", {class: "front-line", d: "M" + line.map((p) => `${px(p[x])} ${py(p[y])}`).join("L")}, picture);
      kept.forEach(({point, number}, index) => {
        const text = [columns[x], columns[y]].map((column, i) => `${column.label}: ${textOf(i === 0 ? x : y, point)}`)
          .concat(axes.map((axis) => `${axis.key}: ${exact(point[axis.index])}${point[axis.index] === null ? "" : axis.suffix}`))
          .concat(front.has(index) ? ["on the Pareto front"] : []).join("\n");
        const shape = front.has(index)
          ? svg("rect", {class: "point front", x: px(point[x]) - 5, y: py(point[y]) - 5, width: 10, height: 10}, picture)
          : svg("circle", {class: "point", cx: px(point[x]), cy: py(point[y]), r: 4.5}, picture);
        shape.dataset.tip = text;
        shape.dataset.point = number;
        shape.setAttribute("tabindex", "0");
        shape.setAttribute("role", "img");
        shape.setAttribute("aria-label", text.replaceAll("\n", ", "));
      });
      listFront([...front].map((index) => kept[index]), x, y);
    }

    function listFront(front, x, y) {
      front.sort((a, b) => a.point[x] - b.point[x] || a.point[y] - b.point[y]);
      const table = document.createElement("table");
      const chosen = [x, y, ...axes.map((axis) => axis.index).filter((index) => index !== x && index !== y)];
      const head = table.createTHead().insertRow();
      for (const index of chosen) {
        const cell = document.createElement("th");
        cell.scope = "col";
        cell.textContent = columns[index].label;
        head.append(cell);
      }
      const body = table.createTBody();
      for (const {point, number} of front) {
        const row = body.insertRow();
        row.dataset.point = number;
        for (const index of chosen) row.insertCell().textContent = textOf(index, point);
      }
      const box = document.createElement("div");
      box.className = "scroll";
      box.append(table);
      const said = document.createElement("p");
      said.className = "chosen";
      said.textContent = `On the front of ${columns[x].label} (${select("x-better").value} is better) and ${columns[y].label} ` +
        `(${select("y-better").value} is better): ${front.length} of ${points.length} points`;
      root.querySelector("div.front").replaceChildren(said, box);
    }

    for (const role of ["x", "y"]) {
      select(role).addEventListener("change", () => {
        select(`${role}-better`).value = select(role).selectedOptions[0].dataset.better;
        scatter();
      });
      select(`${role}-better`).addEventListener("change", scatter);
    }
    const metric = select("metric");
    metric.addEventListener("change", () => {
      for (const part of root.querySelectorAll("[data-metric]")) part.hidden = part.dataset.metric !== metric.value;
    });
    scatter();
  }
  document.querySelectorAll(".sweep").forEach(drawSweep);
  document.documentElement.dataset.ready = "yes";
})();
