import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Coordinator, type CoordinatorOptions, startCoordinator } from "../src/coordinator.ts";
import { type ApiClient, createClient } from "../src/wire/client.ts";

export interface TestCoordinator extends Coordinator {
  directory: string;
  client: ApiClient;
  /** Defects that the coordinator reported. */
  defects: unknown[];
  dispose(): Promise<void>;
}

/** Starts a real coordinator on a free port with a fresh directory. */
export async function startTestCoordinator(options: Partial<CoordinatorOptions> = {}): Promise<TestCoordinator> {
  const directory = mkdtempSync(join(tmpdir(), "drover-coordinator-"));
  const defects: unknown[] = [];
  const coordinator = await startCoordinator({
    stateDirectory: directory,
    port: 0,
    pollHoldMs: 500,
    onDefect: (error) => defects.push(error),
    ...options,
  });
  return {
    ...coordinator,
    directory,
    defects,
    client: createClient({ url: coordinator.url, token: coordinator.adminToken }),
    async dispose() {
      await coordinator.stop();
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

/** A sample registration of a runner. */
export function registration(runner_key: string, project_dir = "/srv/project") {
  return {
    protocol: 1 as const,
    runner_key: runner_key.padEnd(16, "."),
    hostname: "box",
    project_dir,
    executor_profile: "procedural",
    executor: { type: "procedural", config: {} },
    tags: [],
    require_matching_tags: false,
    agents: [],
    slots: 10,
  };
}
