import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { errorCodes, HostError, RequestError } from "./errors.ts";

it("lists exactly these codes and meanings in docs/errors.md", () => {
  const page = readFileSync(new URL("../../docs/errors.md", import.meta.url), "utf8");
  const listed = [...page.matchAll(/^\| `(DROVER-[A-Z]+-\d+)` \| ([^|]+?) \|/gm)].map(([, code, meaning]) => [
    code,
    meaning,
  ]);
  expect(Object.fromEntries(listed)).toEqual(errorCodes);
});

it("recognizes errors created by another copy of the classes", async () => {
  // Each bundle has its own copy of the classes. The query string loads a second one, and the variable keeps the
  // compiler from resolving it.
  const path: string = "./errors.ts?another";
  const otherCopy = (await import(path)) as { HostError: typeof HostError; RequestError: typeof RequestError };
  expect(otherCopy.HostError).not.toBe(HostError);
  const fault = { code: "DROVER-STA-008", message: "away" } as const;
  const [host, request] = [new otherCopy.HostError(fault), new otherCopy.RequestError(fault)];
  expect([host instanceof HostError, host instanceof RequestError]).toEqual([true, false]);
  expect([request instanceof HostError, request instanceof RequestError]).toEqual([false, true]);
  const otherError = Object.assign(new Error("away"), { name: "HostError", code: "ECONNREFUSED" });
  expect([otherError instanceof HostError, { ...fault, name: "HostError" } instanceof HostError]).toEqual([
    false,
    false,
  ]);
});
