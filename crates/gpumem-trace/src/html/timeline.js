"use strict";
// Draws what `model` has made of the trace.
(() => {
  const { span, charts, lanes, laneOfStream, bytes, time } = model;
  const LANE = 26;
  const LEFT = 160; // the scale of a chart, as wide as the names of the lanes

  // ---- the page around the canvases ----
  const make = (tag, parent, set = {}, text = "") => {
    const element = parent.appendChild(document.createElement(tag));
    for (const [name, value] of Object.entries(set)) element.setAttribute(name, value);
    if (text) element.textContent = text;
    return element;
  };
  for (const chart of charts) {
    const section = make("section", document.getElementById("charts"), {
      class: "chart", "data-device": chart.device, "data-kind": chart.kind, "data-peak": chart.peak,
      "data-reserved": chart.reserved,
    });
    make("h2", section, {}, `${chart.device}, ${chart.kind} memory: at most ${bytes(chart.peak)} in use, ` +
      `${bytes(chart.reserved)} reserved`);
    chart.canvas = make("canvas", section, { tabindex: "0", "aria-label": `${chart.kind} memory over time` });
    const keys = make("ul", section, { class: "keys" });
    const names = [...chart.labels, ...(chart.hasRest ? ["everything else"] : [])];
    names.forEach((name, index) => {
      const key = make("li", keys);
      make("i", key, { style: `--key:${chart.color(index)}` });
      key.append(name);
    });
    const key = make("li", keys);
    make("i", key, { class: "reserved" });
    key.append("reserved");
  }
  for (const lane of lanes) {
    const element = make("div", document.getElementById("names"), {
      class: "lane", "data-lane": lane.name, "data-events": lane.items.length, title: lane.name,
    }, lane.name);
    make("small", element, {}, ` ${lane.items.length}`);
  }
  const events = document.getElementById("events");
  const tip = document.getElementById("tip");
  const whole = document.getElementById("whole");

  // ---- drawing ----
  const view = { from: 0, to: span };
  let style = {};

  function prepare(canvas, height) {
    const ratio = window.devicePixelRatio || 1;
    const width = canvas.clientWidth;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    canvas.style.height = `${height}px`;
    const pen = canvas.getContext("2d");
    pen.scale(ratio, ratio);
    pen.clearRect(0, 0, width, height);
    pen.font = "11px system-ui, 'DejaVu Sans', sans-serif";
    return { pen, width, height };
  }
  // Where a time stands, right of a margin.
  const place = (width, left) => (at) => left + ((at - view.from) / (view.to - view.from)) * (width - left);
  const moment = (x, width, left) => view.from + ((x - left) / (width - left)) * (view.to - view.from);
  // The last step at or before a time.
  function stepAt(steps, at) {
    let [low, high] = [0, steps.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (steps[middle].at <= at) low = middle + 1; else high = middle;
    }
    return low - 1;
  }

  // For each column of pixels the step with most in use: no peak is lost, however many steps there are.
  function columns(chart, width, left) {
    const result = [];
    let next = Math.max(stepAt(chart.steps, view.from), 0);
    for (let x = left; x < width; x += 1) {
      const end = moment(x + 1, width, left);
      let [best, reserved] = [chart.steps[next].at <= end ? chart.steps[next] : null, 0];
      reserved = best ? best.reserved : 0;
      while (next + 1 < chart.steps.length && chart.steps[next + 1].at <= end) {
        next += 1;
        if (!best || chart.steps[next].total >= best.total) best = chart.steps[next];
        reserved = Math.max(reserved, chart.steps[next].reserved);
      }
      result.push({ step: best, reserved });
    }
    return result;
  }

  function niceStep(top) {
    let step = 1;
    while (top / step > 6) step *= 2;
    return step;
  }

  function drawChart(chart) {
    const { pen, width, height } = prepare(chart.canvas, 220);
    const [top, bottom] = [14, height - 20];
    // What is reserved sets the scale where it is not much more than what is in use.
    const showsAll = whole.checked || chart.reserved <= 1.5 * chart.peak;
    const most = Math.max(showsAll ? Math.max(chart.reserved, chart.peak) : chart.peak, 1) * 1.08;
    const y = (value) => bottom - (value / most) * (bottom - top);
    const x = place(width, LEFT);
    pen.strokeStyle = style.line;
    pen.fillStyle = style.soft;
    pen.textAlign = "right";
    const step = niceStep(most);
    for (let value = 0; value <= most; value += step) {
      pen.beginPath();
      pen.moveTo(LEFT, y(value) + 0.5);
      pen.lineTo(width, y(value) + 0.5);
      pen.stroke();
      pen.fillText(bytes(value), LEFT - 6, y(value) + 4);
    }
    pen.textAlign = "center";
    for (let tick = 0; tick <= 8; tick += 1) {
      const at = view.from + ((view.to - view.from) * tick) / 8;
      pen.textAlign = tick === 0 ? "left" : tick === 8 ? "right" : "center";
      pen.fillText(time(at), x(at) + (tick === 8 ? -4 : 0), height - 5);
    }
    if (chart.steps.length === 0) return;
    const shown = columns(chart, width, LEFT);
    const base = new Array(shown.length).fill(0);
    for (let band = 0; band <= chart.labels.length; band += 1) {
      pen.fillStyle = chart.color(band);
      pen.beginPath();
      shown.forEach(({ step }, index) => {
        const value = step ? step.row[band] : 0;
        if (value <= 0) return;
        const upper = y(base[index] + value);
        pen.rect(LEFT + index, upper, 1, y(base[index]) - upper);
        base[index] += value;
      });
      pen.fill();
    }
    pen.save();
    pen.beginPath();
    pen.rect(LEFT, top, width - LEFT, bottom - top);
    pen.clip();
    pen.strokeStyle = style.text;
    pen.setLineDash([5, 4]);
    pen.beginPath();
    shown.forEach(({ reserved }, index) => {
      if (index === 0) pen.moveTo(LEFT, y(reserved)); else pen.lineTo(LEFT + index, y(reserved));
    });
    pen.stroke();
    pen.restore();
    const peak = x(chart.peakAt);
    if (peak >= LEFT && peak <= width) {
      pen.strokeStyle = style.text;
      pen.setLineDash([2, 3]);
      pen.beginPath();
      pen.moveTo(peak, top);
      pen.lineTo(peak, bottom);
      pen.stroke();
      pen.fillStyle = style.text;
      const atRight = peak > width - 110;
      pen.textAlign = atRight ? "right" : "left";
      pen.fillText(`peak ${bytes(chart.peak)}`, peak + (atRight ? -5 : 5), top - 3);
    }
    pen.setLineDash([]);
    if (!showsAll && chart.reserved > most) {
      pen.fillStyle = style.soft;
      // Where the peak has left room.
      const atLeft = peak > (LEFT + width) / 2;
      pen.textAlign = atLeft ? "left" : "right";
      pen.fillText(`reserved: up to ${bytes(chart.reserved)} ↑`, atLeft ? LEFT + 6 : width - 6, top - 3);
    }
  }

  function drawLanes() {
    const { pen, width } = prepare(events, Math.max(lanes.length * LANE, LANE));
    const x = place(width, 0);
    lanes.forEach((lane, index) => {
      const top = index * LANE;
      pen.fillStyle = style.line;
      pen.fillRect(0, top + LANE - 1, width, 1);
      let last = {};
      for (const item of lane.items) {
        if (item.at < view.from || item.from > view.to) continue;
        const [left, right] = [x(item.from), x(item.at)];
        const slot = `${Math.round(right)} ${item.color}`;
        if (item.from === item.at && last[item.shape] === slot) continue; // on the same pixels
        last[item.shape] = slot;
        drawItem(pen, item, left, right, top, index);
      }
    });
  }

  function drawItem(pen, item, left, right, top, index) {
    const middle = top + LANE / 2;
    if (item.shape === "wait") {
      pen.fillStyle = style.wait;
      pen.strokeStyle = style.wait;
      if (item.from < item.at) {
        pen.fillRect(left, middle - 3, Math.max(right - left, 2), 6);
        return;
      }
      const other = laneOfStream(item.to);
      if (other >= 0) {
        pen.beginPath();
        pen.moveTo(right, other * LANE + LANE / 2);
        pen.lineTo(right, middle);
        pen.stroke();
      }
      pen.beginPath();
      pen.arc(right, middle, 3, 0, 2 * Math.PI);
      pen.fill();
      return;
    }
    pen.fillStyle = item.color;
    if (item.shape === "write") pen.fillRect(right - 1, top + 3, 3, LANE - 7);
    if (item.shape === "read") pen.fillRect(right - 1, top + 9, 3, LANE - 19);
    if (item.shape === "fail") {
      pen.fillStyle = style.fail;
      pen.fillRect(right - 2, top + 2, 5, LANE - 5);
    }
    if (item.shape === "allocate" || item.shape === "free") {
      const up = item.shape === "allocate";
      const [tip, foot] = up ? [top + 3, top + 12] : [top + LANE - 4, top + LANE - 13];
      pen.beginPath();
      pen.moveTo(right, tip);
      pen.lineTo(right - 4, foot);
      pen.lineTo(right + 4, foot);
      pen.fill();
    }
  }

  function draw() {
    const read = getComputedStyle(document.documentElement);
    for (const name of ["text", "soft", "line", "wait", "fail", "free"]) {
      style[name] = read.getPropertyValue(`--${name}`).trim();
    }
    document.getElementById("shown").textContent = `${time(view.from)} to ${time(view.to)} of ${time(span)}`;
    charts.forEach(drawChart);
    drawLanes();
  }

  // ---- looking closer ----
  function zoom(factor, around = (view.from + view.to) / 2) {
    const length = Math.min(Math.max((view.to - view.from) * factor, 100), span);
    const part = (around - view.from) / (view.to - view.from);
    move(around - part * length, length);
  }
  function move(from, length = view.to - view.from) {
    view.from = Math.min(Math.max(from, 0), span - length);
    view.to = view.from + length;
    draw();
  }
  const all = () => move(0, span);

  function show(event, text) {
    tip.hidden = !text;
    tip.textContent = text;
    const [width, height] = [tip.offsetWidth, tip.offsetHeight];
    tip.style.left = `${Math.min(event.clientX + 14, innerWidth - width - 8)}px`;
    tip.style.top = `${Math.min(event.clientY + 14, innerHeight - height - 8)}px`;
  }
  function tellChart(chart, at) {
    const step = chart.steps[stepAt(chart.steps, at)];
    if (!step) return "";
    const names = [...chart.labels, "everything else"];
    const parts = names.map((name, band) => [name, step.row[band]]).filter(([, value]) => value > 0);
    return [`${time(at)}: ${bytes(step.total)} in use, ${bytes(step.reserved)} reserved`,
      ...parts.map(([name, value]) => `${bytes(value)}  ${name}`)].join("\n");
  }
  function tellLane(x, y, width) {
    const lane = lanes[Math.floor(y / LANE)];
    if (!lane) return "";
    const at = place(width, 0);
    const off = (item) => (x >= at(item.from) && x <= at(item.at) ? 0 : Math.abs(at(item.at) - x));
    const near = lane.items.filter((item) => off(item) <= 4);
    const lines = near.slice(0, 8).map((item) => `${time(item.from)}: ${item.text}`);
    if (near.length > 8) lines.push(`and ${near.length - 8} more`);
    return lines.join("\n");
  }

  function listen(canvas, left, tell) {
    let drag = null;
    const inside = (event) => event.clientX - canvas.getBoundingClientRect().left;
    canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      zoom(event.deltaY > 0 ? 1.25 : 0.8, moment(Math.max(inside(event), left), canvas.clientWidth, left));
    }, { passive: false });
    canvas.addEventListener("pointerdown", (event) => {
      drag = { x: event.clientX, from: view.from };
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointerup", () => { drag = null; });
    canvas.addEventListener("pointerleave", () => { tip.hidden = true; });
    canvas.addEventListener("pointermove", (event) => {
      if (drag) {
        const perPixel = (view.to - view.from) / (canvas.clientWidth - left);
        move(drag.from - (event.clientX - drag.x) * perPixel);
      } else {
        show(event, tell(inside(event), event.clientY - canvas.getBoundingClientRect().top, canvas.clientWidth));
      }
    });
    canvas.addEventListener("dblclick", all);
    canvas.addEventListener("keydown", (event) => {
      const length = view.to - view.from;
      const act = { "+": () => zoom(0.8), "-": () => zoom(1.25), "0": all,
        ArrowLeft: () => move(view.from - length / 10), ArrowRight: () => move(view.from + length / 10) }[event.key];
      if (act) { event.preventDefault(); act(); }
    });
  }
  for (const chart of charts) {
    listen(chart.canvas, LEFT, (x, y, width) => tellChart(chart, moment(Math.max(x, LEFT), width, LEFT)));
  }
  listen(events, 0, tellLane);
  document.querySelector(".bar").addEventListener("click", (event) => {
    const act = { in: () => zoom(0.5), out: () => zoom(2), all }[event.target.dataset?.do];
    if (act) act();
  });
  whole.addEventListener("change", draw);
  addEventListener("resize", draw);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  // A link may name a part of the time, in nanoseconds: `photo.html#1000-250000`.
  const part = location.hash.match(/^#(\d+)-(\d+)$/);
  if (part && Number(part[1]) < Number(part[2])) {
    view.from = Math.min(Number(part[1]), span - 1);
    view.to = Math.min(Number(part[2]), span);
  }
  document.getElementById("picture").hidden = false;
  draw();
  document.body.dataset.drawn = "true";
})();
