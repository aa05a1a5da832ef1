import { randomUUID } from "node:crypto";
import { createShortLivedName } from "../model/short-lived-runner.ts";
import { runsDirectory } from "../model/state-layout.ts";
import { type NestedSocket, createNestedSocketPath, openNestedSocket } from "./nested-socket.ts";
import type { OpenCoordinator } from "./open-coordinator.ts";
import { type Runner, type RunnerOptions, type RunnerProfile, startRunner } from "../runner.ts";

/** Connects Drover commands inside runs to the embedded coordinator of those runs. */
export type NestedRuns = NestedSocket;

export interface NestedRunsOptions {
  coordinator: OpenCoordinator;
  runner: Omit<RunnerOptions, "profiles" | "name" | "apiUrl">;
  /** The profiles that the coordinator already offers. */
  offered: readonly RunnerProfile[];
  /** Opens all profiles that are available here. */
  openProfiles(): Promise<readonly RunnerProfile[]>;
  /** Called when the runner for nested runs has started. It executes new nested runs. */
  onRunner(runner: Runner, profiles: readonly RunnerProfile[]): void;
  onFault: (error: unknown) => void;
}

/** More than any profile sets, because a run that waits for a nested run keeps its slot. */
const nestedSlots = 32;

/** Starts a second runner on the first request of a command. That runner executes the runs that commands start. */
export function openNestedRuns(options: NestedRunsOptions): NestedRuns {
  const { coordinator, offered } = options;
  let runner: Runner | null = null;
  const path = createNestedSocketPath(runsDirectory(options.runner.stateDirectory), randomUUID());
  const url = `unix:${path}`;
  const socket = openNestedSocket(
    path,
    async (origin) => {
      const { serveNested } = await import("./serve-nested.ts");
      const additionalProfiles = (await options.openProfiles()).filter(
        ({ loaded }) => !offered.some((profile) => profile.loaded.name === loaded.name),
      );
      const profiles = [...offered, ...additionalProfiles];
      coordinator.agents.setLocal(profiles.flatMap((profile) => profile.agents));
      runner = await startRunner({
        ...options.runner,
        apiUrl: url,
        profiles,
        name: createRunnerName(),
        slots: nestedSlots,
      });
      options.onRunner(runner, profiles);
      return serveNested(coordinator, origin);
    },
    options.onFault,
  );
  return {
    url,
    async close() {
      await socket.close();
      await runner?.stop();
    },
  };
}

/** Creates the name of a runner that exists only for this process. */
export function createRunnerName(): string {
  return createShortLivedName(process.pid, randomUUID());
}
