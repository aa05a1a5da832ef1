import type { WalkStatements } from "../audit/walk.ts";

/**
 * A SQLite column accepts values of any type, whatever it was declared as, so each value's type is checked. `indexed`: an
 * index whose entries were removed would hide rows from exports and lists, which read through it.
 */
export const walkStatements: WalkStatements = {
  anchors: `
    select batch_no, last_no, cast(pruned_before as blob) as pruned_before, cast(at as blob) as at, mac, seal,
      typeof(pruned_before) = 'text' and typeof(at) = 'text' and typeof(mac) = 'blob' as typed
    from audit_anchors where batch_no >= ? order by batch_no limit ?`,
  batches: `
    select batch_no, first_no, count, cast(at as blob) as at, mac, typeof(at) = 'text' and typeof(mac) = 'blob' as typed
    from audit_batches where batch_no >= ? order by batch_no limit ?`,
  rows: `
    select no, batch_no, cast(kind as blob) as kind, cast(execution_id as blob) as execution_id,
      cast(run_id as blob) as run_id, attempt, cast(at as blob) as at, cast(body as blob) as body, mac,
      (execution_id is null or exists (select 1 from audit_rows entry indexed by audit_rows_by_execution
        where entry.execution_id = audit_rows.execution_id and entry.no = audit_rows.no))
      and (kind <> 'start' or exists (select 1 from audit_rows entry indexed by audit_rows_by_run
        where entry.run_id is audit_rows.run_id and entry.kind = 'start' and entry.no = audit_rows.no)) as indexed,
      typeof(kind) = 'text' and typeof(execution_id) in ('text', 'null') and typeof(run_id) in ('text', 'null')
      and typeof(at) = 'text' and typeof(body) = 'text' and typeof(mac) = 'blob' as typed
    from audit_rows where no >= ? order by no limit ?`,
  indexEntries: `
    select count(*) as entries from audit_rows indexed by audit_rows_by_execution where execution_id is not null`,
};
