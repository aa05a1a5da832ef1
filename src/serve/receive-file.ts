import type { RunnerPort, UploadRequest } from "../model/runner-port.ts";
import type { SizedBytes } from "../wire/transport.ts";
import { Refusal } from "./refusal.ts";

/** The body as it comes, never held as a whole. */
export async function receiveFile(
  port: RunnerPort,
  request: UploadRequest,
  body: SizedBytes | undefined,
  signal: AbortSignal,
): Promise<{ upload: "stored" }> {
  if (body?.size !== request.size) {
    throw new Refusal(400, "DROVER-API-006", "Content-Length must be there, and be the size that is announced.", {
      faults: [{ path: "header.content-length", message: `${request.size} expected` }],
    });
  }
  const { upload } = await port.upload(request, body.bytes, signal);
  if (upload === "stored") return { upload };
  // Read to its end, so that the sender is there for the answer.
  for await (const _ of body.bytes) continue;
  if (upload === "mismatch") {
    throw new Refusal(400, "DROVER-API-006", "The body is not what was announced; nothing was kept.", {
      faults: [{ path: "body", message: "mismatch" }],
    });
  }
  throw new Refusal(409, "DROVER-API-030", "This attempt is not, or no longer, this runner's.", {
    faults: [{ path: "query.attempt", message: "fenced" }],
  });
}
