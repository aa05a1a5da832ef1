import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { findAgentsDirectory } from "../cli/agents-directory.ts";
import { connect } from "../cli/connect.ts";
import type { Project } from "../local.ts";
import { RequestError } from "../model/errors.ts";
import type { Environment } from "../model/environment.ts";
import { createClient, type ApiClient } from "../wire/client.ts";
import type { CoordinatorAddress, LocalState } from "./connect-options.ts";
import { createDrover, type Drover } from "./drover.ts";

export async function openConnection(options: CoordinatorAddress | LocalState): Promise<Drover> {
  checkOptions(options);
  if ("url" in options) {
    const { url, token = null, allowHttp = false } = options;
    return connectTo(createClient({ url, token, allowHttp }));
  }
  const { stateDir, agents, profiles, env = process.env } = options;
  const cwd = resolve(options.cwd ?? ".");
  const input = {
    options: agents === undefined ? {} : { agents: resolve(cwd, agents) },
    positionals: [],
    rest: null,
    extraOptions: [],
    env: stateDir === undefined ? env : setStateDirectory(env, resolve(cwd, stateDir)),
    cwd,
  };
  const { client, project } = await connect(input);
  if (client !== null) {
    const unusableOption = (["agents", "profiles"] as const).find((name) => options[name] !== undefined);
    if (unusableOption !== undefined) throw servedElsewhere(unusableOption, client.url, project);
    return connectTo(client);
  }
  // Import this only now: a client of a running coordinator needs none of this code.
  const { openEmbedded } = await import("./open-embedded.ts");
  const config =
    profiles === undefined ? project.config : { ...project.config, profiles: findDirectory("profiles", cwd, profiles) };
  return openEmbedded({
    project: { ...project, config },
    env: input.env,
    cwd,
    agentsDirectory: findAgentsDirectory(input, project),
  });
}

/** Fails immediately, and not with the first call, if the coordinator does not respond or refuses the token. */
async function connectTo(client: ApiClient): Promise<Drover> {
  await client.me();
  return createDrover(client, async () => undefined);
}

function setStateDirectory({ DROVER_API_URL: _url, ...env }: Environment, stateDirectory: string): Environment {
  return { ...env, DROVER_STATE_DIR: stateDirectory };
}

/** Validates at run time, for callers in plain JavaScript. */
function checkOptions(options: CoordinatorAddress | LocalState): void {
  if (typeof options !== "object" || options === null) throw invalidOption("options", "must be an object");
  if ("url" in options && "stateDir" in options) throw invalidOption("stateDir", "cannot be combined with url");
  if ("url" in options && (typeof options.url !== "string" || options.url === ""))
    throw invalidOption("url", "must be the address of a coordinator");
  for (const name of ["stateDir", "agents", "profiles", "cwd"] as const) {
    const value: unknown = Reflect.get(options, name);
    if (value !== undefined && (typeof value !== "string" || value === "")) throw invalidOption(name, "must be a path");
  }
}

function findDirectory(field: string, cwd: string, path: string): string {
  const directory = resolve(cwd, path);
  if (existsSync(directory)) return directory;
  throw new RequestError({
    code: "DROVER-USE-001",
    field,
    message: `The directory passed to connect() as \`${field}\` does not exist: ${directory}`,
    next: "Create it, or correct the path. A relative path is relative to `cwd`, which defaults to the working directory.",
  });
}

function servedElsewhere(field: string, url: string, { locations }: Project): RequestError {
  return new RequestError({
    code: "DROVER-USE-001",
    field,
    message: `${field} cannot be used, because the coordinator at ${url} already serves ${locations.stateDirectory}.`,
    next: "Configure that coordinator and its runners instead, or use another stateDir.",
  });
}

function invalidOption(field: string, problem: string): RequestError {
  return new RequestError({
    code: "DROVER-USE-001",
    field,
    message: `${field} ${problem}.`,
    next: 'For example: connect({ url: "https://drover.example", token }) or connect({ stateDir: "/var/lib/drover" })',
  });
}
