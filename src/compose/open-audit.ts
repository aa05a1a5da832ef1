import { singleFlight } from "./single-flight.ts";
import { auditHeadFile } from "../model/state-layout.ts";
import { chainState } from "../record/audit/chain-state.ts";
import { headChecks, type KeptHeads } from "../record/audit/expected-head.ts";
import { formatHead, readHead } from "../record/audit/head.ts";
import { missingKey, readKey } from "../record/audit/key.ts";
import { type Verified, verifyChain, verifyingMac } from "../record/audit/verify.ts";
import type { RecordStore } from "../record/record-store.ts";
import type { SystemDeps } from "../serve/deps.ts";

/** `sealed`: the secret of a fleet, or the directory that has the key and the head. */
export function openAudit(
  { engine }: Pick<RecordStore, "engine">,
  sealed: Uint8Array | Pick<KeptHeads, "directory" | "headCopy">,
): SystemDeps["audit"] {
  const directory = "directory" in sealed ? sealed.directory : null;
  return {
    async state() {
      // Before the chain, which may have grown by then; the other way round it would look cut off.
      const expected = directory === null ? null : readHead(auditHeadFile(directory));
      return {
        ...(await engine.read(chainState)),
        head_expected: expected === null ? null : formatHead(expected),
        key_present: directory === null || readKey(directory) !== null,
      };
    },
    verify: singleFlight(async (signal) => shown(await verify(signal))),
  };

  async function verify(signal: AbortSignal): Promise<Verified> {
    const checks = "directory" in sealed ? headChecks(sealed) : [];
    const key = "directory" in sealed ? readKey(sealed.directory) : sealed;
    if (key === null) throw missingKey(directory ?? "");
    const { walkStatements } = await (engine.kind === "sqlite"
      ? import("../record/sqlite/walk-statements.ts")
      : import("../record/postgres/walk-statements.ts"));
    return verifyChain(engine, walkStatements, verifyingMac(key), checks, signal);
  }
}

function shown({ ok, rows, head, first_bad }: Verified): Awaited<ReturnType<SystemDeps["audit"]["verify"]>> {
  const faults = first_bad === undefined ? [] : [first_bad];
  return {
    whole: ok,
    rows,
    head,
    faults: faults.map(({ what, row_no = null, batch_no }) => ({ what, row_no, batch_no })),
  };
}
