import { mkdirSync } from "node:fs";
import type { Local } from "../local.ts";
import { RequestError } from "../model/errors.ts";
import { absentNames, openProfiles, profileFolders } from "../runner-profiles.ts";
import { startRunner } from "../runner.ts";
import { type Client, createClient } from "../wire/client.ts";
import { write } from "./io.ts";
import type { CommandInput } from "./options.ts";
import { serveHere } from "./serve-here.ts";
import { noteDirectory } from "./session-directory.ts";

export type Work = (client: Client) => Promise<number>;

/** Works with a coordinator and a runner that live in this process, and as long as this takes. */
export async function withOwn(input: CommandInput, local: Local, work: Work): Promise<number> {
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

/** DROVER_AGENT is for runners that serve others: this one is there for what was asked for. */
function anyAgent({ DROVER_AGENT: _agent, ...env }: CommandInput["env"]): CommandInput["env"] {
  return env;
}
