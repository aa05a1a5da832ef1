import { createHash } from "node:crypto";
import type { Registration } from "../model/runner-port.ts";

/** A stable id for a runner with the same host, directory, profile and name: a readable part, then a hash. */
export function runnerIdOf({ hostname, project_dir, executor_profile, name }: Registration): string {
  const hash = createHash("sha256").update(JSON.stringify([hostname, project_dir, executor_profile, name ?? null]));
  const readable = [name ?? hostname, executor_profile].map(slug).filter((part) => part !== "");
  return [...readable, hash.digest("hex").slice(0, 12)].join("-");
}

export function hashKey(runner_key: string): string {
  return createHash("sha256").update(runner_key).digest("hex");
}

function slug(text: string): string {
  return text
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, "-")
    .replaceAll(/^-+|-+$/g, "")
    .slice(0, 24);
}
