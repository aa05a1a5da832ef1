import type { Locations } from "../define/locations.ts";
import { findProject } from "../local.ts";
import { type Finding, type HostReport, probeHost } from "../process/probe-host.ts";
import { findProfileDirectories } from "../compose/open-profiles.ts";
import { type FoundClient, findAgentSdk, findClients } from "./find-clients.ts";
import { formatColumns } from "./help.ts";
import { write } from "./io.ts";
import { toJsonLine } from "./json-line.ts";
import type { CommandInput, CommandSpec } from "./options.ts";
import { describeUntrusted, findUntrusted } from "./resolve-trust.ts";
import { explainLocation } from "./state.ts";
import { replaceControlCharacters } from "./table.ts";

export const doctor: CommandSpec = {
  name: "doctor",
  summary:
    "check which isolation levels, limits and agent clients work on this machine, and say how to get what is missing",
  placeholders: "",
  arity: [0, 0],
  examples: [["drover doctor", "tests each capability instead of guessing from versions"]],
  options: {},
  run: examine,
};

async function examine(input: CommandInput): Promise<number> {
  // Fails on a broken drover.yaml, like every other command.
  const project = await findProject(input.env, input.cwd);
  const { locations, config } = project;
  const untrusted = findUntrusted(input, project, { profiles: true, agents: true });
  const [host, programs] = await Promise.all([probeHost(), findClients(input.env)]);
  const profileDirectories = findProfileDirectories(input.cwd, config, true, input.env);
  const clients = { ...programs, "claude-sdk": findAgentSdk(profileDirectories, input) };
  if (input.options["json"]) {
    const { stateDirectory, configFile } = locations;
    write(
      1,
      toJsonLine({
        node: process.version,
        state_directory: stateDirectory,
        config_file: configFile,
        trusted: project.trusted,
        ...host,
        clients,
      }),
    );
    return 0;
  }
  const rows: [string, string][] = [
    ["platform", `${host.platform}, Node ${process.version}`],
    ["state directory", describeState(locations, input.env)],
    ["configuration", locations.configFile ?? "none (defaults)"],
    ["trusted", project.trusted ? "yes" : "no"],
    ["isolation auto", host.auto ?? "none available"],
    ...toRows("isolation", host.isolation),
    ...toRows("limit", toOptionNames(host.limits)),
    ...toRows("launcher", host.launchers),
    ...Object.entries(clients).map(([name, finding]): [string, string] => [`client ${name}`, describeClient(finding)]),
  ];
  write(1, `${formatColumns(rows).join("\n")}\n`);
  for (const line of describeUntrusted(untrusted, input.env)) write(2, `drover: ${line}\n`);
  const missing = [...listMissingCapabilities(host), ...listMissingClients(clients)];
  if (missing.length > 0) write(1, `\nMissing\n${missing.map((line) => `  ${line}`).join("\n")}\n`);
  return 0;
}

function describeState(locations: Locations, env: CommandInput["env"]): string {
  const { stateDirectory, ignoredState } = locations;
  return `${stateDirectory} (${explainLocation(locations, env)})${ignoredState ? `; not used: ${ignoredState.path}` : ""}`;
}

function toRows(kind: string, findings: Record<string, Finding>): [string, string][] {
  return Object.entries(findings).map(([name, finding]) => [`${kind} ${name}`, finding.works ? "works" : "missing"]);
}

function listMissingCapabilities({ isolation, limits, launchers }: HostReport): string[] {
  return Object.entries({ ...isolation, ...toOptionNames(limits), ...launchers }).flatMap(([name, finding]) =>
    finding.works ? [] : [`${name}: ${finding.why}`, `  ${finding.next}`],
  );
}

function describeClient(client: FoundClient): string {
  if (!client.found) return "missing";
  return replaceControlCharacters(
    `${client.version ?? `unknown version (${client.why ?? "it printed none"})`}, ${client.path}`,
  );
}

function listMissingClients(clients: Record<string, FoundClient>): string[] {
  return Object.entries(clients).flatMap(([name, client]) =>
    client.found ? [] : [`${name}: ${client.why}`, `  ${client.next}`],
  );
}

/** Names the limits as `exec --limit` does. */
function toOptionNames(limits: HostReport["limits"]): Record<string, Finding> {
  const { cpuSeconds, memoryBytes, processes, openFiles, fileSizeBytes, diskBytes, files } = limits;
  return {
    cpu: cpuSeconds,
    memory: memoryBytes,
    processes,
    "open-files": openFiles,
    "file-size": fileSizeBytes,
    disk: diskBytes,
    files,
  };
}
