import { randomFillSync } from "node:crypto";
import { expect, it } from "vitest";
import { createIds } from "./ids.ts";

it("creates version 7 UUIDs that contain their time and sort in creation order", () => {
  let now = 1_700_000_000_000;
  const newId = createIds(
    () => now,
    (bytes) => void randomFillSync(bytes),
  );
  const ids = Array.from({ length: 20_000 }, (_, index) => {
    if (index % 5000 === 0) now++;
    return newId();
  });
  for (const id of ids) expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  expect(Number.parseInt(ids[0]!.replaceAll("-", "").slice(0, 12), 16)).toBe(1_700_000_000_001);
  expect(new Set(ids).size).toBe(ids.length);
  expect(ids.toSorted()).toEqual(ids);
});

it("keeps ids in order when the clock is set back", () => {
  let now = 1_700_000_000_000;
  const newId = createIds(
    () => now,
    (bytes) => void randomFillSync(bytes),
  );
  const firstId = newId();
  now -= 60_000;
  expect(newId() > firstId).toBe(true);
});
