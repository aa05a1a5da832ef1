import { PortError } from "../../model/port-error.ts";
import type {
  LoadSessionResponse,
  LoadSessionRequest,
  RunnerPort,
  SaveSessionResponse,
  SaveSessionRequest,
} from "../../model/runner-port.ts";
import type { Identity } from "../port/identity.ts";
import { classifyPortError } from "../port/port-failure.ts";

type ByRun<R> = Omit<R, "runner_id" | "epoch">;

/**
 * Makes each request once. Throws instead of returning `fenced` if the runner registered again meanwhile, so that the
 * caller retries.
 */
export interface SessionPort {
  load(request: ByRun<LoadSessionRequest>): Promise<LoadSessionResponse>;
  save(request: ByRun<SaveSessionRequest>): Promise<SaveSessionResponse>;
}

export function createSessionPort(port: RunnerPort, identity: Identity): SessionPort {
  async function send<A>(
    call: (runner: { runner_id: string; epoch: number }) => Promise<A>,
    isFenced: (response: A) => boolean,
  ) {
    const { runner_id, epoch } = await identity.current();
    let response: A;
    try {
      response = await call({ runner_id, epoch });
    } catch (error) {
      if (classifyPortError(error) === "register") await identity.renew(epoch);
      throw error;
    }
    if (isFenced(response) && (await identity.waitForRenewal()).epoch !== epoch)
      throw new PortError("away", "the runner registered again during the request");
    return response;
  }
  return {
    load: (request) =>
      send(
        (runner) => port.loadSession({ ...runner, ...request }),
        ({ load }) => load === "fenced",
      ),
    save: (request) =>
      send(
        (runner) => port.saveSession({ ...runner, ...request }),
        ({ save }) => save === "fenced",
      ),
  };
}
