import { describe } from "vitest";
import { eachWithStore, type OpenedForDispatch } from "./each-with-store.ts";
import { describeClaims } from "./store-claims.ts";
import { describeLeases } from "./store-leases.ts";
import { describeSubmits } from "./store-submits.ts";
import { describeTokens } from "./store-tokens.ts";

/** What every store must do about runners, claims and leases. */
export function storeDispatchContract(engine: string, open: () => Promise<OpenedForDispatch>): void {
  describe(`${engine} keeps the dispatch contract`, () => {
    const opened = eachWithStore(open);
    describeClaims(opened);
    describeLeases(opened);
    describeSubmits(opened);
    describeTokens(opened);
  });
}
