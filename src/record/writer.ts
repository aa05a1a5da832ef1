import { appendToChain, chainEnd } from "./audit/chain.ts";
import { openHead, type ChainHead, type HeadFile } from "./audit/head.ts";
import { hmacWith } from "./audit/hmac.ts";
import { missingKey, readKey } from "./audit/key.ts";
import { groupCommit, type GroupCommit } from "./group-commit.ts";
import type { Connection } from "./sqlite/connection.ts";

export interface Writer extends GroupCommit {
  close(): Promise<void>;
}

interface WriterOptions {
  directory: string;
  connection: Connection;
  waitMs: number;
  now: () => Date;
}

/** Everything that writes goes through here, so that nothing is stored without its place in the chain. */
export async function openWriter({ directory, connection, waitMs, now }: WriterOptions): Promise<Writer> {
  const mac = hmacWith(readKey(directory) ?? (await firstKey(directory, connection)));
  const head = openHead(directory);
  const commits = groupCommit({
    connection,
    waitMs,
    audit: (entries) => appendToChain(connection, mac, entries, now().toISOString()),
    committed: (reached) => advance(head, reached),
  });
  return {
    ...commits,
    async close() {
      await commits.idle();
      head.close();
    },
  };
}

async function firstKey(directory: string, connection: Connection): Promise<Uint8Array> {
  if (chainEnd(connection).last_no > 0) throw missingKey(directory);
  const { createKey } = await import("./audit/create-key.ts");
  return createKey(directory);
}

/** The rows are durable already: a head that stays behind is told, and no reason to call them lost. */
function advance(head: HeadFile, reached: ChainHead): void {
  try {
    head.advance(reached);
  } catch (fault) {
    process.emitWarning(`audit.head could not be written: ${String(fault)}`, { code: "DROVER-STA-001" });
  }
}
