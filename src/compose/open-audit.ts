import { createSingleFlight } from "./single-flight.ts";
import { auditHeadFile } from "../model/state-layout.ts";
import { readChainState } from "../record/audit/chain-state.ts";
import { createHeadChecks, type StoredHeads } from "../record/audit/head-checks.ts";
import { formatHead, readHead } from "../record/audit/head.ts";
import { createMissingKeyError, readKey } from "../record/audit/key.ts";
import { type VerifyResult, verifyChain, createVerifyingMac } from "../record/audit/verify.ts";
import type { RecordStore } from "../record/record-store.ts";
import type { SystemDeps } from "../serve/deps.ts";

/** `keySource` is the secret of a fleet, or the directory with the key and the head. */
export function openAudit(
  { engine }: Pick<RecordStore, "engine">,
  keySource: Uint8Array | Pick<StoredHeads, "directory" | "headCopy">,
): SystemDeps["audit"] {
  const directory = "directory" in keySource ? keySource.directory : null;
  return {
    async state() {
      // Read the head before the chain. In the other order, rows added in between would make the chain look truncated.
      const expected = directory === null ? null : readHead(auditHeadFile(directory));
      return {
        ...(await engine.read(readChainState)),
        head_expected: expected === null ? null : formatHead(expected),
        key_present: directory === null || readKey(directory) !== null,
      };
    },
    verify: createSingleFlight(async (signal) => toResponse(await verify(signal))),
  };

  async function verify(signal: AbortSignal): Promise<VerifyResult> {
    const checks = "directory" in keySource ? createHeadChecks(keySource) : [];
    const key = "directory" in keySource ? readKey(keySource.directory) : keySource;
    if (key === null) throw createMissingKeyError(directory ?? "");
    const { walkStatements } = await (engine.kind === "sqlite"
      ? import("../record/sqlite/walk-statements.ts")
      : import("../record/postgres/walk-statements.ts"));
    return verifyChain(engine, walkStatements, createVerifyingMac(key), checks, signal);
  }
}

function toResponse({ ok, rows, head, first_bad }: VerifyResult): Awaited<ReturnType<SystemDeps["audit"]["verify"]>> {
  const faults = first_bad === undefined ? [] : [first_bad];
  return {
    whole: ok,
    rows,
    head,
    faults: faults.map(({ what, row_no = null, batch_no }) => ({ what, row_no, batch_no })),
  };
}
