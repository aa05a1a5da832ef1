import { randomUUID } from "node:crypto";
import { shortLivedName } from "../model/short-lived.ts";
import { runsDirectory } from "../model/state-layout.ts";
import { type NestedSocket, nestedSocketPath, openNestedSocket } from "./nested-socket.ts";
import type { OpenCoordinator } from "./open-coordinator.ts";
import { type Runner, type RunnerOptions, type RunnerProfile, startRunner } from "../runner.ts";

/** How Drover commands inside the runs of an embedded coordinator reach it. */
export type NestedRuns = NestedSocket;

export interface NestedRunsOptions {
  coordinator: OpenCoordinator;
  runner: Omit<RunnerOptions, "profiles" | "name" | "apiUrl">;
  /** What the coordinator offers already. */
  offered: readonly RunnerProfile[];
  /** Every profile of this place. */
  openProfiles(): Promise<readonly RunnerProfile[]>;
  /** Runs that commands start are for this one from now on. */
  onRunner(runner: Runner, profiles: readonly RunnerProfile[]): void;
  onFault: (error: unknown) => void;
}

/** Runs inside runs wait for each other, and each has its slot while it waits: more than any profile says. */
const nestedSlots = 32;

/** With the first command that asks for something, a second runner is started, which takes what commands start. */
export function openNestedRuns(options: NestedRunsOptions): NestedRuns {
  const { coordinator, offered } = options;
  let runner: Runner | null = null;
  const path = nestedSocketPath(runsDirectory(options.runner.stateDirectory), randomUUID());
  const url = `unix:${path}`;
  const socket = openNestedSocket(
    path,
    async (origin) => {
      const { serveNested } = await import("./serve-nested.ts");
      const others = (await options.openProfiles()).filter(
        ({ loaded }) => !offered.some((known) => known.loaded.name === loaded.name),
      );
      const profiles = [...offered, ...others];
      coordinator.agents.setOwn(profiles.flatMap((profile) => profile.agents));
      runner = await startRunner({
        ...options.runner,
        apiUrl: url,
        profiles,
        name: newShortLivedName(),
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

export function newShortLivedName(): string {
  return shortLivedName(process.pid, randomUUID());
}
