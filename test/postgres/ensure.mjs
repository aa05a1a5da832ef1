import { ensureInstalled } from "../../scripts/lib/install.mjs";
import { findSystemPrograms } from "./programs.mjs";
import { ordinaryUser } from "./user.mjs";

/** After this `startPostgres` finds what it needs. Quick where it was there before. */
export function ensurePostgres() {
  if (findSystemPrograms(ordinaryUser()) === null)
    ensureInstalled(import.meta.dirname, "product", "a PostgreSQL server for tests (about 60 MB, once)");
}
