// Runs the reference model in the page: Pyodide, and the suite's own code in app.zip. Nothing comes from another server.
const form = document.getElementById("trace");
const problem = document.getElementById("problem");
const state = document.getElementById("state");

function say(text) {
  problem.textContent = text;
  problem.hidden = !text;
}

function read() {
  return Object.fromEntries(new FormData(form));
}

function fill(values) {
  for (const [name, value] of Object.entries(values)) {
    const field = form.elements.namedItem(name); // elements.length is no field
    if (!field) continue;
    if (field.tagName === "SELECT" && ![...field.options].some(option => option.value === value)) continue;
    field.value = value;
  }
}

function show(draw, { keep }) {
  const values = read();
  if (keep) history.replaceState(null, "", `#${new URLSearchParams(values)}`);
  const answer = JSON.parse(draw(JSON.stringify(values)));
  say(answer.problem ?? "");
  if (answer.problem) return;
  document.getElementById("picture").innerHTML = answer.picture;
  document.getElementById("told").textContent = answer.told.join("\n");
}

async function begin() {
  const { loadPyodide } = await import("./pyodide.mjs");
  const [python, app] = await Promise.all([
    loadPyodide(),
    fetch(new URL("app.zip", import.meta.url)).then(response => {
      if (!response.ok) throw new Error(`app.zip: ${response.status}`);
      return response.arrayBuffer();
    }),
  ]);
  python.unpackArchive(app, "zip", { extractDir: "/app" });
  python.runPython("import sys; sys.path.insert(0, '/app')");
  const trace = python.pyimport("tools.playground.trace");
  const given = JSON.parse(trace.first());
  for (const version of given.versions) form.elements.version.add(new Option(version));
  const wanted = () => fill({ ...given.starts_with, ...Object.fromEntries(new URLSearchParams(location.hash.slice(1))) });
  wanted();
  show(trace.drawn, { keep: false });
  state.textContent = "";
  form.addEventListener("input", () => show(trace.drawn, { keep: true }));
  form.addEventListener("submit", event => event.preventDefault());
  addEventListener("hashchange", () => {
    wanted();
    show(trace.drawn, { keep: false });
  });
  document.body.dataset.ready = "";
}

begin().catch(error => {
  state.textContent = "";
  say(String(error.message ?? error));
});
