import { expect, it } from "vitest";
import type * as z from "zod";
import { agentSchema } from "../../src/model/agent.ts";
import { configSchema } from "../../src/model/config-schema.ts";
import { profileSchema } from "../../src/model/profile.ts";
import { readPage } from "./page.ts";
import { type DocumentedKey, listSchemaKeys } from "./schema-keys.ts";
import { readTableRows } from "./tables.ts";

const references: [string, string, z.ZodType][] = [
  ["drover.yaml", "docs/configuration.md", configSchema],
  // Agent files derive the type from `command`.
  ["an agent", "docs/agents.md", agentSchema.partial({ type: true })],
  ["a profile", "docs/profiles.md", profileSchema],
];

for (const [name, path, schema] of references)
  it(`lists every key of ${name} in ${path}, with its shape and default`, () => {
    const rows = readTableRows(readPage(path).text, ["key", "shape", "default", "meaning"]);
    const documented = rows.map(([key = "", shape = "", byDefault = ""]): DocumentedKey => {
      return { key: key.replaceAll("`", ""), shape, default: byDefault };
    });
    expect(sortByKey(documented)).toEqual(sortByKey(listSchemaKeys(schema)));
    for (const [key, , , meaning] of rows)
      expect([key, meaning]).toEqual([key, expect.stringMatching(/^[A-Z`[].*\.$/)]);
  });

function sortByKey(keys: readonly DocumentedKey[]): string[] {
  return keys.map(({ key, shape, default: byDefault }) => `| \`${key}\` | ${shape} | ${byDefault} |`).sort();
}
