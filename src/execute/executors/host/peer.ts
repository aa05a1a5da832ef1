import type { Line } from "../lines.ts";

/** Calls the functions of the process at the other end of two pipes: one JSON object a line, each call with its answer. */
export interface Peer {
  /** Rejects with the error that the other side threw, and where the other side has gone. */
  call<T>(method: string, ...args: unknown[]): Promise<T>;
  /** Resolves when the other side has closed its pipe. */
  readonly closed: Promise<void>;
}

export type Handlers = Record<string, (...args: never[]) => unknown>;

export interface PeerOptions {
  lines: AsyncIterable<Line>;
  write: (line: string) => void;
  handlers: Handlers;
  /** A line that is none of the protocol's. */
  onStray: (text: string) => void;
}

interface Message {
  id: number;
  method?: string;
  args?: unknown[];
  value?: unknown;
  error?: SentError;
}

interface SentError {
  name: string;
  message: string;
  stack?: string;
  code?: unknown;
}

export function connectPeer({ lines, write, handlers, onStray }: PeerOptions): Peer {
  const open = new Map<number, { resolve: (value: never) => void; reject: (error: Error) => void }>();
  let last = 0;
  let gone = false;

  const send = (message: Message): void => write(`${JSON.stringify(message)}\n`);

  async function answer(id: number, method: string, args: unknown[]): Promise<void> {
    try {
      const handler = handlers[method];
      if (!handler) throw new Error(`there is no ${method}`);
      send({ id, value: await handler(...(args as never[])) }); // each side knows what the other sends
    } catch (error) {
      send({ id, error: toSent(error) });
    }
  }

  function take({ id, method, args, value, error }: Message): void {
    if (method !== undefined) return void answer(id, method, args ?? []);
    const call = open.get(id);
    open.delete(id);
    if (error) call?.reject(fromSent(error));
    else call?.resolve(value as never);
  }

  async function readAll(): Promise<void> {
    for await (const { text, whole } of lines) {
      const message = whole ? parseMessage(text) : null;
      if (message === null) onStray(text);
      else take(message);
    }
  }
  const end = (): void => {
    gone = true;
    for (const { reject } of open.values()) reject(new Gone());
    open.clear();
  };
  // a pipe that breaks has ended as well
  const closed = readAll().then(end, end);

  return {
    closed,
    call(method, ...args) {
      if (gone) return Promise.reject(new Gone());
      const id = ++last;
      return new Promise((resolve, reject) => {
        open.set(id, { resolve, reject });
        send({ id, method, args });
      });
    },
  };
}

/** The other side ended before it answered. */
export class Gone extends Error {
  override readonly name = "Gone";
  constructor() {
    super("the process at the other end is gone");
  }
}

function parseMessage(text: string): Message | null {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && Number.isInteger(Reflect.get(value, "id"))
      ? (value as Message) // what a module prints instead is no such object
      : null;
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}

function toSent(error: unknown): SentError {
  if (!(error instanceof Error)) return { name: "Error", message: String(error) };
  const { name, message, stack } = error;
  return { name, message, ...(stack === undefined ? {} : { stack }), ...("code" in error ? { code: error.code } : {}) };
}

function fromSent({ message, ...rest }: SentError): Error {
  return Object.assign(new Error(message), rest);
}
