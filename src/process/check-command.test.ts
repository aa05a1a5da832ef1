import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import type { Command } from "../model/process.ts";
import { checkCommand, checkVariables } from "./check-command.ts";

const directory = mkdtempSync(join(tmpdir(), "drover-check-"));
afterAll(() => rmSync(directory, { recursive: true, force: true }));
writeFileSync(join(directory, "file"), "");

const refused = (command: Partial<Command>, code: string, field: string): void =>
  expect(() => checkCommand({ executable: "x", ...command })).toThrow(
    expect.objectContaining({ name: "RequestError", code, field, next: expect.any(String) }),
  );

test("a sound command passes", () => {
  checkCommand({
    executable: "x",
    arguments: ["", "a"],
    environment: { A: "" },
    workingDirectory: directory,
    timeoutMs: 0.5,
    limits: { cpuSeconds: 1, processes: 2 },
  });
});

test.each(["", " ", "\t\n"])("an empty command is refused: %j", (executable) =>
  refused({ executable }, "DROVER-USE-002", "executable"),
);

test.each([-1, 0, Number.NaN, Number.POSITIVE_INFINITY])("a timeout of %d is refused", (timeoutMs) =>
  refused({ timeoutMs }, "DROVER-USE-005", "timeoutMs"),
);

test("NUL is refused wherever it is, and the place is named", () => {
  refused({ executable: "a\0b" }, "DROVER-USE-006", "executable");
  refused({ arguments: ["ok", "a\0"] }, "DROVER-USE-006", "arguments[1]");
  refused({ environment: { A: "\0" } }, "DROVER-USE-006", "environment.A");
  refused({ workingDirectory: "/\0" }, "DROVER-USE-006", "workingDirectory");
});

test.each(["", "A=B", "A\0"])("a variable called %j is refused", (name) =>
  refused({ environment: { [name]: "x" } }, "DROVER-USE-009", `environment.${name}`),
);

test("ids are variables too", () => {
  expect(() => checkVariables({ "A=": "x" }, "ids")).toThrow(
    expect.objectContaining({ code: "DROVER-USE-009", field: "ids.A=" }),
  );
});

test("a variable that is no string is refused", () => {
  // as from JavaScript
  refused({ environment: { A: 1 } as unknown as Record<string, string> }, "DROVER-USE-009", "environment.A");
});

test.each([0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY])("a limit of %d is refused", (value) =>
  refused({ limits: { memoryBytes: value } }, "DROVER-USE-010", "limits.memoryBytes"),
);

test("an unknown limit is refused", () => {
  // as from JavaScript
  refused({ limits: { memory: 1 } as Command["limits"] & object }, "DROVER-USE-010", "limits.memory");
});

test("a working directory that is missing, a file, or empty is refused", () => {
  refused({ workingDirectory: join(directory, "none") }, "DROVER-USE-003", "workingDirectory");
  refused({ workingDirectory: "" }, "DROVER-USE-003", "workingDirectory");
  refused({ workingDirectory: join(directory, "file") }, "DROVER-USE-004", "workingDirectory");
});

test("a working directory that may not be entered is refused; root may enter any", () => {
  const closed = join(directory, "closed");
  mkdirSync(closed);
  chmodSync(closed, 0o600);
  if (process.getuid?.() === 0) checkCommand({ executable: "x", workingDirectory: closed });
  else refused({ workingDirectory: closed }, "DROVER-USE-011", "workingDirectory");
});
