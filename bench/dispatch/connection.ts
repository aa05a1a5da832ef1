import { connect, type Socket } from "node:net";

/** A keep-alive connection with one request at a time and minimal client work, since the server is measured. */
export interface HttpConnection {
  request(method: "GET" | "POST", path: string, body?: string): Promise<{ status: number; body: Buffer }>;
  close(): void;
}

export async function openHttp(url: string, token: string): Promise<HttpConnection> {
  const { hostname, port, host } = new URL(url);
  const socket = connect(Number(port), hostname).setNoDelay(true);
  await new Promise<void>((resolve, reject) => {
    socket.once("connect", resolve);
    socket.once("error", reject);
  });
  const answers = readAnswers(socket);
  const head = ` HTTP/1.1\r\nhost: ${host}\r\nauthorization: Bearer ${token}\r\n`;
  return {
    request(method, path, body = "") {
      if (socket.destroyed) return Promise.reject(new Error("the connection was closed"));
      const extraHeaders =
        method === "POST" ? `content-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n` : "";
      socket.write(`${method} ${path}${head}${extraHeaders}\r\n${body}`);
      return answers();
    },
    close: () => void socket.destroy(),
  };
}

function readAnswers(socket: Socket): () => Promise<{ status: number; body: Buffer }> {
  let bytes: Buffer = Buffer.alloc(0);
  let resolve: ((answer: { status: number; body: Buffer }) => void) | null = null;
  let reject: ((error: Error) => void) | null = null;
  let need = 0;
  socket.on("data", (chunk: Buffer) => {
    bytes = bytes.length === 0 ? chunk : Buffer.concat([bytes, chunk]);
    if (bytes.length < need) return;
    const headEnd = bytes.indexOf("\r\n\r\n");
    if (headEnd < 0) return;
    const head = bytes.toString("latin1", 0, headEnd);
    const length = Number(/content-length: (\d+)/i.exec(head)?.[1] ?? 0);
    need = headEnd + 4 + length;
    if (bytes.length < need) return;
    const answer = { status: Number(head.slice(9, 12)), body: bytes.subarray(headEnd + 4, need) };
    bytes = Buffer.alloc(0);
    need = 0;
    resolve?.(answer);
  });
  socket.on("close", () => reject?.(new Error("the connection was closed")));
  socket.on("error", (error) => reject?.(error));
  return () =>
    new Promise((fulfil, refuse) => {
      resolve = fulfil;
      reject = refuse;
    });
}
