import { expect, test } from "vitest";
import { describeEnvironment } from "./describe-environment.ts";

test("describes the variables of a command by what the record knows", () => {
  expect(describeEnvironment({ mode: "inherit", given: [], withheld: [] })).toBe("inherited from Drover");
  expect(describeEnvironment({ mode: "inherit", given: ["LC_ALL"], withheld: ["API_KEY"] })).toBe(
    "inherited from Drover; set: LC_ALL; withheld: API_KEY",
  );
  expect(describeEnvironment({ mode: "replace", given: ["A", "B"], withheld: ["C"] })).toBe("only A, B");
  expect(describeEnvironment({ mode: "replace", given: [], withheld: [] })).toBe("empty");
});
