import { expect, test } from "vitest";
import { findNestedDirectories } from "./nested-directories.ts";

test("shows the directories of a command's log and socket in runs/nested", () => {
  const variables = { DROVER_NESTED_LOG: "/s/runs/nested/a.1/log", DROVER_API_URL: "unix:/s/runs/nested/b/s" };
  expect(findNestedDirectories(variables)).toEqual(["/s/runs/nested/a.1", "/s/runs/nested/b"]);
});

test.each([
  "unix:/s/record/sock",
  "unix:/s/record/in/sock",
  "unix:/s/runs/nested/s",
  "unix:/s/runs/nested/../s",
  "unix:/s/runs/nested/../../record/s",
  "unix:/run/user/1/drover/s.sock",
  "unix:s",
  "http://127.0.0.1:8765",
])("shows no directory because of the address %s", (url) => {
  expect(findNestedDirectories({ DROVER_API_URL: url })).toEqual([]);
});
