import type { Line } from "../read-lines.ts";

/** Calls functions of the process at the other end of two pipes. Each line is a JSON object: a call or its response. */
export interface Peer {
  /** Rejects with the error that the other side threw, or if the other side is gone. */
  call<T>(method: string, ...args: unknown[]): Promise<T>;
  /** Resolves when the other side closes its pipe. */
  readonly closed: Promise<void>;
}

export type Handlers = Record<string, (...args: never[]) => unknown>;

export interface PeerOptions {
  lines: AsyncIterable<Line>;
  write: (line: string) => void;
  handlers: Handlers;
  /** Called with a line that is not part of the protocol. */
  onUnknownLine: (text: string) => void;
}

interface Message {
  id: number;
  method?: string;
  args?: unknown[];
  value?: unknown;
  error?: SerializedError;
}

interface SerializedError {
  name: string;
  message: string;
  stack?: string;
  code?: unknown;
}

export function connectPeer({ lines, write, handlers, onUnknownLine }: PeerOptions): Peer {
  const pending = new Map<number, { resolve: (value: never) => void; reject: (error: Error) => void }>();
  let lastId = 0;
  let isClosed = false;

  const send = (message: Message): void => write(`${JSON.stringify(message)}\n`);

  async function handleCall(id: number, method: string, args: unknown[]): Promise<void> {
    try {
      const handler = handlers[method];
      if (!handler) throw new Error(`unknown method ${method}`);
      send({ id, value: await handler(...(args as never[])) }); // Both sides agree on the types.
    } catch (error) {
      send({ id, error: serializeError(error) });
    }
  }

  function receive({ id, method, args, value, error }: Message): void {
    if (method !== undefined) return void handleCall(id, method, args ?? []);
    const call = pending.get(id);
    pending.delete(id);
    if (error) call?.reject(deserializeError(error));
    else call?.resolve(value as never);
  }

  async function readAll(): Promise<void> {
    for await (const { text, isComplete } of lines) {
      const message = isComplete ? parseMessage(text) : null;
      if (message === null) onUnknownLine(text);
      else receive(message);
    }
  }
  const close = (): void => {
    isClosed = true;
    for (const { reject } of pending.values()) reject(new PeerClosedError());
    pending.clear();
  };
  // A broken pipe counts as closed.
  const closed = readAll().then(close, close);

  return {
    closed,
    call(method, ...args) {
      if (isClosed) return Promise.reject(new PeerClosedError());
      const id = ++lastId;
      return new Promise((resolve, reject) => {
        pending.set(id, { resolve, reject });
        send({ id, method, args });
      });
    },
  };
}

/** The other side closed its pipe before it responded. */
export class PeerClosedError extends Error {
  override readonly name = "PeerClosedError";
  constructor() {
    super("the other process closed its pipe");
  }
}

function parseMessage(text: string): Message | null {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && Number.isInteger(Reflect.get(value, "id"))
      ? (value as Message) // A module's own output does not have this shape.
      : null;
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}

function serializeError(error: unknown): SerializedError {
  if (!(error instanceof Error)) return { name: "Error", message: String(error) };
  const { name, message, stack } = error;
  return { name, message, ...(stack === undefined ? {} : { stack }), ...("code" in error ? { code: error.code } : {}) };
}

function deserializeError({ message, ...rest }: SerializedError): Error {
  return Object.assign(new Error(message), rest);
}
