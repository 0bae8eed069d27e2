"use strict";
// From the trace to what is drawn. The format of a trace is that of `gpumem::trace::Trace`.
const model = ((trace) => {
  const COLORS = ["#4c78a8", "#f58518", "#54a24b", "#b279a2", "#eeca3b", "#72b7b2", "#e45756", "#9d755d"];
  const REST = "#9aa5b1";
  const MOST_LANES = 300;

  // ---- numbers for people ----
  const bytes = (value) => {
    const units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let unit = 0;
    while (value >= 1024 && unit < 4) { value /= 1024; unit += 1; }
    return `${unit === 0 || Number.isInteger(value) ? value : value.toFixed(1)} ${units[unit]}`;
  };
  const time = (ns) => {
    if (ns < 1e3) return `${Math.round(ns)} ns`;
    if (ns < 1e6) return `${(ns / 1e3).toFixed(1)} µs`;
    return ns < 1e9 ? `${(ns / 1e6).toFixed(2)} ms` : `${(ns / 1e9).toFixed(2)} s`;
  };

  // ---- the trace as what is drawn ----
  const label = (memory) => {
    const { name, operation } = trace.allocations[memory];
    if (name !== null) return trace.names[name];
    return operation !== null ? trace.operations[operation] : "made before the trace";
  };

  // For each device and kind: (time, bytes of each label, bytes reserved) whenever one changes.
  function usage() {
    const charts = new Map();
    const chart = (device, kind) => {
      const key = `${device} ${kind}`;
      if (!charts.has(key)) {
        charts.set(key, { device: trace.devices[device].name, kind, changes: [], reserved: 0, held: new Map() });
      }
      return charts.get(key);
    };
    const add = (of, at, label, used, reserved) => of.changes.push({ at, label, used, reserved });
    trace.devices.forEach((device, index) => device.start.forEach(({ kind, reserved, other }) => {
      add(chart(index, kind), 0, "made before the trace", other, reserved);
    }));
    const made = new Set();
    for (const event of trace.events) {
      if (event.do === "allocate" || event.do === "fail") made.add(event.memory);
    }
    trace.allocations.forEach(({ device, kind, bytes }, memory) => {
      if (kind !== null && !made.has(memory)) add(chart(device, kind), 0, label(memory), bytes, 0);
    });
    for (const event of trace.events) {
      if (event.do === "allocate" || event.do === "free") {
        const { device, kind, bytes } = trace.allocations[event.memory];
        add(chart(device, kind), event.time, label(event.memory), event.do === "free" ? -bytes : bytes, 0);
      } else if (event.do === "reserve" || event.do === "release") {
        add(chart(event.device, event.kind), event.time, null, 0, event.do === "release" ? -event.bytes : event.bytes);
      }
    }
    return [...charts.values()].sort((a, b) => a.device.localeCompare(b.device) || a.kind.localeCompare(b.kind));
  }

  // The labels that ever hold most get a band each, everything else the last one.
  function stack(chart) {
    let [used, peak, peakAt] = [0, -1, 0];
    const held = new Map();
    const most = new Map();
    chart.changes.forEach(({ label, used: change }, index) => {
      used += change;
      if (label !== null) {
        const now = (held.get(label) ?? 0) + change;
        held.set(label, now);
        most.set(label, Math.max(most.get(label) ?? 0, now));
      }
      if (used > peak) [peak, peakAt] = [used, index];
    });
    chart.labels = [...most]
      .filter(([, bytes]) => bytes > 0)
      .sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1))
      .slice(0, COLORS.length)
      .map(([label]) => label);
    const band = new Map(chart.labels.map((label, index) => [label, index]));
    const bands = chart.labels.length + 1;
    const row = new Array(bands).fill(0);
    chart.steps = [];
    let reserved = 0;
    for (const change of chart.changes) {
      row[band.get(change.label) ?? bands - 1] += change.used;
      reserved += change.reserved;
      const total = row.reduce((sum, bytes) => sum + bytes, 0);
      chart.steps.push({ at: change.at, row: row.slice(), total, reserved });
      chart.reserved = Math.max(chart.reserved, reserved);
    }
    chart.peak = Math.max(peak, 0);
    chart.peakAt = chart.changes[peakAt]?.at ?? 0;
    chart.hasRest = chart.steps.some((step) => step.row[bands - 1] > 0);
    chart.color = (index) => (index < chart.labels.length ? COLORS[index] : REST);
  }

  const charts = usage();
  charts.forEach(stack);
  const colorOf = (memory) => {
    const { device, kind } = trace.allocations[memory];
    const chart = charts.find((chart) => chart.kind === kind && chart.device === trace.devices[device].name);
    const index = chart ? chart.labels.indexOf(label(memory)) : -1;
    return index < 0 ? REST : COLORS[index];
  };

  // A lane for each stream, then one for each thread.
  function laneRows() {
    const lanes = trace.streams.map(({ number }) => ({ name: `stream ${number}`, kind: "stream", number, items: [] }));
    for (const { number, name } of trace.threads) {
      lanes.push({ name: name ?? `thread ${number}`, kind: "thread", items: [] });
    }
    const thread = (index) => lanes[trace.streams.length + index];
    const stream = (index) => lanes[index];
    const about = (memory) => `${bytes(trace.allocations[memory].bytes)} of “${label(memory)}”`;
    for (const event of trace.events) {
      const item = { at: event.time, from: event.time, shape: event.do, color: null, text: "" };
      if (event.do === "use") {
        const lane = event.stream === null ? thread(event.thread) : stream(event.stream);
        item.color = colorOf(event.memory);
        item.shape = event.write ? "write" : "read";
        const who = event.stream === null ? "the host" : `submission ${event.submission}`;
        item.text = `${trace.operations[event.operation]}: ${who} ${event.write ? "writes" : "reads"} ` +
          `${bytes(event.bytes)} from byte ${event.from} of “${label(event.memory)}”`;
        lane.items.push(item);
      } else if (event.do === "wait") {
        const lane = event.stream === null ? thread(event.thread) : stream(event.stream);
        item.from = event.time - event.took;
        item.to = event.of;
        const took = event.took > 0 ? ` for ${time(event.took)}` : "";
        item.text = `waits for submission ${event.submission} of ${stream(event.of).name}${took}`;
        lane.items.push(item);
      } else if (event.do === "allocate" || event.do === "free" || event.do === "fail") {
        item.color = colorOf(event.memory);
        item.text = `${{ allocate: "allocates", free: "frees", fail: "finds no memory for" }[event.do]} ${about(event.memory)}`;
        thread(event.thread).items.push(item);
      }
    }
    const order = (lane) => (lane.kind === "stream" ? lane.number : Infinity);
    // Of very many those with most events: a canvas has its limits.
    const busy = lanes.filter((lane) => lane.items.length > 0).sort((a, b) => b.items.length - a.items.length);
    const shown = new Set(busy.slice(0, MOST_LANES));
    return lanes.filter((lane) => shown.has(lane)).sort((a, b) => order(a) - order(b) || 0);
  }
  const lanes = laneRows();
  const laneOfStream = (index) => lanes.findIndex((lane) => lane.name === `stream ${trace.streams[index].number}`);

  return { span: Math.max(trace.span, 1), charts, lanes, laneOfStream, bytes, time };
})(JSON.parse(document.getElementById("trace").textContent));
