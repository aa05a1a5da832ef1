import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { errorCodes } from "./errors.ts";

it("docs/errors.md lists every code with its meaning, and no other", () => {
  const page = readFileSync(new URL("../../docs/errors.md", import.meta.url), "utf8");
  const listed = [...page.matchAll(/^\| `(DROVER-[A-Z]+-\d+)` \| ([^|]+?) \|/gm)].map(([, code, meaning]) => [
    code,
    meaning,
  ]);
  expect(Object.fromEntries(listed)).toEqual(errorCodes);
});
