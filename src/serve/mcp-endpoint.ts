import { type ApiClient, createApiClient } from "../wire/api-client.ts";
import { errorFromProblem } from "../wire/problem.ts";
import type { Api } from "./api.ts";
import type { ServeDeps, SystemDeps } from "./deps.ts";
import { localTransport } from "./local-transport.ts";
import { Refusal, toRefusal } from "./refusal.ts";
import type { Principal } from "./rule.ts";

/** Of one caller at one coordinator. A call that waits for a run is open as long as it waits. */
const maxOpenCalls = 64;

/** Answers MCP messages with the API, in the name of whoever sent them: each tool is refused what its caller is. */
export function createMcpEndpoint(
  api: () => Api,
  deps: Pick<ServeDeps, "hub" | "version" | "onDefect">,
): SystemDeps["handleMcp"] {
  const open = new Map<string, number>();
  return async (principal, message, headers, signal) => {
    const onEnd = enter(open, callerOf(principal));
    try {
      // the SDK is loaded with the first message
      const { handleMcp } = await import("./mcp/handle-mcp.ts");
      const { version, onDefect } = deps;
      const client = clientFor(api(), principal, deps);
      return { response: await handleMcp(message, headers, signal, { client, version, onDefect }), onEnd };
    } catch (error) {
      onEnd();
      throw error;
    }
  };
}

function clientFor(api: Api, principal: Principal, { hub, onDefect }: Pick<ServeDeps, "hub" | "onDefect">): ApiClient {
  const fail = (error: unknown): Error => {
    const { problem } = toRefusal(error);
    if (problem.status >= 500) onDefect(error, "POST /mcp");
    return errorFromProblem(problem);
  };
  return createApiClient(localTransport(api, hub, { principal, fail }));
}

function callerOf(principal: Principal): string {
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

/** Gives what takes it back, once. */
function enter(open: Map<string, number>, caller: string): () => void {
  const count = open.get(caller) ?? 0;
  if (count >= maxOpenCalls)
    throw new Refusal(
      429,
      "DROVER-MCP-001",
      `${maxOpenCalls} MCP calls with this token are open at this coordinator.`,
      {
        next: "Wait until one of them ends; use start_run and get_run, which do not stay open.",
        headers: { "retry-after": "5" },
      },
    );
  open.set(caller, count + 1);
  let left = false;
  return () => {
    if (left) return;
    left = true;
    const now = (open.get(caller) ?? 1) - 1;
    if (now === 0) open.delete(caller);
    else open.set(caller, now);
  };
}
