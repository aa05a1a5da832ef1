import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import { drover, folder, root } from "../drover.ts";
import { offer, serve } from "../serving.ts";

const page = readFileSync(join(root, "docs", "writing-executors.md"), "utf8");

/** The files shown on the page: a name in backquotes, then the content. */
const shown = [...page.matchAll(/^`([\w./-]+)`[^\n]*:\n\n```\w+\n(.*?)^```$/gms)].map(([, path = "", text = ""]) => ({
  path,
  text,
}));

test("the example of the page on writing executors works unchanged, in one file of at most 30 lines", async () => {
  expect(shown.map(({ path }) => dirname(path))).toEqual(["executors", "profiles", "executors/agents"]);
  expect(shown[0]!.text.trim().split("\n").length).toBeLessThanOrEqual(30);
  const cwd = folder();
  for (const { path, text } of shown) {
    mkdirSync(dirname(join(cwd, path)), { recursive: true });
    writeFileSync(join(cwd, path), text);
  }
  const serving = await serve(cwd);
  await offer(serving, cwd, "one", ["-x", "word-count"]);
  const env = { DROVER_API_URL: serving.url, DROVER_API_KEY: serving.token };
  const ran = await drover(["run", "word-count", "--text", "to be or not to be", "--json"], { cwd, env });
  expect(ran).toMatchObject({ code: 0 });
  // The last line printed is the run.
  const run = JSON.parse(ran.stdout.trim().split("\n").at(-1) ?? "") as { run_id: string; result_text: string };
  expect(run.result_text).toBe("6 words, 4 of them different");
  const file = await drover(["runs", "files", run.run_id, "words.csv"], { cwd, env });
  expect(file.stdout).toBe("to,2\nbe,2\nor,1\nnot,1\n");
  const refused = await drover(["run", "word-count", "--text", " "], { cwd, env });
  expect(refused.code).not.toBe(0);
  expect(refused.stderr + refused.stdout).toContain("There is no text. Pass one as `text` or as the prompt.");
});
