import { existsSync, mkdirSync, statSync, writeFileSync } from "node:fs";
import { dirname, isAbsolute, join, relative, resolve } from "node:path";
import { stringify } from "yaml";
import { loadAgentFiles } from "../define/load-agents.ts";
import { type ImportedFleet, readHerdctl } from "../define/herdctl/read-fleet.ts";
import { openSchemaChecker } from "../define/json-schema/checker.ts";
import { type DefinitionFault, describeFault } from "../model/definition-fault.ts";
import { RequestError } from "../model/errors.ts";
import { write } from "./io.ts";
import { jsonLine } from "./json-line.ts";
import { type CommandInput, type CommandSpec, text } from "./options.ts";

/** Not `agents`, where herdctl has its own. */
const defaultOut = "drover-agents";

export const importHerdctl: CommandSpec = {
  name: "import herdctl",
  summary: "write the agents of a herdctl fleet as agents of Drover",
  takes: "PATH",
  arity: [1, 1],
  examples: [
    ["drover import herdctl .", `from ./herdctl.yaml into ./${defaultOut}`],
    ["drover import herdctl ~/fleet/herdctl.yaml --out agents/fleet", "what is not imported is named, with its line"],
  ],
  options: {
    out: { value: "DIR", about: `where to write them (default: ${defaultOut})` },
    force: { about: "overwrite files that are there" },
  },
  run: importFleet,
};

/** Writes all files or none; what it could not take over is named on stderr. */
async function importFleet({ positionals, options, cwd }: CommandInput): Promise<number> {
  const out = resolve(cwd, text(options, "out") ?? defaultOut);
  const source = sourceFile(resolve(cwd, positionals[0]!));
  const imported = await readHerdctl(source);
  const files = filesOf(imported, source, out);
  const taken = files.filter(({ path }) => existsSync(path));
  if (taken.length > 0 && !options["force"])
    throw new RequestError({
      code: "DROVER-USE-012",
      field: "--out",
      message: `There is already ${taken.map(({ path }) => relative(cwd, path)).join(", ")}. Nothing was written.`,
      next: "Name another folder with --out, or overwrite them with --force.",
    });
  for (const { path, content } of files) {
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, content);
  }
  const faults = [...imported.faults, ...(files.length === 0 ? [] : await faultsOf(files[0]!.path))];
  tell(imported, faults, {
    files: files.map(({ path }) => relative(cwd, path)),
    out: relative(cwd, out) || ".",
    source,
    json: options["json"] !== undefined,
  });
  return faults.length === 0 ? 0 : 1;
}

/** `herdctl.yaml` of a folder, as herdctl itself finds it. */
function sourceFile(path: string): string {
  if (!statSync(path, { throwIfNoEntry: false })?.isDirectory()) return path;
  const found = ["herdctl.yaml", "herdctl.yml"].map((name) => join(path, name)).find((file) => existsSync(file));
  if (found !== undefined) return found;
  throw new RequestError({
    code: "DROVER-USE-003",
    field: "PATH",
    message: `There is no herdctl.yaml in ${path}.`,
    next: "Name a herdctl.yaml, the folder it lies in, or the file of one agent.",
  });
}

interface NewFile {
  path: string;
  content: string;
}

/** The fleet file, then a file for each agent. */
function filesOf({ agents, defaults, description }: ImportedFleet, source: string, out: string): NewFile[] {
  if (agents.length === 0) return [];
  const names = new Map(agents.map(({ name }) => [name, `${name}.yaml`]));
  const fleet = {
    ...(description === null ? {} : { description }),
    defaults: placed(defaults, out),
    agents: [...names.values()].map((path) => ({ path })),
  };
  const header = `# Imported from ${relative(out, source)}, a fleet of herdctl.\n`;
  const yaml = (value: unknown): string => stringify(value, { lineWidth: 0 });
  return [
    { path: join(out, "fleet.yaml"), content: `${header}${yaml(fleet)}` },
    ...agents.map(({ name, ...keys }) => ({
      path: join(out, names.get(name)!),
      content: yaml({ name, ...placed(keys, out) }),
    })),
  ];
}

/** Relative to the new file, so that the folder can be moved with the project. */
function placed(keys: Record<string, unknown>, out: string): Record<string, unknown> {
  const { working_directory } = keys;
  if (typeof working_directory !== "string" || !isAbsolute(working_directory)) return keys;
  return { ...keys, working_directory: relative(out, working_directory) || "." };
}

/** What was written is read as it will be. */
async function faultsOf(fleet: string): Promise<DefinitionFault[]> {
  const schemas = openSchemaChecker();
  const { faults } = await loadAgentFiles([fleet], schemas);
  await schemas.stop();
  return faults;
}

function tell(
  { agents, notes, variables }: ImportedFleet,
  faults: readonly DefinitionFault[],
  { files, out, source, json }: { files: string[]; out: string; source: string; json: boolean },
): void {
  if (json) {
    write(1, jsonLine({ agents: agents.map(({ name }) => name), files, notes, variables, faults }));
    return;
  }
  for (const file of files) write(1, `${file}\n`);
  for (const { file, line, key, message } of notes) write(2, `${file}:${line}: ${key} ${message}\n`);
  for (const fault of faults) write(2, `${describeFault(fault)} [${fault.code}]\n  ${fault.next}\n`);
  const env = join(dirname(source), ".env");
  const hints = [
    ...(variables.length === 0
      ? []
      : [`Agents name ${variables.join(", ")}: list them in allow_env of the runner's profile.`]),
    ...(existsSync(env) ? [`herdctl read ${env}: start the runner with --env-file ${env}.`] : []),
    ...(files.length === 0 ? [] : [`Use them: write \`agents: ${out}\` into drover.yaml.`]),
    `Imported ${count(agents.length, "agent")}; ${count(notes.length, "note")}, ${count(faults.length, "fault")}.`,
  ];
  write(2, `${hints.join("\n")}\n`);
}

function count(number: number, what: string): string {
  return `${number} ${what}${number === 1 ? "" : "s"}`;
}
