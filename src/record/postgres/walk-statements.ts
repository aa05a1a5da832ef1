import type { WalkStatements } from "../audit/walk.ts";

/** `typed` is always 1: PostgreSQL columns only hold values of their declared type. */
export const walkStatements: WalkStatements = {
  anchors: `
    select batch_no, last_no, convert_to(pruned_before, 'UTF8') as pruned_before, convert_to(at, 'UTF8') as at, mac, seal,
      1 as typed
    from audit_anchors where batch_no >= ? order by batch_no limit ?`,
  batches: `
    select batch_no, first_no, count, convert_to(at, 'UTF8') as at, mac, 1 as typed
    from audit_batches where batch_no >= ? order by batch_no limit ?`,
  rows: `
    select no, batch_no, convert_to(kind, 'UTF8') as kind, convert_to(execution_id, 'UTF8') as execution_id,
      convert_to(run_id, 'UTF8') as run_id, attempt, convert_to(at, 'UTF8') as at, convert_to(body, 'UTF8') as body, mac,
      1 as typed, 1 as indexed
    from audit_rows where no >= ? order by no limit ?`,
  indexEntries: null,
};
