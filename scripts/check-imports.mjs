// Checks the dependency direction between the directories of src/ and forbids cycles. Type-only imports count too.
// Usage: node scripts/check-imports.mjs [SRC_DIRECTORY]
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseSync } from "oxc-parser";

/** The directories that each directory may import besides itself. "*" marks composition, which may import anything. */
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
const allowedPackagesByDirectory = { model: ["zod", "node:stream", "node:path"] };

/** The only files that may import() a computed path. In all other files the build turns import() into require(). */
const computedImportFiles = new Set(["llm/import-module.ts", "execute/executors/host/module-host.ts"]);

const src = resolve(process.argv[2] ?? join(dirname(dirname(fileURLToPath(import.meta.url))), "src"));
const violations = [];
const graph = new Map();

for (const file of listSourceFiles(src)) {
  const from = findDirectory(file);
  const imports = listImports(file);
  graph.set(file, []);
  for (const specifier of imports) {
    if (!specifier.startsWith(".")) {
      const allowedPackages = allowedPackagesByDirectory[from];
      if (allowedPackages && !allowedPackages.includes(specifier)) report(file, `${from}/ may not import ${specifier}`);
      continue;
    }
    const target = resolve(dirname(file), specifier);
    graph.get(file).push(target);
    const to = findDirectory(target);
    const rule = allowed[from];
    if (rule === undefined) report(file, `directory ${from}/ has no rule in scripts/check-imports.mjs`);
    else if (rule !== "*" && to !== from && !rule.includes(to))
      report(file, `${from}/ may not import ${to || "src"}/ (${specifier})`);
  }
}
findCycles();

if (graph.size === 0) violations.push(`no source files under ${src}`);
for (const violation of violations) process.stderr.write(`${violation}\n`);
process.stderr.write(`${graph.size} files read, ${violations.length} violations\n`);
process.exit(violations.length === 0 ? 0 : 1);

function report(file, message) {
  violations.push(`${relative(dirname(src), file)}: ${message}`);
}

function findDirectory(file) {
  const parts = relative(src, file).split("/");
  return parts.length === 1 ? "" : parts[0];
}

function* listSourceFiles(directory) {
  for (const entry of readdirSync(directory, { withFileTypes: true })) {
    const path = join(directory, entry.name);
    if (entry.isDirectory()) yield* listSourceFiles(path);
    // Tests may import anything.
    else if (/\.tsx?$/.test(entry.name) && !/\.test\.tsx?$/.test(entry.name)) yield path;
  }
}

function listImports(file) {
  const { module, errors } = parseSync(file, readFileSync(file, "utf8"));
  if (errors.length > 0) report(file, `cannot be parsed: ${errors[0].message}`);
  const text = readFileSync(file, "utf8");
  return [
    ...module.staticImports.map((entry) => entry.moduleRequest.value),
    ...module.staticExports.flatMap(({ entries }) =>
      entries.flatMap(({ moduleRequest }) => (moduleRequest ? [moduleRequest.value] : [])),
    ),
    ...module.dynamicImports.flatMap(({ moduleRequest }) => {
      const specifier = text.slice(moduleRequest.start, moduleRequest.end);
      if (/^(["']).*\1$/.test(specifier)) return [specifier.slice(1, -1)];
      if (!computedImportFiles.has(relative(src, file)))
        report(
          file,
          `import(${specifier}) must have a literal path; use importModule() of llm/import-module.ts instead`,
        );
      return [];
    }),
  ];
}

function findCycles() {
  const state = new Map();
  const visit = (file, path) => {
    if (state.get(file) === "done" || !graph.has(file)) return;
    const start = path.indexOf(file);
    if (start >= 0) {
      violations.push(
        `import cycle: ${[...path.slice(start), file].map((cycleFile) => relative(src, cycleFile)).join(" -> ")}`,
      );
      return;
    }
    for (const next of graph.get(file)) visit(next, [...path, file]);
    state.set(file, "done");
  };
  for (const file of graph.keys()) visit(file, []);
}
