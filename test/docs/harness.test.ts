import { expect, it } from "vitest";
import { findConventionViolations } from "./conventions.ts";
import { compareOutput } from "./match-output.ts";
import { type Page, parseBlocks } from "./page.ts";
import { runPage } from "./run-page.ts";

const fence = "```";
const parsePage = (text: string): Page => ({ path: "page.md", text, blocks: parseBlocks(text) });

it("runs blocks in order in one shell, and compares what they print", async () => {
  const page = parsePage(`
<!-- sh
hidden=yes
-->
${fence}yaml [agents/a.yaml]
name: a
${fence}
${fence}sh
mkdir deeper && cd deeper
${fence}
${fence}sh
echo "$hidden $(basename "$PWD")"; cat ../agents/a.yaml
${fence}
${fence}output
yes deep...
name: a
${fence}
${fence}sh exit=3
exit 3
${fence}
${fence}ts
const answer: number = 42;
console.log(answer);
${fence}
`);
  expect(findConventionViolations(page)).toEqual([]);
  expect(await runPage(page)).toEqual([]);
});

it("reports a command that fails, with its line and its output", async () => {
  const [failure] = await runPage(parsePage(`${fence}sh\necho before; false; echo after\n${fence}`));
  expect(failure).toMatch(/^page\.md:1 failed with 1:[^]*\nbefore\n$/);
});

it("reports output that differs from the page", async () => {
  const page = parsePage(`${fence}sh\necho one\n${fence}\n${fence}output\ntwo\n${fence}`);
  expect((await runPage(page)).join()).toContain("page.md:4: The page shows\n\ntwo");
});

it("reports a wrong exit code and a failing snippet", async () => {
  expect(await runPage(parsePage(`${fence}sh exit=2\nexit 1\n${fence}`))).toHaveLength(1);
  expect(await runPage(parsePage(`${fence}js\nthrow new Error("no");\n${fence}`))).toHaveLength(1);
});

it("serves in the background on the page's port, and stops at the end", async () => {
  const page = parsePage(`
${fence}sh serve
drover up
${fence}
${fence}sh
curl -sS http://127.0.0.1:8765/health | grep -o '"status":"[a-z]*"'
drover run echo --message hello
${fence}
${fence}output
...
{"message":"hello"}
${fence}
`);
  expect(await runPage(page)).toEqual([]);
});

it("matches any text with ..., and any lines with a line of it", () => {
  expect(compareOutput("a ... d\n...\nz", "a b c d\nx\ny\nz\n")).toBeNull();
  expect(compareOutput("a\nz", "a\nb\nz")).not.toBeNull();
  expect(compareOutput("a...", "b")).not.toBeNull();
});

it("rejects blocks that nothing would check", () => {
  const failures = (text: string): string => findConventionViolations(parsePage(text)).join();
  expect(failures(`${fence}\ndrover up\n${fence}`)).toContain("unknown language");
  expect(failures(`${fence}text\n$ drover up\n${fence}`)).toContain("commands belong in an sh block");
  expect(failures(`${fence}sh skip\ntrue\n${fence}`)).toContain("unknown words in the info string: skip");
  expect(failures(`${fence}sh norun="no"\ntrue\n${fence}`)).toContain("needs a reason");
  expect(failures(`${fence}sh norun="needs a container engine"\nif\n${fence}`)).toContain("bash cannot parse it");
  expect(failures(`${fence}json\n{ a: 1 }\n${fence}`)).toContain("not valid json");
});
