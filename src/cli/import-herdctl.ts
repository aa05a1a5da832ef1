import { existsSync, mkdirSync, statSync, writeFileSync } from "node:fs";
import { dirname, isAbsolute, join, relative, resolve } from "node:path";
import { stringify } from "yaml";
import { loadAgentFiles } from "../define/load-agents.ts";
import { type ImportedFleet, readHerdctl } from "../define/herdctl/read-fleet.ts";
import { openSchemaChecker } from "../define/json-schema/checker.ts";
import { type DefinitionFault, describeFault } from "../model/definition-fault.ts";
import { RequestError } from "../model/errors.ts";
import { write } from "./io.ts";
import { toJsonLine } from "./json-line.ts";
import { type CommandInput, type CommandSpec, readText } from "./options.ts";

/** The default directory. It is not `agents`, because herdctl keeps its own agents there. */
const defaultOut = "drover-agents";

export const importHerdctl: CommandSpec = {
  name: "import herdctl",
  summary: "convert the agents of a herdctl fleet to Drover agents",
  placeholders: "PATH",
  arity: [1, 1],
  examples: [
    ["drover import herdctl .", `from ./herdctl.yaml into ./${defaultOut}`],
    [
      "drover import herdctl ~/fleet/herdctl.yaml --out agents/fleet",
      "lists keys that it cannot import, with line numbers",
    ],
  ],
  options: {
    out: { placeholder: "DIR", description: `directory for the new files (default: ${defaultOut})` },
    force: { description: "overwrite existing files" },
  },
  run: importFleet,
};

/** Writes all files or none. Prints the keys that it could not import to stderr. */
async function importFleet({ positionals, options, cwd }: CommandInput): Promise<number> {
  const out = resolve(cwd, readText(options, "out") ?? defaultOut);
  const source = findSourceFile(resolve(cwd, positionals[0]!));
  const imported = await readHerdctl(source);
  const files = toFiles(imported, source, out);
  const existingFiles = files.filter(({ path }) => existsSync(path));
  if (existingFiles.length > 0 && !options["force"])
    throw new RequestError({
      code: "DROVER-USE-012",
      field: "--out",
      message: `${existingFiles.map(({ path }) => relative(cwd, path)).join(", ")} already ${existingFiles.length === 1 ? "exists" : "exist"}. Nothing was written.`,
      next: "Choose another directory with --out, or overwrite with --force.",
    });
  for (const { path, content } of files) {
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, content);
  }
  const faults = [...imported.faults, ...(files.length === 0 ? [] : await findFaults(files[0]!.path))];
  printReport(imported, faults, {
    files: files.map(({ path }) => relative(cwd, path)),
    out: relative(cwd, out) || ".",
    source,
    json: options["json"] !== undefined,
  });
  return faults.length === 0 ? 0 : 1;
}

/** Returns the file at `path`, or the herdctl.yaml that herdctl itself would find in that directory. */
function findSourceFile(path: string): string {
  if (!statSync(path, { throwIfNoEntry: false })?.isDirectory()) return path;
  const fleetFile = ["herdctl.yaml", "herdctl.yml"].map((name) => join(path, name)).find((file) => existsSync(file));
  if (fleetFile !== undefined) return fleetFile;
  throw new RequestError({
    code: "DROVER-USE-003",
    field: "PATH",
    message: `${path} has no herdctl.yaml.`,
    next: "Pass a herdctl.yaml, its directory, or the file of one agent.",
  });
}

interface NewFile {
  path: string;
  content: string;
}

/** Returns the fleet file, then a file for each agent. */
function toFiles({ agents, defaults, description }: ImportedFleet, source: string, out: string): NewFile[] {
  if (agents.length === 0) return [];
  const names = new Map(agents.map(({ name }) => [name, `${name}.yaml`]));
  const fleet = {
    ...(description === null ? {} : { description }),
    defaults: withRelativeDirectory(defaults, out),
    agents: [...names.values()].map((path) => ({ path })),
  };
  const header = `# Imported from ${relative(out, source)}, a herdctl fleet.\n`;
  const toYaml = (value: unknown): string => stringify(value, { lineWidth: 0 });
  return [
    { path: join(out, "fleet.yaml"), content: `${header}${toYaml(fleet)}` },
    ...agents.map(({ name, ...keys }) => ({
      path: join(out, names.get(name)!),
      content: toYaml({ name, ...withRelativeDirectory(keys, out) }),
    })),
  ];
}

/** Makes the working directory relative to the new file, so that the project can be moved. */
function withRelativeDirectory(keys: Record<string, unknown>, out: string): Record<string, unknown> {
  const { working_directory } = keys;
  if (typeof working_directory !== "string" || !isAbsolute(working_directory)) return keys;
  return { ...keys, working_directory: relative(out, working_directory) || "." };
}

/** Loads the written files as Drover will, and returns their faults. */
async function findFaults(fleet: string): Promise<DefinitionFault[]> {
  const schemas = openSchemaChecker();
  const { faults } = await loadAgentFiles([fleet], schemas);
  await schemas.stop();
  return faults;
}

function printReport(
  { agents, notes, variables }: ImportedFleet,
  faults: readonly DefinitionFault[],
  { files, out, source, json }: { files: string[]; out: string; source: string; json: boolean },
): void {
  if (json) {
    write(1, toJsonLine({ agents: agents.map(({ name }) => name), files, notes, variables, faults }));
    return;
  }
  for (const file of files) write(1, `${file}\n`);
  for (const { file, line, key, message } of notes) write(2, `${file}:${line}: ${key} ${message}\n`);
  for (const fault of faults) write(2, `${describeFault(fault)} [${fault.code}]\n  ${fault.next}\n`);
  const env = join(dirname(source), ".env");
  const hints = [
    ...(variables.length === 0
      ? []
      : [`The agents use ${variables.join(", ")}: list them in allow_env of the runner's profile.`]),
    ...(existsSync(env) ? [`herdctl reads ${env}: start the runner with --env-file ${env} to do the same.`] : []),
    ...(files.length === 0 ? [] : [`To use the agents, add \`agents: ${out}\` to drover.yaml.`]),
    `Imported ${formatCount(agents.length, "agent")}; ${formatCount(notes.length, "note")}, ${formatCount(faults.length, "fault")}.`,
  ];
  write(2, `${hints.join("\n")}\n`);
}

function formatCount(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? "" : "s"}`;
}
