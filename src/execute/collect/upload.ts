import { PortError } from "../../model/port-error.ts";
import type { RunnerPort, UploadResponse, UploadRequest } from "../../model/runner-port.ts";
import type { Identity } from "../port/identity.ts";
import { classifyPortError } from "../port/port-failure.ts";

export type Upload = (
  request: Omit<UploadRequest, "runner_id" | "epoch">,
  content: AsyncIterable<Uint8Array>,
  signal: AbortSignal,
) => Promise<UploadResponse>;

/** Tries once. Throws instead of returning `fenced` if the runner registered again meanwhile, so that the caller retries. */
export function createUpload(port: RunnerPort, identity: Identity): Upload {
  return async (request, content, signal) => {
    const { runner_id, epoch } = await identity.current();
    let response: UploadResponse;
    try {
      response = await port.upload({ runner_id, epoch, ...request }, content, signal);
    } catch (error) {
      if (classifyPortError(error) === "register") await identity.renew(epoch);
      throw error;
    }
    if (response.upload === "fenced" && (await identity.waitForRenewal()).epoch !== epoch)
      throw new PortError("away", "the runner registered again while the file was being uploaded");
    return response;
  };
}
