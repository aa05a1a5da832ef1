import type { Executor } from "../../../model/executor.ts";
import { claude } from "./claude.ts";
import type { AgentClient } from "./define-client.ts";
import { createCodeReview } from "./code-review.ts";
import { codex } from "./codex.ts";
import type { ClientHost } from "./definition.ts";
import { gemini } from "./gemini.ts";

/** Each client is also an engine of code-review. */
export const clients: Readonly<Record<string, AgentClient>> = { claude, codex, gemini };

/** The built-in executors of this directory, by their `type` in a profile. */
export const clientExecutors: Readonly<Record<string, (host: ClientHost) => Executor>> = {
  ...Object.fromEntries(Object.entries(clients).map(([name, client]) => [name, client.executor])),
  "code-review": createCodeReview(clients),
};
