import type { Op } from "../model/store.ts";
import { chainEnd } from "./audit/chain.ts";
import type { ChainHead } from "./audit/head.ts";
import { hmacWith } from "./audit/hmac.ts";
import { missingKey, readKey } from "./audit/key.ts";
import { openTrail, type Trail } from "./audit/trail.ts";
import { groupCommit, type GroupCommit } from "./group-commit.ts";
import { applyOp } from "./ops/apply-op.ts";
import type { ApplyOther } from "./ops/apply-other.ts";
import type { Connection } from "./sqlite/connection.ts";
import type { Changed } from "./transaction.ts";

export interface Writer extends GroupCommit {
  close(): Promise<void>;
}

interface WriterOptions {
  directory: string;
  connection: Connection;
  waitMs: number;
  now: () => Date;
  changed(changed: Changed): void;
}

/** Everything that writes goes through here, so that nothing is stored without its place in the chain. */
export async function openWriter({ directory, connection, waitMs, now, changed }: WriterOptions): Promise<Writer> {
  const mac = hmacWith(readKey(directory) ?? (await firstKey(directory, connection)));
  const trail = openTrail(directory, connection, mac);
  let other: ApplyOther | null = null;
  const commits = groupCommit({
    connection,
    waitMs,
    now,
    applyOp: (tx, op) => applyOp(tx, op, other),
    changed,
    audit: (entries) => trail.append(entries, now().toISOString()),
    committed: (reached) => advance(trail, reached),
  });
  return {
    idle: commits.idle,
    async apply(ops) {
      // A cold `exec` never needs these, and does not load them.
      if (other === null && ops.some((op) => !isRunOp(op))) other = (await import("./ops/apply-other.ts")).applyOther;
      return commits.apply(ops);
    },
    async close() {
      await commits.idle();
      trail.close();
    },
  };
}

function isRunOp({ op }: Op): boolean {
  return op === "create_run" || op === "append_events" || op === "finish_run";
}

async function firstKey(directory: string, connection: Connection): Promise<Uint8Array> {
  if (chainEnd(connection).last_no > 0) throw missingKey(directory);
  const { createKey } = await import("./audit/create-key.ts");
  return createKey(directory);
}

/** The rows are durable already: a head that stays behind is told, and no reason to call them lost. */
function advance(trail: Trail, reached: ChainHead): void {
  try {
    trail.committed(reached);
  } catch (fault) {
    process.emitWarning(`audit.head could not be written: ${String(fault)}`, { code: "DROVER-STA-001" });
  }
}
