import { mkdirSync } from "node:fs";
import type { Local } from "../local.ts";
import { HostError, RequestError } from "../model/errors.ts";
import { absentNames, openProfiles, profileFolders } from "../runner-profiles.ts";
import { startRunner } from "../runner.ts";
import { type Client, createClient } from "../wire/client.ts";
import { connect } from "./connect.ts";
import { write } from "./io.ts";
import type { CommandInput } from "./options.ts";
import { serveHere } from "./serve-here.ts";
import { directoryOfSession, noteDirectory } from "./session-directory.ts";

type Work = (client: Client) => Promise<number>;

/**
 * Works with the coordinator that is there, or with one that lives as long as this command: that one and its runner
 * are as if started where the session lies that is to go on.
 */
export async function withCoordinator(input: CommandInput, work: Work, session?: string): Promise<number> {
  const { client, local } = await connect(input);
  if (client) return work(client);
  if (input.env["DATABASE_URL"]) throw fleetHasItsOwn();
  const there = session === undefined ? null : await directoryOfSession(local, session);
  return withOwn(there === null ? input : { ...input, cwd: there }, local, work);
}

async function withOwn(input: CommandInput, local: Local, work: Work): Promise<number> {
  mkdirSync(local.places.stateDirectory, { recursive: true, mode: 0o700 });
  const onNotice = (message: string): void => {
    if (!input.options["quiet"]) write(2, `drover: ${message}\n`);
  };
  const coordinator = await serveHere(input, local, { host: "127.0.0.1", port: 0 });
  const profiles = await openProfiles({
    wanted: null,
    folders: profileFolders(input.cwd, true),
    env: input.env,
    onNotice,
  });
  const runner = await startRunner({
    port: coordinator.port,
    profiles: profiles.profiles,
    stateDirectory: local.places.stateDirectory,
    projectDir: input.cwd,
    env: anyAgent(input.env),
    maxOutputKb: local.config.execution.max_output_kb,
    defaultTimeoutSeconds: local.config.execution.default_timeout_seconds,
    onNotice,
  });
  try {
    const ids = runner.registrations.map(({ runner_id }) => runner_id);
    noteDirectory(local, ids, input.cwd);
    return await work(createClient({ url: coordinator.url, token: coordinator.adminToken }));
  } catch (error) {
    // it may be an agent of a profile that would be offered if its program were here
    if (error instanceof RequestError && error.code === "DROVER-SUB-001" && profiles.absent.length > 0)
      onNotice(`not offered here, as a program is missing (drover doctor says which): ${absentNames(profiles)}`);
    throw error;
  } finally {
    await runner.stop();
    await profiles.stop();
    await coordinator.stop();
  }
}

/** A runner that is there for one command would be handed runs of the whole fleet, and end them when it ends itself. */
function fleetHasItsOwn(): HostError {
  return new HostError({
    code: "DROVER-API-023",
    field: "DATABASE_URL",
    message: "DATABASE_URL is set, so runs are for the coordinators of that database, and none was found.",
    next: "Name one with DROVER_API_URL and DROVER_API_KEY; or unset DATABASE_URL to run it here, on the record of the state directory.",
  });
}

/** DROVER_AGENT is for runners that serve others: this one is there for what was asked for. */
function anyAgent({ DROVER_AGENT: _agent, ...env }: CommandInput["env"]): CommandInput["env"] {
  return env;
}
