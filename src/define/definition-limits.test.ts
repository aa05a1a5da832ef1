import { describe, expect, it } from "vitest";
import { parseAgentFile } from "./agent-file.ts";

const repeat = (count: number, each: (index: number) => string): string =>
  Array.from({ length: count }, (_, index) => each(index)).join("");

/** Without limits, each of these would take seconds to minutes, or all memory. */
const bombs: [what: string, file: string, text: string, code: string][] = [
  ["50,000 keys in YAML", "a.yaml", repeat(50_000, (index) => `key${index}: v${index}\n`), "DROVER-AGT-009"],
  [
    "50,000 keys in JSON",
    "a.json",
    `{${repeat(50_000, (index) => `"key${index}": ${index},`)}"z": 1}`,
    "DROVER-AGT-009",
  ],
  [
    "50,000 keys in front matter",
    "a.md",
    `---\n${repeat(50_000, (index) => `key${index}: 1\n`)}---\n# A\n`,
    "DROVER-AGT-009",
  ],
  ["9,000 unknown keys", "a.yaml", repeat(9000, (index) => `key${index}: v${index}\n`), "DROVER-AGT-004"],
  ["9,000 repeated keys", "a.yaml", repeat(9000, () => "key: v\n"), "DROVER-AGT-002"],
  ["100,000 anchors", "a.yaml", "&a ".repeat(100_000), "DROVER-AGT-009"],
  ["100,000 tags", "a.yaml", "!a ".repeat(100_000), "DROVER-AGT-009"],
  ["500,000 open brackets", "a.yaml", "[".repeat(500_000), "DROVER-AGT-009"],
  ["500,000 open brackets in JSON", "a.json", `${"[".repeat(400_000)}${"]".repeat(400_000)}`, "DROVER-AGT-009"],
  ["nested 101 levels", "a.yaml", `a: ${"[".repeat(101)}${"]".repeat(101)}`, "DROVER-AGT-009"],
  ["9,000 levels of lists", "a.yaml", "- ".repeat(9000), "DROVER-AGT-002"],
  ["200,000 closing brackets", "a.yaml", "]".repeat(200_000), "DROVER-AGT-009"],
  ["300,000 comments", "a.yaml", "#x\n".repeat(300_000), "DROVER-AGT-009"],
  ["a flow map without end", "a.yaml", `{${"a: b, ".repeat(150_000)}`, "DROVER-AGT-009"],
  [
    "aliases of aliases",
    "a.yaml",
    `a: &a [x,x,x,x,x,x,x,x,x]\n${repeat(8, (index) => `${"bcdefghi"[index]}: &${"bcdefghi"[index]} [${`*${"abcdefgh"[index]},`.repeat(9)}]\n`)}`,
    "DROVER-AGT-009",
  ],
  [
    "a large list with 99 aliases",
    "a.yaml",
    `a: &a [${"x,".repeat(5000)}]\nb: [${"*a,".repeat(99)}]\n`,
    "DROVER-AGT-009",
  ],
  ["more than a megabyte of YAML", "a.yaml", `name: a\ndescription: ${"x".repeat(1024 * 1024)}\n`, "DROVER-AGT-009"],
  ["200,000 comments that never end", "a.md", `${"<!--".repeat(200_000)}\n# A\n`, "DROVER-AGT-002"],
  ["200,000 comments", "a.md", `${"<!--x-->".repeat(100_000)}x\n# A\n`, "DROVER-AGT-002"],
  ["a title of spaces", "a.md", `# a${" ".repeat(900_000)}b\n`, "none"],
  ["a heading of spaces", "a.md", `# A\n\nText.\n\n## Parameters${" ".repeat(900_000)}b\n`, "none"],
  [
    "100,000 listed parameters",
    "a.md",
    `# A\n\n## Parameters\n${repeat(60_000, (index) => `- p${index}: x\n`)}`,
    "DROVER-AGT-004",
  ],
];

describe("a definition crafted to be expensive", () => {
  it.each(bombs)("is handled quickly and with few faults: %s", (_, file, text, code) => {
    const parsed = parseAgentFile(file, text);
    expect(parsed.ok ? "none" : parsed.faults[0]?.code).toBe(code);
    expect(parsed.ok ? 0 : parsed.faults.length).toBeLessThan(200);
  });

  it("does not keep out realistic definitions, such as a schema with 150 parameters or a long prompt", () => {
    const properties = Object.fromEntries(
      Array.from({ length: 150 }, (_, index) => [`p${index}`, { type: "string", description: `Number ${index}` }]),
    );
    const prompt = "Be kind. ".repeat(50_000);
    const agent = { name: "a", system_prompt: prompt, parameters_schema: { type: "object", properties } };
    expect(parseAgentFile("a.json", JSON.stringify(agent, null, 2)).ok).toBe(true);
    expect(parseAgentFile("a.md", `# A\n\n${prompt}\n`).ok).toBe(true);
  });
});
