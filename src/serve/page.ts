import type { Page } from "../model/store.ts";
import { fromCursor } from "../show/cursor.ts";
import { Refusal } from "./refusal.ts";

export function parsePage(list: string, limit: number, cursor: string | undefined): Page {
  if (cursor === undefined) return { limit };
  const before = fromCursor(list, cursor);
  if (before === null) {
    throw new Refusal(400, "DROVER-API-015", "The cursor does not belong to this list.", {
      faults: [{ path: "query.cursor", message: "not a next_cursor of this list" }],
      next: "Pass next_cursor of the previous page unchanged, or omit it for the first page.",
    });
  }
  return { limit, before };
}
