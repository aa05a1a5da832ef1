import { type ApiClient, createApiClient } from "../wire/api-client.ts";
import { errorFromProblem } from "../wire/problem.ts";
import type { Api } from "./api.ts";
import type { ServeDeps, SystemDeps } from "./deps.ts";
import { createInProcessTransport } from "./in-process-transport.ts";
import { Refusal, toRefusal } from "./refusal.ts";
import type { Principal } from "./rule.ts";

/** The limit for one caller at one coordinator. A call that waits for a run stays open. */
const maxOpenCalls = 64;

/** Handles MCP messages with the API on behalf of their sender, so every tool is subject to the sender's permissions. */
export function createMcpEndpoint(
  api: () => Api,
  deps: Pick<ServeDeps, "hub" | "version" | "onDefect">,
): SystemDeps["handleMcp"] {
  const openCalls = new Map<string, number>();
  return async (principal, message, headers, signal) => {
    const onEnd = acquire(openCalls, getCallerKey(principal));
    try {
      // The SDK is loaded with the first message.
      const { handleMcp } = await import("./mcp/handle-mcp.ts");
      const { version, onDefect } = deps;
      const client = createClientFor(api(), principal, deps);
      return { response: await handleMcp(message, headers, signal, { client, version, onDefect }), onEnd };
    } catch (error) {
      onEnd();
      throw error;
    }
  };
}

function createClientFor(
  api: Api,
  principal: Principal,
  { hub, onDefect }: Pick<ServeDeps, "hub" | "onDefect">,
): ApiClient {
  const convertError = (error: unknown): Error => {
    const { problem } = toRefusal(error);
    if (problem.status >= 500) onDefect(error, "POST /mcp");
    return errorFromProblem(problem);
  };
  return createApiClient(createInProcessTransport(api, hub, { principal, convertError }));
}

function getCallerKey(principal: Principal): string {
  switch (principal.kind) {
    case "token":
      return principal.token_id;
    case "attempt":
      return `run ${principal.run.run_id}`;
    case "enrolment":
      return principal.hash;
    default:
      return principal satisfies never;
  }
}

/** Counts an open call. Returns a function that releases it, which may be called more than once. */
function acquire(openCalls: Map<string, number>, caller: string): () => void {
  const count = openCalls.get(caller) ?? 0;
  if (count >= maxOpenCalls)
    throw new Refusal(
      429,
      "DROVER-MCP-001",
      `This token already has ${maxOpenCalls} open MCP calls at this coordinator.`,
      {
        next: "Wait until one of them ends, or use start_run and get_run, which do not stay open.",
        headers: { "retry-after": "5" },
      },
    );
  openCalls.set(caller, count + 1);
  let isReleased = false;
  return () => {
    if (isReleased) return;
    isReleased = true;
    const remaining = (openCalls.get(caller) ?? 1) - 1;
    if (remaining === 0) openCalls.delete(caller);
    else openCalls.set(caller, remaining);
  };
}
