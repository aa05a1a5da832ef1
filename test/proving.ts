import type { IncomingMessage, ServerResponse } from "node:http";
import { hashToken, formatOrigin, computeProof } from "../src/wire/proof.ts";
import type { ProofRequest } from "../src/wire/proof-request.ts";

type Listener = (request: IncomingMessage, response: ServerResponse) => void;

/** Starts a fake coordinator that proves knowledge of one token and passes every other request to `listener`. */
export function createProvingListener(token: string, listener: Listener): Listener {
  return (request, response) => {
    if (request.url !== "/proof") return listener(request, response);
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      // Sent by our own client.
      const { nonce } = JSON.parse(Buffer.concat(chunks).toString()) as ProofRequest;
      const origin = formatOrigin(request.socket.localAddress, request.socket.localPort) ?? "";
      const body = JSON.stringify({ proof: computeProof(hashToken(token), nonce, origin).toString("hex") });
      response.writeHead(200, { "content-length": body.length }).end(body);
    });
  };
}
