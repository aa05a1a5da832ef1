import { setImmediate } from "node:timers/promises";
import type { Reads } from "../../model/store.ts";
import type { Token } from "../../model/token.ts";
import type { Engine } from "../engine.ts";
import { toToken } from "../ops/tokens.ts";
import { all, type Work } from "../query.ts";
import { toColumn } from "../text.ts";
import { toTextArray } from "./text-array.ts";

const selectTokens = `select * from tokens where hash = any (?::text[])`;

/**
 * Batches token lookups, because every request needs one. Lookups from one turn of the event loop share a statement.
 * The statement is sent after the last of them, so every lookup sees the revocations before it.
 */
export function batchTokenReads(engine: Engine): Reads["token"] {
  let batch: { hashes: Set<string>; tokens: Promise<ReadonlyMap<string, Token>> } | null = null;
  return async (hash) => {
    const stored = toColumn(hash);
    batch ??= startBatch();
    batch.hashes.add(stored);
    return (await batch.tokens).get(stored) ?? null;
  };

  function startBatch(): NonNullable<typeof batch> {
    const hashes = new Set<string>();
    return { hashes, tokens: readSoon(hashes) };
  }

  async function readSoon(hashes: ReadonlySet<string>): Promise<ReadonlyMap<string, Token>> {
    await setImmediate();
    batch = null;
    return engine.read(() => readTokens(hashes));
  }
}

function* readTokens(hashes: ReadonlySet<string>): Work<ReadonlyMap<string, Token>> {
  const rows = yield all(selectTokens, toTextArray([...hashes]));
  return new Map(rows.map((row) => [String(row["hash"]), toToken(row)]));
}
