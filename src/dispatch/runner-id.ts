import { createHash } from "node:crypto";
import type { Registration } from "../model/runner-port.ts";

/** Runners with the same host, directory, profile and name get the same id: a readable part, then a hash. */
export function createRunnerId({ hostname, project_dir, executor_profile, name }: Registration): string {
  const hash = createHash("sha256").update(JSON.stringify([hostname, project_dir, executor_profile, name ?? null]));
  const readable = [name ?? hostname, executor_profile].map(toSlug).filter((part) => part !== "");
  return [...readable, hash.digest("hex").slice(0, 12)].join("-");
}

export function hashRunnerKey(runner_key: string): string {
  return createHash("sha256").update(runner_key).digest("hex");
}

function toSlug(text: string): string {
  return text
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, "-")
    .replaceAll(/^-+|-+$/g, "")
    .slice(0, 24);
}
