import type { RunnerPort, UploadRequest } from "../model/runner-port.ts";
import type { SizedBytes } from "../wire/transport.ts";
import { Refusal } from "./refusal.ts";

/** Streams the body to the store. Never holds the whole file in memory. */
export async function receiveFile(
  port: RunnerPort,
  request: UploadRequest,
  body: SizedBytes | undefined,
  signal: AbortSignal,
): Promise<{ upload: "stored" }> {
  if (body?.size !== request.size) {
    throw new Refusal(400, "DROVER-API-006", "Content-Length is missing or differs from query.size.", {
      faults: [{ path: "header.content-length", message: `${request.size} expected` }],
    });
  }
  const { upload } = await port.upload(request, body.bytes, signal);
  if (upload === "stored") return { upload };
  // Read the rest, so that the sender is still connected when the response is sent.
  for await (const _ of body.bytes) continue;
  if (upload === "mismatch") {
    throw new Refusal(
      400,
      "DROVER-API-006",
      "The body does not match the announced size and sha256; nothing was stored.",
      {
        faults: [{ path: "body", message: "mismatch" }],
      },
    );
  }
  throw new Refusal(409, "DROVER-API-030", "The attempt does not belong to this runner, or no longer does.", {
    faults: [{ path: "query.attempt", message: "fenced" }],
  });
}
