import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import type { Command } from "../model/process.ts";
import { checkCommand, checkVariables } from "./check-command.ts";

const directory = mkdtempSync(join(tmpdir(), "drover-check-"));
afterAll(() => rmSync(directory, { recursive: true, force: true }));
writeFileSync(join(directory, "file"), "");

const expectRejected = (command: Partial<Command>, code: string, field: string): void =>
  expect(() => checkCommand({ executable: "x", ...command })).toThrow(
    expect.objectContaining({ name: "RequestError", code, field, next: expect.any(String) }),
  );

test("accepts a valid command", () => {
  checkCommand({
    executable: "x",
    arguments: ["", "a"],
    environment: { A: "" },
    workingDirectory: directory,
    timeoutMs: 0.5,
    limits: { cpuSeconds: 1, processes: 2 },
  });
});

test.each(["", " ", "\t\n"])("rejects an empty command: %j", (executable) =>
  expectRejected({ executable }, "DROVER-USE-002", "executable"),
);

test.each([-1, 0, Number.NaN, Number.POSITIVE_INFINITY])("rejects a timeout of %d", (timeoutMs) =>
  expectRejected({ timeoutMs }, "DROVER-USE-005", "timeoutMs"),
);

test("rejects a NUL byte anywhere, and reports the field", () => {
  expectRejected({ executable: "a\0b" }, "DROVER-USE-006", "executable");
  expectRejected({ arguments: ["ok", "a\0"] }, "DROVER-USE-006", "arguments[1]");
  expectRejected({ environment: { A: "\0" } }, "DROVER-USE-006", "environment.A");
  expectRejected({ workingDirectory: "/\0" }, "DROVER-USE-006", "workingDirectory");
});

test.each(["", "A=B", "A\0"])("rejects a variable named %j", (name) =>
  expectRejected({ environment: { [name]: "x" } }, "DROVER-USE-009", `environment.${name}`),
);

test("checks ids like variables", () => {
  expect(() => checkVariables({ "A=": "x" }, "ids")).toThrow(
    expect.objectContaining({ code: "DROVER-USE-009", field: "ids.A=" }),
  );
});

test("rejects a variable that is not a string", () => {
  // A JavaScript caller can do this.
  expectRejected({ environment: { A: 1 } as unknown as Record<string, string> }, "DROVER-USE-009", "environment.A");
});

test.each([0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY])("rejects a limit of %d", (value) =>
  expectRejected({ limits: { memoryBytes: value } }, "DROVER-USE-010", "limits.memoryBytes"),
);

test("rejects an unknown limit", () => {
  // A JavaScript caller can do this.
  expectRejected({ limits: { memory: 1 } as Command["limits"] & object }, "DROVER-USE-010", "limits.memory");
});

test("rejects a working directory that is missing, a file, or empty", () => {
  expectRejected({ workingDirectory: join(directory, "none") }, "DROVER-USE-003", "workingDirectory");
  expectRejected({ workingDirectory: "" }, "DROVER-USE-003", "workingDirectory");
  expectRejected({ workingDirectory: join(directory, "file") }, "DROVER-USE-004", "workingDirectory");
});

test("rejects a working directory without permission to enter it, except for root", () => {
  const closed = join(directory, "closed");
  mkdirSync(closed);
  chmodSync(closed, 0o600);
  if (process.getuid?.() === 0) checkCommand({ executable: "x", workingDirectory: closed });
  else expectRejected({ workingDirectory: closed }, "DROVER-USE-011", "workingDirectory");
});
