import { join } from "node:path";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { expect, it } from "vitest";
import { translateStatement } from "./postgres/dialect.ts";
import { readRuns } from "./reads/runs.ts";
import { connect } from "./sqlite/connection.ts";

it("removes duplicate statuses from a filter, so that long lists do not fill the statement cache", () => {
  const query = readRuns({ status: ["failed", "pending", "failed", "failed"] }, { limit: 1 }).next().value;
  expect(query).toMatchObject({ values: ["failed", "pending", 1] });
});

it("PostgreSQL caches the first thousand statements and no others", () => {
  const names = Array.from(
    { length: 1500 },
    (_, no) => translateStatement(`select ${no} from runs where run_no = ?`).name,
  );
  expect(new Set(names.filter((name) => name !== undefined)).size).toBeLessThanOrEqual(1000);
  expect(names.at(-1)).toBeUndefined();
  expect(translateStatement("select 0 from runs where run_no = ?")).toEqual({
    name: names[0],
    text: "select 0 from runs where run_no = $1",
  });
});

it("SQLite caches a thousand statements and drops the oldest", () => {
  const root = mkdtempSync(join(tmpdir(), "drover-statements-"));
  const connection = connect(join(root, "db"), "write");
  try {
    const first = connection.sql("select 0 as no");
    for (let no = 1; no < 1000; no += 1) connection.sql(`select ${no} as no`);
    expect(connection.sql("select 0 as no")).toBe(first);
    expect(connection.sql("select 1000 as no").get()).toEqual({ no: 1000 });
    expect(connection.sql("select 0 as no")).not.toBe(first);
    expect(first.get()).toEqual({ no: 0 });
  } finally {
    connection.close();
    rmSync(root, { recursive: true, force: true });
  }
});
