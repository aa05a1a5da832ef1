import type { RouteName } from "../../wire/contracts.ts";
import type { Problem } from "../../wire/problem.ts";

/** The thread that reads large bodies. */
export const bodyThread = { entry: "serve/bodies/body-thread.ts", name: "drover-large-bodies", maxMemoryMb: 512 };

/** Sent to the thread. `bytes` is transferred; a body arrives as any number of chunks and one `end` or `drop`. */
export type BodyMessage =
  | { type: "chunk"; id: number; bytes: Uint8Array }
  | { type: "end"; id: number; route: RouteName }
  | { type: "drop"; id: number };

/** Sent by the thread, once for each `end`. `error` describes a defect. */
export type BodyReply = { id: number } & ({ value: unknown } | { problem: Problem } | { error: string });
