/**
 * A program that takes over a coordinator's port once it is free: `node stranger.cjs PORT KIND LOG REAL`. It writes every
 * received byte to LOG. REAL is the port of a live coordinator, for the kind that relays.
 */
export const strangerScript = `
const { appendFileSync } = require("node:fs");
const { connect, createServer } = require("node:net");
const [port, kind, log, real] = process.argv.slice(2);
const json = (value) => {
  const body = JSON.stringify(value);
  return "HTTP/1.1 200 OK\\r\\ncontent-type: application/json\\r\\ncontent-length: " + body.length + "\\r\\n\\r\\n" + body;
};
const registered = { runner_id: "stranger", epoch: 1, lease_ms: 10000, poll_silence_ms: 60000, max_file_bytes: 1000 };
const claims = [{ run_id: "stolen", attempt: 1, attempt_token: "drva_x", invocation: { agent: { command: "touch stolen" } } }];
const everything = { proof: "0".repeat(64), ...registered, claims, orders: [], items: [], status: "ok", protocol: 1 };
let last = "f".repeat(64);
const ask = (body, onAnswer) => {
  const far = connect(Number(real), "127.0.0.1");
  far.on("error", () => undefined).on("data", onAnswer);
  far.write("POST /proof HTTP/1.1\\r\\nHost: 127.0.0.1:" + real + "\\r\\nContent-Type: application/json\\r\\nContent-Length: " + body.length + "\\r\\n\\r\\n" + body);
};
const kinds = {
  claims: (socket) => socket.write(json(everything)),
  wrong: (socket) => socket.write(json({ proof: "0".repeat(64) })),
  garbage: (socket) => socket.write(Buffer.from(Array.from({ length: 500 }, () => Math.random() * 256))),
  redirect: (socket) => socket.write("HTTP/1.1 307 Elsewhere\\r\\nlocation: http://127.0.0.1:" + real + "/proof\\r\\ncontent-length: 0\\r\\n\\r\\n"),
  slow: (socket) => {
    const timer = setInterval(() => socket.write("HTTP/1.1 200 OK\\r\\nx: y\\r\\n"[index++] ?? "z"), 50);
    let index = 0;
    socket.on("close", () => clearInterval(timer));
  },
  relay: (socket, body) => ask(body, (chunk) => socket.write(chunk)),
  // Replays the live coordinator's proofs, for its own address and for an earlier nonce.
  replay: (socket, body) => {
    const proofRequest = JSON.parse(body);
    ask(JSON.stringify({ ...proofRequest, origin: "http://127.0.0.1:" + real }), (chunk) => {
      socket.write(json({ proof: last }));
      last = /"proof":"([0-9a-f]+)"/.exec(chunk.toString())?.[1] ?? last;
    });
  },
  echo: (socket, body) => socket.write(json({ proof: JSON.parse(body).nonce })),
  hangUp: (socket) => socket.destroy(),
  silent: () => undefined,
};
const server = createServer((socket) => {
  let heard = "";
  socket.on("error", () => undefined);
  socket.on("data", (chunk) => {
    appendFileSync(log, chunk);
    heard += chunk.toString("latin1");
    const body = /\\r\\n\\r\\n(\\{.*\\})$/s.exec(heard)?.[1];
    if (body === undefined) return;
    heard = "";
    kinds[kind](socket, body);
  });
});
// The killed coordinator may still hold the port.
const listen = () => server.listen(Number(port), "127.0.0.1", () => process.stdout.write("listening\\n"));
server.on("error", () => setTimeout(listen, 50));
listen();
`;

export const strangerKinds = [
  "claims",
  "wrong",
  "garbage",
  "redirect",
  "slow",
  "relay",
  "replay",
  "echo",
  "hangUp",
  "silent",
] as const;
