// An executor in one file: counts the words of its input with `wc` and writes a table of the most frequent ones.
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { defineExecutor, RunFailure } from "drover";

export const executor = defineExecutor({
  name: "word-count",

  async execute({ invocation, parameters, workDir, runCli, reportProgress }) {
    const text = typeof parameters["text"] === "string" ? parameters["text"] : (invocation.prompt ?? "");
    if (text.trim() === "") throw new RunFailure("refused", "There is no text. Pass one as `text` or as the prompt.");

    const { stdout } = await runCli({ command: ["wc", "-w"], stdin: text });
    await reportProgress(50, "counted");

    const counts = new Map<string, number>();
    for (const word of text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? []) counts.set(word, (counts.get(word) ?? 0) + 1);
    const frequent = [...counts].sort((a, b) => b[1] - a[1]).slice(0, 20);
    await writeFile(join(workDir, "words.csv"), frequent.map(([word, count]) => `${word},${count}\n`).join(""));

    return { text: `${stdout.trim()} words, ${counts.size} of them different`, data: Object.fromEntries(frequent) };
  },
});
