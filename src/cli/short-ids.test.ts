import { expect, it } from "vitest";
import { createIdShortener } from "./short-ids.ts";

const ids = ["01a1ef80-a470-744f-9b1e-2fafc1d6b999", "01a1ef80-a1a6-7731-814b-b79d146054fd"];

it("shortens ids to their last 8 characters, because ids created in the same minute start with the same characters", () => {
  expect(ids.map(createIdShortener(ids))).toEqual(["c1d6b999", "146054fd"]);
});

it("keeps enough characters to tell the ids of a list apart, and never starts a short id with a dash", () => {
  const similarIds = ["01a1ef80-a470-744f-9b1e-2fafc1d6b999", "01a1ef80-a470-744f-9b1e-3fafc1d6b999", ids[0]!];
  expect(similarIds.map(createIdShortener(similarIds))).toEqual(["2fafc1d6b999", "3fafc1d6b999", "2fafc1d6b999"]);
  const moreSimilarIds = ["01a1ef80-a470-744f-9b1e-2fafc1d6b999", "01a1ef80-a470-744f-9b1f-2fafc1d6b999"];
  expect(moreSimilarIds.map(createIdShortener(moreSimilarIds))).toEqual(["e-2fafc1d6b999", "f-2fafc1d6b999"]);
});

it("shortens the ids of browser tokens and of schedules in an agent's file", () => {
  const otherIds = [`${ids[0]}.${ids[1]}`, "agent-5d41402abc4b2a76b9719d911017c592"];
  expect(otherIds.map(createIdShortener(otherIds))).toEqual(["146054fd", "1017c592"]);
});

it("keeps names complete", () => {
  expect(createIdShortener(["build-machine-1-echo"])("build-machine-1-echo")).toBe("build-machine-1-echo");
});
