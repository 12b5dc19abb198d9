"use strict";

const $ = (id) => document.getElementById(id);
const given = JSON.parse($("data").textContent);
const view = new URLSearchParams(location.search).get("view");
let about = { classes: [], channels: [], want: null };
let state = null;
let course = [];
let controls = false;

const percent = (value) => `${Math.round(100 * value)} %`;
const points = (value) => `${value >= 0 ? "+" : "−"}${Math.abs(100 * value).toFixed(1)}`;
const RUNNING = ["ready", "cue", "recording", "lost"];
// How many windows the advice thinks ahead.
const AHEAD = 5;

function set(id, text) {
  // What did not change is not read aloud again.
  if ($(id).textContent !== text) $(id).textContent = text;
}

function fill(list, items) {
  // Each item is parts of text, or [text, class] for a part that stands out.
  list.replaceChildren(
    ...items.map((parts) => {
      const item = document.createElement("li");
      for (const part of parts) {
        if (typeof part === "string") item.append(part);
        else {
          const stress = document.createElement(part[1] || "b");
          stress.textContent = part[0];
          item.append(stress);
        }
      }
      return item;
    }),
  );
}

function tabulate(table, rows) {
  for (const [name, value] of rows) {
    const row = table.insertRow();
    const head = document.createElement("th");
    head.scope = "row";
    head.textContent = name;
    row.append(head);
    row.insertCell().textContent = value;
  }
}

function draw(svg, shapes) {
  svg.replaceChildren(
    ...shapes.map(([name, attributes, text]) => {
      const shape = document.createElementNS("http://www.w3.org/2000/svg", name);
      for (const [key, value] of Object.entries(attributes)) shape.setAttribute(key, value);
      if (text !== undefined) shape.textContent = text;
      return shape;
    }),
  );
}

// -- the cue --------------------------------------------------------------------------------------

function showCue() {
  const { phase, cue, prediction, labels, over } = state;
  const texts = {
    waiting: ["Ready when you are", "Start"],
    ready: ["Get ready for", cue],
    cue: ["Now", cue],
    recording: [labels === "markers" ? "The markers say" : "Recording", labels === "markers" ? cue || "–" : "…"],
    lost: ["No signal", "Please wait"],
    paused: ["", "Pause"],
    predicting: ["Prediction", "…"],
  };
  // Whatever is to be done or predicted, nobody measures it.
  let [ask, word] = state.lost && ["recording", "predicting"].includes(phase) ? texts.lost : texts[phase];
  // The participant's own screen has no keys.
  if (phase === "waiting" && view === "participant") [ask, word] = ["It begins soon", "Please wait"];
  let hint = "";
  if (phase === "predicting" && prediction) {
    word = prediction.label ?? "–";
    hint = prediction.label ? `probability ${percent(prediction.probabilities[prediction.label])}` : prediction.note;
    const parts = about.classes.map((name) => [`${name} `, [percent(prediction.probabilities?.[name] ?? 0)]]);
    fill($("classes"), prediction.probabilities ? parts : []);
  } else {
    fill($("classes"), []);
  }
  if (over && phase === "predicting" && !prediction) word = "The end";
  if (phase === "cue") hint = state.in_seconds ? "Keep going until the bar is full." : `${state.left} more windows`;
  if (phase === "recording" && labels === "keys") hint = "Press the number of a class to label the last window.";
  if (state.lost && phase !== "paused") hint = "It continues when the signal is back.";
  if (phase === "paused") hint = over ? "Press F to finish." : state.advice.stop ? "Finish, or continue anyway." : "Press Space to continue.";
  set("ask", ask);
  setWord(word);
  set("hint", hint);
  $("cue").classList.toggle("now", phase === "cue" || phase === "predicting");
  showTime(state.left);
}

function setWord(word) {
  set("word", word);
  $("word").style.setProperty("--letters", Math.max(word.length, 5));
}

function showTime(left) {
  const timed = state.phase === "ready" || state.phase === "cue";
  const certain = state.phase === "predicting" && state.prediction?.label;
  set("count", timed ? String(Math.ceil(left)) : "");
  let part = timed && state.whole ? 1 - left / state.whole : 0;
  if (certain) part = state.prediction.probabilities[state.prediction.label];
  $("bar").firstElementChild.style.width = `${100 * Math.min(1, Math.max(0, part))}%`;
}

// -- worth five more windows? ---------------------------------------------------------------------

function showWorth() {
  const { advice, gains, phase, n } = state;
  set("question", given ? "Advice at the end" : "Worth five more windows?");
  const yes = given ? "More windows would be worth it" : "Yes";
  set("answer", advice.stop ? (given ? "More windows would hardly help." : "No, you can stop.") : n ? `${yes}: next, ${advice.next}.` : `Begin with ${advice.next}.`);
  $("answer").classList.toggle("yes", !advice.stop);
  set("reason", advice.reason);
  const counts = about.classes.map((name) => [`${name} `, [String(state.counts[name] ?? 0)]]);
  fill($("counts"), [["Labelled:"], ...counts, ...(state.left_out ? [["left out ", [String(state.left_out)]]] : [])]);
  const known = Object.entries(gains).filter(([, gain]) => gain !== null);
  // One item, so that it reads as a sentence: five more windows: all rest +0.4, half and half +0.6 points.
  const choice = (name, place) => (place < about.classes.length ? `all ${name}` : name === "both" ? "half and half" : "some of each");
  const parts = known.flatMap(([name, gain], place) => [`${place ? ", " : " "}${choice(name, place)} `, [points(gain)]]);
  fill($("gains"), known.length ? [["Five more windows:", ...parts, " points"]] : []);
  const running = RUNNING.includes(phase);
  set("start-text", running ? "Pause" : phase === "waiting" ? "Start" : "Continue");
  $("start").disabled = !controls || state.over;
  $("undo").disabled = !controls || !state.n_windows;
  $("finish").disabled = !controls || phase === "predicting";
}

// -- the crossfade --------------------------------------------------------------------------------

function showFade() {
  const [left, right, top, bottom] = [8, 432, 24, 108];
  const x = (alpha) => left + alpha * (right - left);
  const curve = (own) => {
    // As two faders at equal power: cos and sin of a quarter turn.
    const at = (part) => (own ? Math.sin : Math.cos)((part * Math.PI) / 2);
    const line = Array.from({ length: 41 }, (_, i) => `${x(i / 40).toFixed(1)},${(bottom - at(i / 40) * (bottom - top)).toFixed(1)}`);
    return `M${left},${bottom}L${line.join("L")}L${right},${bottom}Z`;
  };
  const { alpha } = state;
  const trail = course.slice(0, -1);
  draw($("fade-plot"), [
    ["path", { d: curve(false), class: "crowd" }],
    ["path", { d: curve(true), class: "person" }],
    ["text", { x: left, y: 15 }, "the crowd"],
    ["text", { x: right, y: 15, "text-anchor": "end" }, "this person"],
    ...trail.map((one) => ["circle", { cx: x(one.alpha), cy: bottom + 10, r: 2.5, class: "trail" }]),
    ["line", { x1: x(alpha), x2: x(alpha), y1: top - 6, y2: bottom + 10, class: "here" }],
    ["circle", { cx: x(alpha), cy: bottom + 10, r: 5, class: "dot" }],
  ]);
  const own = Math.round(100 * alpha);
  set("fade-text", `alpha ${(own / 100).toFixed(2)}: ${own} % this person's own, ${100 - own} % the crowd's.`);
}

// -- the forecast ---------------------------------------------------------------------------------

function showForecast() {
  const [left, right, top, bottom] = [50, 430, 8, 156];
  const chance = about.classes.length ? 1 / about.classes.length : 0.5;
  const low = Math.max(0, Math.min(chance, ...course.map((one) => one.lower)) - 0.03);
  const gain = state.gains.both ?? state.gains.all ?? null;
  const most = Math.max(10, state.n + AHEAD + 2);
  const x = (n) => left + (n / most) * (right - left);
  const y = (value) => bottom - ((value - low) / (1 - low)) * (bottom - top);
  const pair = (one, key) => `${x(one.n).toFixed(1)},${y(one[key]).toFixed(1)}`;
  const shapes = [];
  for (let tick = Math.ceil(low * 10) / 10; tick <= 1.001; tick += 0.1) {
    shapes.push(["line", { x1: left, x2: right, y1: y(tick), y2: y(tick), class: "axis" }]);
    shapes.push(["text", { x: left - 6, y: y(tick) + 4, "text-anchor": "end" }, `${Math.round(100 * tick)} %`]);
  }
  const step = Math.max(5, 5 * Math.round(most / 30));
  for (let n = 0; n <= most; n += step) shapes.push(["text", { x: x(n), y: bottom + 16, "text-anchor": "middle" }, n]);
  shapes.push(["text", { x: right, y: bottom + 35, "text-anchor": "end" }, "labelled windows"]);
  shapes.push(["line", { x1: left, x2: right, y1: y(chance), y2: y(chance), class: "chance" }]);
  if (about.want) shapes.push(["line", { x1: left, x2: right, y1: y(about.want), y2: y(about.want), class: "want" }]);
  const wanted = about.want ? ` Wanted: ${percent(about.want)}, with a probability of 90 %.` : "";
  // The crowd's record is of newcomers.
  const returns = about.returns && !state.n ? " This is a newcomer's forecast: someone who has been here before can expect more." : "";
  const few = about.few ? ` The crowd has only ${about.few} people, so this is little more than their average.` : "";
  const now = course[course.length - 1];
  const back = [...course].reverse();
  shapes.push(["path", { d: `M${course.map((one) => pair(one, "upper")).join("L")}L${back.map((one) => pair(one, "lower")).join("L")}Z`, class: "band" }]);
  shapes.push(["path", { d: `M${course.map((one) => pair(one, "accuracy")).join("L")}`, class: "line" }]);
  shapes.push(["line", { x1: x(now.n), x2: x(now.n), y1: y(now.upper), y2: y(now.lower), class: "line" }]);
  if (gain !== null) {
    const later = { n: now.n + AHEAD, accuracy: Math.min(1, now.accuracy + gain) };
    shapes.push(["path", { d: `M${pair(now, "accuracy")}L${pair(later, "accuracy")}`, class: "ahead" }]);
  }
  shapes.push(["circle", { cx: x(now.n), cy: y(now.accuracy), r: 5, class: "dot" }]);
  set("forecast-text", `${percent(now.accuracy)} right (90 % interval ${percent(now.lower)} to ${percent(now.upper)}), ${state.n} labelled.${wanted}${few}${returns}`);
  draw($("forecast-plot"), shapes);
}

// -- the signal -----------------------------------------------------------------------------------

const SECONDS = 8;
let trace = [];
let held = [];
let quality = "";

function keepSignal(message) {
  if (message.quality) showQuality(message.quality);
  if (!message.samples) return;
  trace.push({ samples: message.samples, seconds: message.seconds });
  let total = trace.reduce((sum, part) => sum + part.seconds, 0);
  while (trace.length > 1 && total - trace[0].seconds >= SECONDS) total -= trace.shift().seconds;
  requestAnimationFrame(drawSignal);
}

function showQuality(channels) {
  const text = JSON.stringify(channels.map((one) => one.state));
  if (text === quality) return;
  quality = text;
  fill($("quality"), channels.map((one, place) => [about.channels[place] + (one.state === "good" ? "" : ` ${one.state}`)]));
  channels.forEach((one, place) => $("quality").children[place].classList.add(one.state));
}

function drawSignal() {
  const canvas = $("traces");
  const box = canvas.getBoundingClientRect();
  if (!box.width || !trace.length) return;
  const scale = devicePixelRatio;
  if (canvas.width !== Math.round(box.width * scale) || canvas.height !== Math.round(box.height * scale)) {
    canvas.width = Math.round(box.width * scale);
    canvas.height = Math.round(box.height * scale);
  }
  const pen = canvas.getContext("2d");
  const style = getComputedStyle(document.body);
  pen.setTransform(scale, 0, 0, scale, 0, 0);
  pen.clearRect(0, 0, box.width, box.height);
  const n = trace[0].samples.length;
  const row = box.height / n;
  // Between many channels there is no room for their names.
  const gutter = document.body.classList.contains("many") ? 32 : 0;
  const total = trace.reduce((sum, part) => sum + part.seconds, 0);
  pen.font = "11px system-ui, sans-serif";
  for (let channel = 0; channel < n; channel++) {
    // A channel's height follows the middle of what it does, slowly, so that an artefact is seen.
    const sorted = trace.flatMap((part) => part.samples[channel].filter((value) => value !== null)).sort((a, b) => a - b);
    const middle = sorted[Math.floor(sorted.length / 2)];
    const range = sorted.length && Math.max(sorted[Math.floor(sorted.length * 0.95)] - sorted[Math.floor(sorted.length * 0.05)], 1e-9);
    if (range) held[channel] = held[channel] ? 0.9 * held[channel] + 0.1 * range : range;
    pen.strokeStyle = style.getPropertyValue("--accent");
    pen.lineWidth = 1;
    pen.beginPath();
    let passed = SECONDS - total;
    let lifted = true;
    for (const part of trace) {
      const line = part.samples[channel];
      line.forEach((value, i) => {
        const x = gutter + ((passed + (i / line.length) * part.seconds) / SECONDS) * (box.width - gutter);
        const y = row * (channel + 0.5) - ((value - middle) / held[channel]) * row * 0.4;
        // A sample that is missing is a gap in the line.
        if (value !== null) pen[lifted ? "moveTo" : "lineTo"](x, Math.min(row * (channel + 1), Math.max(row * channel, y)));
        lifted = value === null;
      });
      passed += part.seconds;
    }
    pen.stroke();
    pen.fillStyle = style.getPropertyValue("--soft");
    if (row >= 11) pen.fillText(about.channels[channel], 2, gutter ? row * (channel + 0.5) + 4 : row * channel + 11);
  }
}

// -- what happened --------------------------------------------------------------------------------

let said = "";

function showNotes() {
  const lines = [
    ...state.remarks.map((text) => [text]),
    ...[...state.notes].reverse().map((note) => {
      const minutes = `${Math.floor(note.at / 60)}:${String(Math.floor(note.at % 60)).padStart(2, "0")}`;
      return [[minutes, "time"], note.text + (note.times > 1 ? ` (${note.times} times)` : "")];
    }),
  ];
  const text = JSON.stringify(lines);
  if (text === said) return;
  said = text;
  fill($("log"), lines.length ? lines : [["Nothing to report."]]);
}

// -- keys and buttons -----------------------------------------------------------------------------

let socket = null;

function send(command) {
  if (controls && socket?.readyState === WebSocket.OPEN) socket.send(JSON.stringify(command));
}

const deeds = {
  start: () => send({ do: RUNNING.includes(state?.phase) ? "pause" : "start" }),
  undo: () => send({ do: "undo" }),
  finish: () => send({ do: "finish" }),
  view: () => {
    const on = !document.body.classList.contains("participant");
    document.body.classList.toggle("participant", on);
    if (on) document.documentElement.requestFullscreen?.().catch(() => {});
    else if (document.fullscreenElement) document.exitFullscreen();
  },
};
const KEYS = { " ": "start", u: "undo", f: "finish", v: "view" };

for (const [id, deed] of Object.entries(deeds)) {
  $(id).addEventListener("click", (event) => {
    deed();
    // Else Space would press this button again.
    event.currentTarget.blur();
  });
}

// The large word "Start" looks like a button, and is one.
$("cue").addEventListener("click", () => {
  if (state?.phase === "waiting" && !$("start").disabled) deeds.start();
});

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat || given) return;
  const key = event.key.toLowerCase();
  const place = Number(key) - 1;
  if (key === "escape") {
    if (document.body.classList.contains("participant") && view !== "participant") deeds.view();
  } else if (key === " " && event.target.closest("button") && event.target.id !== "start") {
    return;
  } else if (KEYS[key] && !(view === "participant")) {
    event.preventDefault();
    const button = $(KEYS[key]);
    if (!button.disabled && !button.hidden) deeds[KEYS[key]]();
  } else if (place in about.classes && state?.n_windows) {
    send({ do: "label", window: state.n_windows - 1, label: about.classes[place] });
  }
});
document.addEventListener("fullscreenchange", () => {
  if (!document.fullscreenElement && view !== "participant") document.body.classList.remove("participant");
});

// -- the socket -----------------------------------------------------------------------------------

function show(message) {
  state = message;
  course = [...course.filter((one) => one.n < state.n), state.point];
  showCue();
  showWorth();
  showFade();
  showForecast();
  showNotes();
}

function introduce(message) {
  about = message;
  set("source", [message.stream, message.rate, message.folder].filter(Boolean).join(" · "));
  $("signal").hidden = !message.channels.length;
  document.body.classList.toggle("many", message.channels.length > 8);
  set("keys", message.classes.map((name, place) => `${place + 1} ${name}`).join(" · ") + ": label the last window");
  document.title = `${message.stream} · Crossfade live`;
}

function connect() {
  const query = new URLSearchParams({ token: new URLSearchParams(location.search).get("token") });
  if (view) query.set("view", view);
  socket = new WebSocket(`${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/socket?${query}`);
  socket.addEventListener("open", () => {
    controls = view !== "participant";
    set("trouble", "");
    document.body.classList.remove("lost");
  });
  socket.addEventListener("message", (event) => {
    const message = JSON.parse(event.data);
    if (message.kind === "hello") introduce(message);
    else if (message.kind === "course") course = message.course;
    else if (message.kind === "state") show(message);
    else if (message.kind === "signal" && state) {
      if (message.phase === state.phase) showTime(message.left);
      keepSignal(message);
    }
  });
  socket.addEventListener("close", () => {
    controls = false;
    set("trouble", "No connection. Trying again …");
    document.body.classList.add("lost");
    // Nobody knows any longer what is asked.
    set("ask", "No connection");
    setWord("Please wait");
    for (const id of ["count", "hint"]) set(id, "");
    fill($("classes"), []);
    $("bar").firstElementChild.style.width = "0";
    $("cue").classList.remove("now");
    if (state) showWorth();
    setTimeout(connect, 1000);
  });
}

$("start").firstElementChild.id = "start-text";
if (view === "participant") document.body.classList.add("participant");
if (given) {
  document.body.classList.add("report");
  introduce(given.about);
  set("kind", "session report");
  $("result").hidden = false;
  $("result").querySelector("h1").textContent = given.result.title;
  tabulate($("result").querySelector("table"), given.result.facts);
  course = given.course;
  show(given.state);
} else {
  connect();
}
