import type { FeedHub } from "../show/feed-hub.ts";
import { errorFromProblem } from "../wire/problem.ts";
import type { CallInput, Transport } from "../wire/transport.ts";
import type { RouteName } from "../wire/contracts.ts";
import type { Api } from "./api.ts";
import { pipeFeed } from "./feed-pipe.ts";
import { Refusal } from "./refusal.ts";
import { BytesReply, FeedReply, Reply } from "./reply.ts";
import type { Principal } from "./rule.ts";

/** A process that can open the record may do everything with it. */
const localAdmin: Principal = { kind: "token", role: "admin", subject: "admin", token_id: "in-process" };

/** Calls the API of this process, without HTTP. `hub` is where events are followed. */
export function localTransport(api: Api, hub: FeedHub | null, url = "this process"): Transport {
  return {
    url,
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

  /** Refused as over HTTP; what else goes wrong is thrown as it is. */
  async function call(route: RouteName, input: CallInput): Promise<unknown> {
    try {
      return await api.call(localAdmin, route, input);
    } catch (error) {
      throw error instanceof Refusal ? errorFromProblem(error.problem) : error;
    }
  }
}
