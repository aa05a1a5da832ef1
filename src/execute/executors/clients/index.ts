import type { Executor } from "../../../model/executor.ts";
import { claude } from "./claude.ts";
import type { Client } from "./client.ts";
import { createCodeReview } from "./code-review.ts";
import { codex } from "./codex.ts";
import type { ClientHost } from "./definition.ts";
import { gemini } from "./gemini.ts";

/** Each also serves as an engine of code-review. */
export const clients: Readonly<Record<string, Client>> = { claude, codex, gemini };

/** The executors that this folder builds in, by the `type` a profile names them by; each is made for the runner it is on. */
export const clientExecutors: Readonly<Record<string, (host: ClientHost) => Executor>> = {
  ...Object.fromEntries(Object.entries(clients).map(([name, client]) => [name, client.executor])),
  "code-review": createCodeReview(clients),
};
