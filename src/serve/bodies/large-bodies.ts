import type { Worker } from "node:worker_threads";
import type { RouteName } from "../../wire/contracts.ts";
import type { Problem } from "../../wire/problem.ts";
import { Refusal } from "../refusal.ts";
import type { BodyMessage, BodyReply } from "./body-message.ts";

/** Reads large bodies in a worker thread: parsing and checking megabytes would stall the event loop. */
export interface LargeBodies {
  open(caller: string, route: RouteName): LargeBody;
  /** Terminates the thread. Bodies in progress fail. Idempotent. */
  stop(): Promise<void>;
}

/** One body on its way to the thread. */
export interface LargeBody {
  push(bytes: Uint8Array): void;
  /** Resolves with the parsed body. Rejects with a Refusal if the route does not accept it. */
  end(): Promise<unknown>;
  /** Discards a body that will not be complete. */
  drop(): void;
}

interface PendingBody {
  resolve(value: unknown): void;
  reject(error: unknown): void;
}

/** The thread ends when no large body has arrived for this long. It holds about 20 MB. */
const defaultIdleMs = 60_000;

export function createLargeBodies(startThread: () => Promise<Worker>, idleMs = defaultIdleMs): LargeBodies {
  const pending = new Map<number, PendingBody>();
  /** Each caller's bodies are read one after the other, so that one caller delays another by at most one body. */
  const queues = new Map<string, Promise<unknown>>();
  const endedThreads = new WeakSet<Worker>();
  let thread: Promise<Worker> | null = null;
  let openBodies = 0;
  let lastId = 0;
  let idleTimer: NodeJS.Timeout | undefined;
  let isStopped = false;

  const start = (): Promise<Worker> => {
    const started = startThread();
    const discard = (error: Error): void => {
      if (thread === started) thread = null;
      for (const { reject } of pending.values()) reject(error);
      pending.clear();
    };
    started.then((worker) => {
      worker.on("message", onReply).on("error", discard);
      worker.on("exit", () => {
        endedThreads.add(worker);
        discard(threadEnded());
      });
      // The thread need not keep the process alive, because the requests that wait for it do.
      worker.unref();
    }, discard);
    return started;
  };
  const onReply = (reply: BodyReply): void => {
    const body = pending.get(reply.id);
    pending.delete(reply.id);
    if ("value" in reply) body?.resolve(reply.value);
    else body?.reject("problem" in reply ? toRefusal(reply.problem) : new Error(reply.error));
  };
  const terminate = async (): Promise<void> => {
    const ending = thread;
    thread = null;
    await (await ending?.catch(() => null))?.terminate();
  };

  return {
    open(caller, route) {
      const id = (lastId += 1);
      openBodies += 1;
      clearTimeout(idleTimer);
      // All messages of a body go to the thread that got the first one.
      const worker = isStopped
        ? Promise.reject<Worker>(new Error("the coordinator has stopped"))
        : (thread ??= start());
      const send = (message: BodyMessage, transfer: ArrayBuffer[] = []): Promise<void> =>
        worker.then((target) => {
          // A thread that has ended accepts messages but never responds.
          if (endedThreads.has(target)) throw threadEnded();
          target.postMessage(message, transfer);
        });
      const close = (): void => {
        openBodies -= 1;
        if (openBodies === 0) idleTimer = setTimeout(() => void terminate(), idleMs).unref();
      };
      const read = (): Promise<unknown> =>
        new Promise((resolve, reject) => {
          pending.set(id, { resolve, reject });
          send({ type: "end", id, route }).catch((error: unknown) => {
            pending.delete(id);
            reject(error);
          });
        });
      return {
        push(bytes) {
          const transferable = toOwnBuffer(bytes);
          // `end` reports why the thread is not available.
          send({ type: "chunk", id, bytes: transferable }, [transferable.buffer]).catch(() => undefined);
        },
        end() {
          const turn = (queues.get(caller) ?? Promise.resolve()).then(read, read);
          queues.set(caller, turn);
          return turn.finally(() => {
            close();
            if (queues.get(caller) === turn) queues.delete(caller);
          });
        },
        drop() {
          close();
          send({ type: "drop", id }).catch(() => undefined);
        },
      };
    },
    async stop() {
      isStopped = true;
      clearTimeout(idleTimer);
      await terminate();
    },
  };
}

function threadEnded(): Error {
  return new Error("the thread that reads large bodies has ended");
}

/** Only a whole buffer can be transferred. Node gives each chunk of a body a buffer of its own. */
function toOwnBuffer(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  const { buffer } = bytes;
  if (buffer instanceof ArrayBuffer && buffer.byteLength === bytes.byteLength) return new Uint8Array(buffer);
  return new Uint8Array(bytes);
}

function toRefusal({ status, code, detail, faults, next }: Problem): Refusal {
  return new Refusal(status, code, detail, { faults, ...(next === undefined ? {} : { next }) });
}
