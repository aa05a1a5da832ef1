import type { FeedHub } from "../show/feed-hub.ts";
import { errorFromProblem } from "../wire/problem.ts";
import { type CallInput, inProcessUrl, type Transport } from "../wire/transport.ts";
import type { RouteName } from "../wire/contracts.ts";
import type { Api } from "./api.ts";
import { pipeFeed } from "./pipe-feed.ts";
import { Refusal } from "./refusal.ts";
import { BytesReply, FeedReply, Reply } from "./reply.ts";
import type { Principal } from "./rule.ts";

/** A process that can open the record has full access to it anyway. */
const inProcessAdmin: Principal = { kind: "token", role: "admin", subject: "admin", token_id: "in-process" };

interface InProcessTransportOptions {
  /** Defaults to an admin. */
  principal?: Principal;
  /** Converts errors before they are thrown. By default, refusals become the same errors as over HTTP. */
  convertError?: (error: unknown) => unknown;
}

/** Calls the API in this process, without HTTP. Following events needs a `hub`. */
export function createInProcessTransport(
  api: Api,
  hub: FeedHub | null,
  options: InProcessTransportOptions = {},
): Transport {
  const { principal = inProcessAdmin, convertError = toClientError } = options;
  return {
    url: inProcessUrl,
    async json(route, input) {
      const reply = await call(route, input);
      return reply instanceof Reply ? reply.body : reply;
    },
    async bytes(route, input) {
      const reply = await call(route, input);
      if (reply instanceof BytesReply) return { header: (name) => reply.headers[name] ?? null, bytes: reply.bytes };
      if (reply instanceof FeedReply && hub !== null)
        return { header: () => null, bytes: pipeFeed(hub, reply, input.signal) };
      return null;
    },
  };

  async function call(route: RouteName, input: CallInput): Promise<unknown> {
    try {
      return await api.call(principal, route, input);
    } catch (error) {
      throw convertError(error);
    }
  }
}

function toClientError(error: unknown): unknown {
  return error instanceof Refusal ? errorFromProblem(error.problem) : error;
}
