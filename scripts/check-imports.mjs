// Checks the dependency direction between the directories of src/ and forbids cycles. Type-only imports count too.
// Usage: node scripts/check-imports.mjs [SRC_DIRECTORY]
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseSync } from "oxc-parser";

/** What each directory may import besides itself. "*" marks composition, which may import anything. */
const allowed = {
  model: [],
  define: ["model"],
  process: ["model"],
  redact: ["model"],
  llm: ["model", "define"],
  wire: ["model"],
  record: ["model"],
  tools: ["model"],
  show: ["model"],
  submit: ["model", "define", "record"],
  trigger: ["model", "define", "submit"],
  dispatch: ["model", "record"],
  execute: ["model", "process", "redact", "llm", "tools"],
  serve: ["model", "wire", "dispatch", "show", "trigger"],
  cli: "*",
  compose: "*",
  library: "*",
  "": "*",
};
/** The only packages that these directories may import. */
const packages = { model: ["zod", "node:stream", "node:path"] };

/** The only files that may import() a computed path. Elsewhere precompiled bundles turn import() into require(). */
const importers = new Set(["llm/import-module.ts", "execute/executors/host/module-host.ts"]);

const src = resolve(process.argv[2] ?? join(dirname(dirname(fileURLToPath(import.meta.url))), "src"));
const faults = [];
const graph = new Map();

for (const file of walk(src)) {
  const from = directoryOf(file);
  const imports = importsOf(file);
  graph.set(file, []);
  for (const specifier of imports) {
    if (!specifier.startsWith(".")) {
      const only = packages[from];
      if (only && !only.includes(specifier)) report(file, `${from}/ may not import ${specifier}`);
      continue;
    }
    const target = resolve(dirname(file), specifier);
    graph.get(file).push(target);
    const to = directoryOf(target);
    const rule = allowed[from];
    if (rule === undefined) report(file, `directory ${from}/ has no rule in scripts/check-imports.mjs`);
    else if (rule !== "*" && to !== from && !rule.includes(to))
      report(file, `${from}/ may not import ${to || "src"}/ (${specifier})`);
  }
}
findCycles();

if (graph.size === 0) faults.push(`no source files under ${src}`);
for (const fault of faults) process.stderr.write(`${fault}\n`);
process.stderr.write(`${graph.size} files read, ${faults.length} violations\n`);
process.exit(faults.length === 0 ? 0 : 1);

function report(file, what) {
  faults.push(`${relative(dirname(src), file)}: ${what}`);
}

function directoryOf(file) {
  const parts = relative(src, file).split("/");
  return parts.length === 1 ? "" : parts[0];
}

function* walk(directory) {
  for (const entry of readdirSync(directory, { withFileTypes: true })) {
    const path = join(directory, entry.name);
    if (entry.isDirectory()) yield* walk(path);
    // Tests compose, so they may import anything.
    else if (/\.tsx?$/.test(entry.name) && !/\.test\.tsx?$/.test(entry.name)) yield path;
  }
}

function importsOf(file) {
  const { module, errors } = parseSync(file, readFileSync(file, "utf8"));
  if (errors.length > 0) report(file, `cannot be parsed: ${errors[0].message}`);
  const text = readFileSync(file, "utf8");
  return [
    ...module.staticImports.map((i) => i.moduleRequest.value),
    ...module.staticExports.flatMap((e) => e.entries.flatMap((x) => (x.moduleRequest ? [x.moduleRequest.value] : []))),
    ...module.dynamicImports.flatMap((i) => {
      const address = text.slice(i.moduleRequest.start, i.moduleRequest.end);
      if (/^(["']).*\1$/.test(address)) return [address.slice(1, -1)];
      if (!importers.has(relative(src, file)))
        report(file, `import(${address}) must have a literal path; use importModule() of llm/import-module.ts instead`);
      return [];
    }),
  ];
}

function findCycles() {
  const state = new Map();
  const visit = (file, path) => {
    if (state.get(file) === "done" || !graph.has(file)) return;
    const at = path.indexOf(file);
    if (at >= 0) {
      faults.push(`import cycle: ${[...path.slice(at), file].map((f) => relative(src, f)).join(" -> ")}`);
      return;
    }
    for (const next of graph.get(file)) visit(next, [...path, file]);
    state.set(file, "done");
  };
  for (const file of graph.keys()) visit(file, []);
}
