import { expect, it } from "vitest";
import type { Command, StartOptions } from "../model/process.ts";
import { withProtection } from "./protected-paths.ts";

it("adds the directories to protect to those that the caller protects", () => {
  const given: StartOptions[] = [];
  const start = withProtection(
    (_command, options) => {
      given.push(options);
      throw new Error("not started");
    },
    { hide: ["/record"], show: ["/record/own"], readOnly: ["/state"] },
  );
  const command: Command = { executable: "true", arguments: [] };
  const options: StartOptions = { hide: ["/secrets"], show: ["/secrets/public"], readOnly: ["/library"], graceMs: 7 };
  const { signal } = new AbortController();
  for (const startOptions of [options, {}]) expect(() => start(command, startOptions, signal)).toThrow("not started");
  expect(given).toEqual([
    {
      hide: ["/secrets", "/record"],
      show: ["/secrets/public", "/record/own"],
      readOnly: ["/library", "/state"],
      graceMs: 7,
    },
    { hide: ["/record"], show: ["/record/own"], readOnly: ["/state"] },
  ]);
});
