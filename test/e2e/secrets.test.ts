import { randomBytes } from "node:crypto";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { encodings, listFiles, findCanaries, makeCanaries } from "../fixtures/e2e/canaries.ts";
import { drover, createDirectory } from "./drover.ts";

it("leaves none of 200 canaries, in five encodings and split over writes, in the database, logs, spill files or history", async () => {
  const cwd = createDirectory();
  const state = join(cwd, "state");
  const canaries = makeCanaries(200);
  const env = Object.fromEntries(canaries.map((canary, index) => [`SECRET_${index}_TOKEN`, canary]));
  const lines = canaries.flatMap((canary) => Object.values(encodings).flatMap((encode) => encode(canary)));
  writeFileSync(join(cwd, "lines.txt"), lines.join("\n"));
  // Writes each line in two pieces, with an occasional pause so that Drover reads between them.
  writeFileSync(
    join(cwd, "split.mjs"),
    `import { readFileSync, writeSync } from "node:fs";
     const lines = readFileSync("lines.txt", "utf8").split("\\n");
     for (const [at, line] of lines.entries()) {
       const fd = at % 3 === 0 ? 2 : 1;
       const cut = 1 + (at * 7) % (line.length - 1);
       writeSync(fd, line.slice(0, cut));
       if (at % 50 === 0) await new Promise((resolve) => setTimeout(resolve, 5));
       writeSync(fd, line.slice(cut) + "\\n");
     }`,
  );
  const run = (...args: string[]) => drover(args, { cwd, env: { ...env, DROVER_STATE_DIR: state } });

  const raw = await run("exec", "cat lines.txt", "--spill", "--quiet");
  expect(raw.code).toBe(0);
  expect(raw.stdout).toBe(lines.join("\n")); // The caller gets the command's original output.
  const split = await run("exec", "--spill", "--quiet", "--", process.execPath, "split.mjs");
  expect(split.code).toBe(0);
  const truncated = await run(
    "exec",
    "cat lines.txt lines.txt lines.txt",
    "--max-output-kb",
    "16",
    "--quiet",
    "--capture",
    "merged",
  );
  expect(truncated.code).toBe(0);
  // In the command's words, in a given variable and in an error message.
  await run(
    "exec",
    "--quiet",
    "--env",
    `GIVEN_PASSWORD=${canaries[0]}2`,
    "--",
    "echo",
    canaries[1]!,
    encodeURIComponent(canaries[2]!),
  );
  await run("exec", "--quiet", "--", canaries[3]!);
  await run("exec", "--quiet", "--task-id", canaries[4]!, "--", "sh", "-c", "echo $GIVEN; exit 3");

  const ids = (await run("runs", "list", "--json")).stdout
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line).run_id);
  expect(ids).toHaveLength(6);
  const places: [string, Buffer][] = listFiles(state).map((file) => [file, readFileSync(file)]);
  expect(places.map(([file]) => file).filter((file) => file.endsWith(".stdout"))).toHaveLength(2);
  places.push(["runs list", Buffer.from((await run("runs", "list", "--json")).stdout)]);
  places.push(["audit export", Buffer.from((await run("audit", "export")).stdout)]);
  for (const id of ids) places.push([`runs show ${id}`, Buffer.from((await run("runs", "show", id, "--json")).stdout)]);

  expect(findCanaries(canaries, places)).toEqual([]);
  // The record still contains the rest of the text: it was redacted, not dropped.
  expect(places.some(([, bytes]) => bytes.includes("[redacted:SECRET_199_TOKEN]"))).toBe(true);
});

it("keeps no part of a long secret where output is truncated, in a path, in an id or in a variable given twice", async () => {
  const cwd = createDirectory();
  const state = join(cwd, "state");
  // As long as an RSA key of 8,192 bits, which would take many seconds to generate.
  const body = randomBytes(4800)
    .toString("base64")
    .match(/.{1,64}/g)!
    .join("\n");
  const pem = `-----BEGIN PRIVATE KEY-----\n${body}\n-----END PRIVATE KEY-----\n`;
  writeFileSync(join(cwd, "key.pem"), pem);
  const token = `ghp_${randomBytes(27).toString("base64url").replaceAll(/[-_]/g, "x").slice(0, 36)}`;
  mkdirSync(join(cwd, token));
  const run = (...args: string[]) =>
    drover(args, { cwd, env: { DROVER_STATE_DIR: state, MY_TOKEN: "first-value-of-mine-1" } });
  for (const lines of [0, 100, 900, 3000]) {
    await run(
      "exec",
      "--quiet",
      "--max-output-kb",
      "1",
      "--",
      "sh",
      "-c",
      `seq 1 ${lines}; cat key.pem; seq 1 ${lines}; echo done`,
    );
  }
  await run("exec", "--quiet", "--run-id", token, "--session-id", token, "--cwd", token, "true");
  await run(
    "exec",
    "--quiet",
    "--env",
    "MY_TOKEN=second-value-of-mine-2",
    "--",
    "echo",
    "first-value-of-mine-1",
    "second-value-of-mine-2",
  );
  const parts = [
    ...pem.split("\n").filter((line) => line.length > 40 && !line.startsWith("-----")),
    token.slice(4, -4),
    "value-of-mine",
  ];
  const filesWithParts = listFiles(state).flatMap((file) => {
    const bytes = readFileSync(file);
    return parts.filter((needle) => bytes.includes(needle)).map((needle) => `${needle} in ${file}`);
  });
  expect(filesWithParts).toEqual([]);
});
