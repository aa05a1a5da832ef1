import { request } from "node:http";

export interface RawAnswer {
  status: number;
  headers: Readonly<Record<string, string | string[] | undefined>>;
  text: string;
}

export interface RawCall {
  method?: string;
  path: string;
  headers?: Readonly<Record<string, string>>;
  body?: string | Buffer;
  /** Resolves after the headers of an endless response and disconnects. */
  headOnly?: boolean;
}

/** Sends a raw request, with any Host and Origin, unlike fetch. */
export function rawCall(url: string, call: RawCall): Promise<RawAnswer> {
  const { hostname, port } = new URL(url);
  // Node omits it for DELETE, and the server would take the body for the next request.
  const length = call.body === undefined ? {} : { "content-length": Buffer.byteLength(call.body) };
  return new Promise((resolve, reject) => {
    const outgoing = request(
      {
        hostname,
        port,
        method: call.method ?? "GET",
        path: call.path,
        headers: { ...length, ...call.headers },
        agent: false,
      },
      (response) => {
        const head = { status: response.statusCode ?? 0, headers: response.headers };
        let text = "";
        response.setEncoding("utf8");
        response.on("data", (chunk: string) => (text += chunk));
        response.on("end", () => resolve({ ...head, text }));
        response.on("error", reject);
        if (call.headOnly && /event-stream/.test(String(response.headers["content-type"]))) {
          resolve({ ...head, text });
          outgoing.destroy();
        }
      },
    );
    outgoing.on("error", reject);
    outgoing.end(call.body);
  });
}
