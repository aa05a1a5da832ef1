import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

/** Content of `drover.yaml` that lets webhooks reach the receiver. */
export const allowReceivers = "webhooks:\n  allow: [127.0.0.1]\n";

export interface Receiver {
  url: string;
  /** The response to further requests. */
  response: { status: number; text: string };
  /** The ids of deliveries in the order they arrived. */
  readonly received: string[];
  close(): Promise<void>;
}

/** A webhook receiver on loopback. */
export async function openReceiver(): Promise<Receiver> {
  const received: string[] = [];
  const server = createServer((request, outgoing) => {
    received.push(String(request.headers["drover-delivery"]));
    request.resume();
    outgoing.writeHead(receiver.response.status, { "content-type": "text/plain" }).end(receiver.response.text);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  // A server that listens on a port has an address with a port.
  const { port } = server.address() as AddressInfo;
  const receiver: Receiver = {
    url: `http://127.0.0.1:${port}/in`,
    response: { status: 200, text: "" },
    received,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
  return receiver;
}
