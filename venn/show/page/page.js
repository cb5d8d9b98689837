// Shows one document of a run: its words, and its curves, drawn here. A report holds the document; the page asks its
// server for it again and again. Texts of the run come as text, or as HTML in which the server has escaped them.
(() => {
  "use strict";
  const root = document.documentElement, SVG = "http://www.w3.org/2000/svg";
  const LEFT = 58, RIGHT = 24, TOP = 8, BELOW = 42, NEAR = 14; // pixels
  const EVERY = 1000, HIDDEN = 10000, PATIENCE = 20000; // milliseconds
  const tables = {}, drawn = new Map(), written = new Map(); // columns by name; charts by element; words by place
  let zoom = null; // range of steps that the viewer has chosen

  const make = (parent, name, attributes = {}, text = "") => {
    const made = parent.namespaceURI === SVG || name === "svg"
      ? document.createElementNS(SVG, name) : document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text) made.textContent = text;
    parent.append(made);
    return made;
  };

  // ---------------------------------------------------------------- numbers
  const plain = (value, digits = 0) =>
    value.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });
  const said = (value) => value === null || value === undefined ? "–" : Number.isInteger(value) ? plain(value)
    : plain(value, Math.abs(value) < 10 ? 4 : 2);
  const ticks = (low, high, most) => {
    const least = Math.max((high - low) / most, 1e-12), power = 10 ** Math.floor(Math.log10(least));
    const apart = power * [1, 2, 5, 10].find((one) => one * power >= least * 0.999);
    const digits = Math.max(0, -Math.floor(Math.log10(apart) + 1e-9));
    const found = [];
    for (let i = Math.ceil(low / apart - 1e-9); i * apart <= high + apart * 1e-9; i++) found.push([i * apart || 0, plain(i * apart || 0, digits)]);
    return found;
  };

  // ----------------------------------------------------------------- charts
  const range = (chart) => {
    if (chart.x) return chart.x;
    const steps = tables[chart.of]?.step ?? [];
    return zoom ?? [0, Math.max(steps.at(-1) ?? 2, 2)];
  };
  const height = (chart, [from, to]) => { // what is drawn, but for the first tenth, which varies widely; and what must be seen
    if (chart.y) return chart.y;
    const { step = [], ...columns } = tables[chart.of] ?? {}, start = zoom ? from : 0.1 * to, [least, most] = chart.within;
    let low = Infinity, high = -Infinity;
    for (const { column, to: other } of chart.items) for (const key of [column, other]) {
      for (const [i, value] of (columns[key] ?? []).entries()) {
        if (value !== null && step[i] >= start && step[i] <= to) { low = Math.min(low, value); high = Math.max(high, value); }
      }
    }
    if (low > high) [low, high] = [least ?? 0, most ?? 1];
    const room = Math.max(0.08 * (high - low), 0.005), also = zoom ? [] : chart.also;
    return [Math.min(Math.max(low - room, least ?? -Infinity), ...also), Math.max(Math.min(high + room, most ?? Infinity), ...also)];
  };
  const path = (xs, ys) => {
    let text = "", gap = true;
    for (let i = 0; i < xs.length; i++) {
      if (ys[i] === null) { gap = true; continue; }
      text += `${gap ? "M" : "L"}${xs[i].toFixed(1)} ${ys[i].toFixed(1)}`;
      gap = false;
    }
    return text;
  };
  const clamp = (value) => Math.max(-1e4, Math.min(1e4, value));

  const PENS = {
    line: (inner, item, { x, y, table }) => {
      const values = (table[item.column] ?? []).map((value) => value === null ? null : clamp(y(value)));
      make(inner, "path", { d: path(table.step.map(x), values), class: `line ${item.c}`, "stroke-width": item.width, "stroke-dasharray": item.dash });
      if (values.filter((value) => value !== null).length === 1) { // a line through one point would be invisible
        const i = values.findIndex((value) => value !== null);
        make(inner, "circle", { cx: x(table.step[i]), cy: values[i], r: 3, class: `fill ${item.c}` });
      }
    },
    band: (inner, item, { x, y, table }) => {
      const ends = [item.column, item.to].map((key) => table[key] ?? []);
      const known = table.step.map((step, i) => i).filter((i) => ends[0][i] !== null && ends[1][i] !== null);
      const [low, high] = ends.map((values) => known.map((i) => `${x(table.step[i]).toFixed(1)} ${clamp(y(values[i])).toFixed(1)}`));
      if (known.length) make(inner, "path", { d: `M${low.join("L")}L${high.reverse().join("L")}Z`, class: `band ${item.c}` });
    },
    across: (inner, item, { y, right }) => {
      if (item.at !== null) make(inner, "path", { d: `M0 ${y(item.at)}H${right}`, class: `line ${item.c}`, "stroke-width": 1.5, "stroke-dasharray": item.dash, opacity: 0.8 });
    },
    rung: (inner, item, { x, bottom }) => {
      make(inner, "path", { d: item.x.map((at) => `M${x(at).toFixed(1)} 0V${bottom}`).join(""), class: `line ${item.c}`, "stroke-width": 1.2, opacity: 0.7 });
    },
    marks: (inner, item, { x, y }) => {
      make(inner, "path", { d: item.x.map((at, i) => `M${(x(at) - 6).toFixed(1)} ${(y(item.y[i]) - 5).toFixed(1)}h12l-6 10z`).join(""), class: `fill ${item.c}` });
    },
    even: (inner, item, { x, y }) => {
      make(inner, "path", { d: `M${x(0)} ${y(0)}L${x(1)} ${y(1)}`, class: `line ${item.c}`, "stroke-width": 1.2, "stroke-dasharray": item.dash });
    },
    dots: (inner, item, { x, y }) => {
      const most = Math.max(1, ...item.count);
      make(inner, "path", { d: path(item.confidence.map(x), item.accuracy.map(y)), class: `line ${item.c}`, "stroke-width": 1, opacity: 0.5 });
      for (const [i, at] of item.confidence.entries()) {
        make(inner, "circle", { cx: x(at), cy: y(item.accuracy[i]), r: 2.5 + 6.5 * Math.sqrt(item.count[i] / most), class: `fill ${item.c}` });
      }
    },
    bars: (inner, item, { x, y, bottom }) => {
      for (const [i, count] of item.count.entries()) {
        make(inner, "rect", { x: x(item.lower[i]), width: Math.max(x(item.upper[i]) - x(item.lower[i]) - 1, 1), y: y(count), height: Math.max(bottom - y(count), 0), class: `fill ${item.c}`, opacity: 0.5 });
      }
    },
  };

  const draw = (place, chart) => {
    const width = Math.max(place.clientWidth, 200), right = width - LEFT - RIGHT;
    const below = chart.below ? BELOW : BELOW - 18, bottom = chart.height - TOP - below;
    const xs = range(chart), ys = height(chart, xs), table = tables[chart.of] ?? { step: [] };
    const x = (value) => (value - xs[0]) / (xs[1] - xs[0]) * right;
    const y = (value) => bottom - (value - ys[0]) / (ys[1] - ys[0] || 1) * bottom;
    const svg = make(place, "svg", { width, height: chart.height, viewBox: `0 0 ${width} ${chart.height}`, role: "img", "aria-label": `${chart.beside} against ${chart.below || "probability"}` });
    if (table.step.length) svg.dataset.last = table.step.at(-1);
    const area = make(svg, "g", { transform: `translate(${LEFT} ${TOP})` });
    for (const [at, text] of ticks(...ys, Math.max(2, bottom / 45))) {
      make(area, "path", { d: `M0 ${y(at).toFixed(1)}H${right}`, class: "grid" });
      make(area, "text", { x: -7, y: y(at) + 4, class: "end" }, text);
    }
    for (const [at, text] of ticks(...xs, Math.max(2, right / 110))) {
      make(area, "path", { d: `M${x(at).toFixed(1)} 0V${bottom}`, class: "grid" });
      make(area, "text", { x: x(at), y: bottom + 17, class: "middle" }, text);
    }
    make(area, "text", { x: right / 2, y: bottom + 35, class: "middle name" }, chart.below);
    make(area, "text", { transform: `translate(-46 ${bottom / 2}) rotate(-90)`, class: "middle name" }, chart.beside);
    const inner = make(area, "svg", { width: right, height: bottom }); // it cuts off what lies outside
    const scale = { x, y, table, right, bottom };
    for (const item of chart.items) PENS[item.draw](inner, item, scale);
    const over = make(inner, "g");
    return { chart, svg, over, scale, back: (at) => xs[0] + at / right * (xs[1] - xs[0]) };
  };

  const swatch = (item) => item.draw === "band" ? "band" : item.draw === "marks" ? "mark"
    : item.dash === "2 4" ? "dots" : item.dash ? "dash" : item.width < 2 || item.draw === "rung" ? "thin" : "line";

  const paint = (place) => {
    const { charts } = drawn.get(place);
    if (typeof charts === "string") return void place.replaceChildren(Object.assign(document.createElement("p"), { textContent: charts }));
    place.replaceChildren();
    const entries = new Map(), shown = [];
    for (const chart of charts) {
      if (chart.note) { make(place, "p", { class: "fine" }, chart.note); continue; }
      shown.push(draw(place, chart));
      for (const item of chart.items) if (item.say) entries.set(item.say, item);
    }
    const legend = make(place, "p", { class: "legend" });
    for (const [text, item] of entries) {
      const entry = make(legend, "span");
      make(entry, "i", { class: `${swatch(item)} ${item.c}` });
      entry.append(text);
    }
    drawn.get(place).shown = shown;
    tell(place);
  };

  // ------------------------------------------------------- under the pointer
  const lines = ({ chart, scale: { x, y, table } }, at, down) => {
    const of = chart.items.find((item) => item.count);
    if (of) {
      const i = nearest(of.confidence.map(x), at);
      return i < 0 ? null : [x(of.confidence[i]), ["probability", said(of.confidence[i])], ["right", said(of.accuracy[i])], ["steps", said(of.count[i])]];
    }
    const i = nearest(table.step.map(x), at);
    if (i < 0) return null;
    const found = [x(table.step[i]), ["answers", said(table.step[i])]];
    if (table.time?.[i]) found.push(["last one", moment(table.time[i])]);
    for (const item of chart.items) {
      if (item.draw === "line") found.push([item.say, said(table[item.column]?.[i])]);
      if (item.draw === "band") found.push([item.say, `${said(table[item.column]?.[i])} to ${said(table[item.to]?.[i])}`]);
      for (const [k, mark] of item.draw === "marks" ? item.x.entries() : []) {
        if (Math.hypot(x(mark) - at, y(item.y[k]) - down) < NEAR) found.push([`alarm at ${said(mark)}`, item.what[k]]);
      }
    }
    return found;
  };
  const nearest = (xs, at) => xs.reduce((best, x, i) => best < 0 || Math.abs(x - at) < Math.abs(xs[best] - at) ? i : best, -1);
  const tell = (place) => {
    const { pointer, shown = [], start } = drawn.get(place);
    place.querySelector(".tip")?.remove();
    for (const one of shown) one.over.replaceChildren();
    if (!pointer) return;
    for (const one of shown) {
      const box = one.svg.getBoundingClientRect(), at = pointer.x - box.left - LEFT, down = pointer.y - box.top - TOP;
      if (down < -TOP || pointer.y > box.bottom || at < 0 || at > one.scale.right) continue;
      const found = lines(one, at, down);
      if (!found) continue;
      const [across, ...entries] = found;
      make(one.over, "path", { d: `M${across.toFixed(1)} 0V${one.scale.bottom}`, class: "grid strong" });
      if (start !== undefined && !one.chart.x) make(one.over, "rect", { x: Math.min(start, at), width: Math.abs(at - start), height: one.scale.bottom, class: "chosen" });
      const tip = make(place, "dl", { class: "tip" });
      for (const [name, value] of entries) { make(tip, "dt", {}, name); make(tip, "dd", {}, value); }
      tip.style.top = `${box.top - place.getBoundingClientRect().top + TOP}px`;
      tip.style[across > one.scale.right / 2 ? "left" : "right"] = `${across > one.scale.right / 2 ? LEFT + 6 : RIGHT + 6}px`;
    }
  };
  const chosen = (place, event) => { // the steps between the places where the pointer went down and up
    const one = drawn.get(place).shown?.find(({ chart, svg }) => !chart.x && svg.contains(event.target));
    return one ? [one, event.clientX - one.svg.getBoundingClientRect().left - LEFT] : [null, 0];
  };
  const listen = (place) => {
    const state = drawn.get(place);
    const point = (event) => { state.pointer = event && { x: event.clientX, y: event.clientY }; tell(place); };
    place.addEventListener("pointermove", point);
    place.addEventListener("pointerleave", (event) => { state.start = undefined; if (event.pointerType !== "touch") point(null); });
    document.addEventListener("pointerdown", (event) => { if (state.pointer && !place.contains(event.target)) point(null); });
    place.addEventListener("pointerdown", (event) => { point(event); if (event.pointerType === "mouse") state.start = chosen(place, event)[0] ? chosen(place, event)[1] : undefined; });
    place.addEventListener("pointerup", (event) => {
      const [one, at] = chosen(place, event);
      const ends = [state.start ?? at, at].sort((a, b) => a - b);
      state.start = undefined;
      if (one && ends[1] - ends[0] > NEAR) { zoom = ends.map(one.back); again(); }
    });
    place.addEventListener("dblclick", () => { zoom = null; again(); });
    new ResizeObserver(() => { if (place.clientWidth !== state.width) { state.width = place.clientWidth; paint(place); } }).observe(place);
  };
  const again = () => { for (const place of drawn.keys()) paint(place); };

  // ------------------------------------------- times, in the viewer's zone
  const two = (value) => String(value).padStart(2, "0");
  const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
  const day = (then, now = new Date()) => `${then.getDate()} ${MONTHS[then.getMonth()]}${then.getFullYear() === now.getFullYear() ? "" : ` ${then.getFullYear()}`}`;
  const minute = (then) => `${two(then.getHours())}:${two(then.getMinutes())}`;
  const zone = (then) => new Intl.DateTimeFormat("en", { timeZoneName: "short" }).formatToParts(then).find((one) => one.type === "timeZoneName").value;
  const moment = (at, form = "minute") => {
    const then = new Date(1000 * at);
    let text = `${day(then) === day(new Date()) ? "" : `${day(then)} `}${minute(then)}`;
    if (form !== "minute") text += `:${two(then.getSeconds())}`;
    return form === "zone" ? `${text} ${zone(then)}` : text;
  };
  const tellTimes = () => {
    for (const one of document.querySelectorAll("time[data-at]")) {
      const text = moment(one.dataset.at, one.dataset.form);
      if (one.textContent !== text) one.textContent = text;
    }
  };

  // -------------------------------------------------- changes, over the time
  const HOUR = 3600, DAY = 86400; // seconds
  const RANGES = { "last day": DAY, "last week": 7 * DAY, all: Infinity };
  const APART = [60, 300, 900, HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR, DAY, 2 * DAY, 7 * DAY, 14 * DAY, 30 * DAY, 91 * DAY, 365 * DAY];
  let strip = null, shownRange = "all";
  const clocks = (low, high, most) => { // from midnight on, in the viewer's zone
    const apart = APART.find((one) => (high - low) / one <= most) ?? APART.at(-1) * Math.ceil((high - low) / most / APART.at(-1));
    const start = new Date(1000 * low), found = [];
    start.setHours(0, 0, 0, 0);
    for (let then = start; then / 1000 <= high; ) {
      if (then / 1000 >= low) found.push([then / 1000, apart >= DAY || minute(then) === "00:00" ? day(then) : minute(then)]);
      const next = new Date(then);
      if (apart >= DAY) next.setDate(next.getDate() + apart / DAY);
      else next.setTime(next.getTime() + 1000 * apart);
      then = next;
    }
    return found;
  };
  const open = (number) => {
    const at = document.getElementById(`episode-${number}`);
    if (!at) return;
    at.open = true;
    at.scrollIntoView({ block: "start", behavior: "smooth" });
  };
  const drawStrip = () => {
    for (const place of strip ? document.querySelectorAll("[data-strip]") : []) {
      const { timed, from, to, spans } = strip, ranges = timed ? Object.entries(RANGES).filter(([, long]) => long < to - from || long === Infinity) : [];
      const range = ranges.find(([name]) => name === shownRange) ?? ranges.at(-1), start = range ? Math.max(from, to - range[1]) : from;
      const key = JSON.stringify([strip, range, place.clientWidth]);
      if (place.dataset.drawn === key && place.childElementCount) continue;
      place.dataset.drawn = key;
      place.replaceChildren();
      const share = (value) => 100 * Math.min(Math.max((value - start) / (to - start || 1), 0), 1);
      const line = make(place, "div", { class: "line-of-time" });
      for (const one of spans) {
        if (one.to < start) continue;
        const block = make(line, "button", { type: "button", class: one.c + (one.lasts ? " lasts" : ""), "data-episode": one.number, title: one.say, "aria-label": one.say }, `${one.number}`);
        block.style.left = `${share(one.from)}%`;
        block.style.width = `${share(one.to) - share(one.from)}%`;
      }
      const below = make(place, "div", { class: "ticks" }), most = Math.max(2, Math.floor(place.clientWidth / 75));
      for (const [at, text] of timed ? clocks(start, to, most) : ticks(start, to, most)) {
        const one = make(below, "span", { class: share(at) > 80 ? "end" : "" }, text);
        one.style[share(at) > 80 ? "right" : "left"] = `${share(at) > 80 ? 100 - share(at) : share(at)}%`;
      }
      if (ranges.length < 2) continue;
      const choice = make(place, "div", { class: "ranges" });
      for (const [name] of ranges) {
        const one = make(choice, "button", { type: "button", "aria-pressed": name === range[0] }, name);
        one.addEventListener("click", () => { shownRange = name; drawStrip(); });
      }
    }
  };

  // ------------------------------------------------------------ the document
  const write = (place, html) => {
    const at = document.querySelector(`[data-words="${place}"]`);
    if (!at || written.get(place) === html) return;
    const before = [...at.querySelectorAll("details[id]")].map((one) => [one.id, one.open]);
    at.innerHTML = html;
    written.set(place, html);
    for (const [id, was] of before) { // what the viewer has opened stays open
      const one = document.getElementById(id);
      if (one) one.open = was;
    }
  };
  const show = (found) => {
    for (const [place, html] of Object.entries(found.words ?? {})) write(place, html);
    strip = found.strip ?? strip;
    drawStrip();
    tellTimes();
    for (const [name, { after, columns }] of Object.entries(found.tables ?? {})) {
      if (after) for (const [key, values] of Object.entries(columns)) tables[name][key].push(...values);
      else tables[name] = columns;
    }
    for (const place of document.querySelectorAll("[data-chart]")) {
      const charts = found.charts?.[place.dataset.chart];
      if (charts === undefined) continue;
      if (drawn.has(place)) drawn.get(place).charts = charts;
      else { drawn.set(place, { charts, width: place.clientWidth }); listen(place); }
      paint(place);
    }
  };

  // -------------------------------------------------------------- the server
  const asking = () => {
    const chooser = document.getElementById("chooser");
    let seen = "", page = null, failed = 0, wait = 0, picked = ""; // until the viewer picks a predictor, it is the verdict's
    const ask = async () => {
      clearTimeout(wait);
      const of = picked, sent = seen;
      try {
        const query = new URLSearchParams({ of, seen: sent });
        const answer = await fetch(`run.json?${query}`, { cache: "no-store", signal: AbortSignal.timeout(PATIENCE) });
        if (answer.status === 401 || answer.status === 403) return void location.reload();
        if (!answer.ok) throw new Error(answer.status);
        const found = await answer.json();
        if (page !== null && page !== found.page) return void location.reload(); // a newer version of it
        page = found.page;
        failed = 0;
        delete root.dataset.lost;
        document.title = found.title;
        if (of === picked && sent === seen) {
          seen = found.seen;
          if (found.names) choose(found.names, found.of);
          show(found);
          if (found.names && waits) find(waits);
        }
      } catch {
        if (++failed > 1) root.dataset.lost = "";
      }
      clearTimeout(wait);
      wait = setTimeout(ask, document.hidden ? HIDDEN : EVERY);
    };
    const search = document.getElementById("search"), field = search.querySelector("input");
    let waits = "", latest = 0; // the id whose label has not come
    const find = async (id) => {
      const mine = ++latest;
      try {
        const answer = await fetch(`question.json?${new URLSearchParams({ id })}`, { cache: "no-store", signal: AbortSignal.timeout(PATIENCE) });
        if (!answer.ok) throw new Error(answer.status);
        const found = await answer.json();
        if (mine !== latest) return;
        waits = found.waits ? id : "";
        show(found);
      } catch {
        if (mine === latest) show({ words: { found: "<p>The server does not answer: try again.</p>" } });
      }
    };
    search.addEventListener("submit", (event) => { event.preventDefault(); if (field.value.trim()) find(field.value.trim()); });
    document.addEventListener("click", (event) => {
      const of = event.target.closest("[data-id]");
      if (!of) return;
      field.value = of.dataset.id;
      find(of.dataset.id);
      search.scrollIntoView({ block: "center", behavior: "smooth" });
    });
    const choose = (names, of) => {
      if (JSON.stringify(names) !== chooser.dataset.names) {
        chooser.dataset.names = JSON.stringify(names);
        chooser.replaceChildren(...names.map((name) => new Option(name, name)));
        chooser.parentElement.hidden = names.length < 2;
        zoom = null;
      }
      chooser.value = of;
    };
    chooser.addEventListener("change", () => { picked = chooser.value; ask(); });
    document.addEventListener("visibilitychange", () => { if (!document.hidden) ask(); });
    ask();
  };

  // The theme: that of the system until the button is pressed.
  const kept = (theme) => {
    try { return theme ? localStorage.setItem("venn-theme", theme) : localStorage.getItem("venn-theme"); } catch { return null; }
  };
  if (kept()) root.dataset.theme = kept();
  addEventListener("DOMContentLoaded", () => {
    document.getElementById("theme").addEventListener("click", () => {
      root.dataset.theme = getComputedStyle(root).colorScheme === "dark" ? "light" : "dark";
      kept(root.dataset.theme);
    });
    document.addEventListener("click", (event) => {
      const of = event.target.closest("[data-episode]");
      if (of) open(of.dataset.episode);
    });
    addEventListener("resize", drawStrip);
    const held = document.getElementById("document");
    if (held) show(JSON.parse(held.textContent));
    else asking();
  });
})();
