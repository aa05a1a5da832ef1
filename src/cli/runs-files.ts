import { RequestError } from "../model/errors.ts";
import type { StoredFile } from "../model/file.ts";
import { suggest } from "../model/suggest.ts";
import type { ApiClient } from "../wire/client.ts";
import { findRun } from "./find-id.ts";
import { withRecord } from "./with-record.ts";
import { isTerminal, write } from "./io.ts";
import { toJsonLine } from "./json-line.ts";
import { type CommandInput, type CommandSpec, readText, usageError } from "./options.ts";
import { quoteForShell } from "./shell-quote.ts";
import { saveFile } from "./save-file.ts";
import { showFile, readWholeFile } from "./show-file.ts";
import { formatBytes, writeTable } from "./table.ts";
import { findDroverCommand } from "./drover-command.ts";

export const runsFiles: CommandSpec = {
  name: "runs files",
  summary: "list the files of a run, or print or save one of them",
  placeholders: "RUN [PATH]",
  arity: [1, 2],
  examples: [
    ["drover runs files 5c20e9d4", "list them with size, type, SHA-256 and path"],
    ["drover runs files 5c20e9d4 report.md", "print one to stdout"],
    ["drover runs files 5c20e9d4 out/chart.png -o chart.png", "save one to a file"],
  ],
  options: {
    output: { placeholder: "FILE", short: "o", description: "save to this file or directory" },
    force: { description: "overwrite an existing file; print binary data to a terminal" },
  },
  run: listOrPrintFiles,
};

async function listOrPrintFiles(input: CommandInput): Promise<number> {
  const [id = "", path] = input.positionals;
  if (path === undefined && input.options["output"] !== undefined)
    throw usageError(
      "--output needs the path of one file: drover runs files RUN PATH -o FILE.",
      "runs files",
      "--output",
    );
  const result = await withRecord(input, async (client) => {
    const { run_id } = await findRun(client, id);
    const { items: runFiles } = await client.runs.files(run_id);
    if (path === undefined) listFiles(runFiles, run_id, input);
    else await printOrSaveFile(client, run_id, findFile(runFiles, path, run_id), input);
    return true;
  });
  return result ? 0 : 1;
}

function listFiles(runFiles: StoredFile[], run_id: string, { options }: CommandInput): void {
  if (options["json"]) for (const file of runFiles) write(1, toJsonLine(file));
  else {
    // A short hash is enough for people. Programs get the full one.
    const toCells = isTerminal(1)
      ? (file: StoredFile) => [formatBytes(file.size), file.media_type, file.sha256.slice(0, 12), file.path]
      : (file: StoredFile) => [String(file.size), file.media_type, file.sha256, file.path];
    writeTable(["SIZE", "TYPE", "SHA256", "PATH"], runFiles.map(toCells));
  }
  if (options["quiet"]) return;
  const [first] = runFiles;
  write(
    2,
    first
      ? `Print one: ${findDroverCommand()} runs files ${run_id} ${quoteForShell(first.path)}\n`
      : "The run has no files.\n",
  );
}

async function printOrSaveFile(
  { runs }: ApiClient,
  run_id: string,
  file: StoredFile,
  { options, cwd }: CommandInput,
): Promise<void> {
  const force = options["force"] === true;
  const { stream: content } = await runs.file(run_id, file.path);
  const target = readText(options, "output");
  if (target !== undefined && target !== "-") {
    const savedPath = await saveFile(content, file, { target, cwd, force });
    if (options["json"]) write(1, toJsonLine({ ...file, file: savedPath }));
    else if (!options["quiet"]) write(2, `Wrote ${savedPath} (${formatBytes(file.size)}).\n`);
  } else if (options["json"]) write(1, toJsonLine({ ...file, ...(await readWholeFile(content, file)) }));
  else await showFile(content, file, { force, run_id });
}

function findFile(runFiles: readonly StoredFile[], path: string, run_id: string): StoredFile {
  const normalizedPath = path.replace(/^(?:\.\/)+/, "");
  const match = runFiles.find((file) => file.path === normalizedPath);
  if (match) return match;
  const suggestions = findSimilarPaths(
    normalizedPath,
    runFiles.map((file) => file.path),
  );
  throw new RequestError({
    code: "DROVER-USE-008",
    field: "PATH",
    message: `The run has no file ${path}.${suggestions.length > 0 ? ` Did you mean ${suggestions.join(" or ")}?` : ""}`,
    next: `Run \`drover runs files ${run_id}\` to list its files.`,
  });
}

/** Finds paths with the same file name in another directory, and a path that differs by a likely typo. */
function findSimilarPaths(normalizedPath: string, paths: readonly string[]): string[] {
  const name = normalizedPath.split("/").at(-1);
  const sameNamePaths = paths.filter(
    (path) => path.split("/").at(-1) === name || path.toLowerCase() === normalizedPath.toLowerCase(),
  );
  const suggestion = suggest(normalizedPath, paths);
  return [...new Set([...sameNamePaths, ...(suggestion ? [suggestion] : [])])].slice(0, 3);
}
