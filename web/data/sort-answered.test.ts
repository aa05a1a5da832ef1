import { expect, test } from "vitest";
import { sortAnswered } from "./sort-answered.ts";

test("sorts questions by the time of their answer, newest last", () => {
  const asked = (minute: number, answered_at: string | null) => ({
    asked_at: `2026-01-01T00:0${minute}:00Z`,
    answered_at,
  });
  const late = asked(1, "2026-01-01T00:09:00Z");
  const early = asked(2, "2026-01-01T00:03:00Z");
  expect(sortAnswered([late, early])).toEqual([early, late]);
});
