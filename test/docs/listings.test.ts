import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { runEventSchema } from "../../src/model/event.ts";
import { failureReasons, runStatuses } from "../../src/model/states.ts";
import { readPage, root } from "./page.ts";
import { readTableRows } from "./tables.ts";

const stripBackticks = (cell = ""): string => cell.replaceAll("`", "");

it("lists every event type in docs/events.md, with its fields and a ? after optional ones", () => {
  const documented = readTableRows(readPage("docs/events.md").text, ["type", "fields", "meaning"]);
  const expected = runEventSchema.options.map(({ shape }) => {
    const { type, ...fields } = shape;
    const names = Object.entries(fields).map(([name, { _zod }]) => (_zod.optin === "optional" ? `${name}?` : name));
    return `${type.value}: ${names.join(", ")}`;
  });
  expect(documented.map(([type, fields]) => `${stripBackticks(type)}: ${stripBackticks(fields)}`)).toEqual(expected);
});

it("lists every variable that Drover reads or sets in docs/environment.md", () => {
  const rows = readTableRows(readPage("docs/environment.md").text, ["variable", "meaning"]);
  const documented = new Set(rows.flatMap(([names = ""]) => stripBackticks(names).split(", ")));
  const sources = readdirSync(join(root, "src"), { recursive: true, encoding: "utf8" }).filter(
    (file) => file.endsWith(".ts") && !file.endsWith(".test.ts"),
  );
  const usedVariables = sources.flatMap(
    (file) => readFileSync(join(root, "src", file), "utf8").match(/\bDROVER_[A-Z_]+[A-Z]\b/g) ?? [],
  );
  const internal = new Set(["DROVER_VERSION"]); // a constant of the build
  const missing = [...new Set(usedVariables)].filter((name) => !documented.has(name) && !internal.has(name));
  expect(missing).toEqual([]);
});

it("lists every state and every reason in docs/states.md", () => {
  const { text } = readPage("docs/states.md");
  expect(readTableRows(text, ["state", "meaning"]).map(([state]) => stripBackticks(state))).toEqual([...runStatuses]);
  expect(readTableRows(text, ["reason", "when"]).map(([reason]) => stripBackticks(reason))).toEqual([
    ...failureReasons,
  ]);
});
