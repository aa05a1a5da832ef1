import type { FeedHub } from "../show/feed-hub.ts";
import { errorFromProblem } from "../wire/problem.ts";
import type { CallInput, Transport } from "../wire/transport.ts";
import type { RouteName } from "../wire/contracts.ts";
import type { Api } from "./api.ts";
import { pipeFeed } from "./pipe-feed.ts";
import { Refusal } from "./refusal.ts";
import { BytesReply, FeedReply, Reply } from "./reply.ts";
import type { Principal } from "./rule.ts";

/** A process that can open the record may do everything with it. */
const localAdmin: Principal = { kind: "token", role: "admin", subject: "admin", token_id: "in-process" };

interface LocalOptions {
  /** In whose name; else the local admin's. */
  principal?: Principal;
  /** What is thrown where a call fails. Else a refusal is an error as over HTTP, and what else goes wrong is thrown as it is. */
  fail?: (error: unknown) => unknown;
}

/** Calls the API of this process, without HTTP. `hub` is where events are followed. */
export function localTransport(api: Api, hub: FeedHub | null, options: LocalOptions = {}): Transport {
  const { principal = localAdmin, fail = refusalAsError } = options;
  return {
    url: "this process",
    async json(route, input) {
      const answer = await call(route, input);
      return answer instanceof Reply ? answer.body : answer;
    },
    async bytes(route, input) {
      const answer = await call(route, input);
      if (answer instanceof BytesReply) return { header: (name) => answer.headers[name] ?? null, bytes: answer.bytes };
      if (answer instanceof FeedReply && hub !== null)
        return { header: () => null, bytes: pipeFeed(hub, answer, input.signal) };
      return null;
    },
  };

  async function call(route: RouteName, input: CallInput): Promise<unknown> {
    try {
      return await api.call(principal, route, input);
    } catch (error) {
      throw fail(error);
    }
  }
}

function refusalAsError(error: unknown): unknown {
  return error instanceof Refusal ? errorFromProblem(error.problem) : error;
}
