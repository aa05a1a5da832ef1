import { describe, expect, it } from "vitest";
import type { Case } from "./contract.ts";
import { executorContract } from "./executor.ts";
import { providerContract } from "./provider.ts";
import { runnerPortContract } from "./runner-port.ts";

/** A suite must be able to fail: an implementation that does nothing fails every case. */
const suites: Record<string, readonly Case<never>[]> = {
  executor: executorContract,
  "runner port": runnerPortContract,
  provider: providerContract,
};

describe.each(Object.entries(suites))("the %s contract", (_name, cases) => {
  it.each(cases.map(({ title, check }) => [title, check] as const))(
    "fails without an implementation: %s",
    async (_title, check) => {
      await expect(check(() => Promise.resolve(idle))).rejects.toThrow();
    },
  );
});

/** Returns nothing for everything. The cases cannot know its type, which is the point. */
const idle = new Proxy(() => undefined, {
  get: (_target, key) => (key === "then" ? undefined : idle),
  apply: () => Promise.resolve(undefined),
}) as never;
