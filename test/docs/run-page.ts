import { spawn } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { transform } from "esbuild";
import { compareOutput } from "./match-output.ts";
import type { Block, Page } from "./page.ts";
import { createPageProject, type PageProject } from "./page-project.ts";

/** Runs everything on a page from top to bottom in one shell. Returns the failures. */
export async function runPage(page: Page): Promise<string[]> {
  const project = await createPageProject(page);
  const steps = join(project.directory, "..", "steps");
  mkdirSync(steps);
  try {
    const script: string[] = [prelude];
    for (const [index, block] of page.blocks.entries()) script.push(await writeStep(steps, index, block, project));
    const { code, output } = await runBash(script.join("\n"), steps, project);
    return [
      ...(code === 0 ? [] : [describeFailure(page, steps, code, output)]),
      ...page.blocks.flatMap((block, index) => findOutputFailure(page, steps, index, block, project)),
    ];
  } finally {
    await project.remove();
  }
}

/** `set -m` gives each server its own process group, so that a signal reaches the server and not only its subshell. */
const prelude = `set -euo pipefail
servers=()
stop_server() {
  local pid=\${servers[-1]}
  unset 'servers[-1]'
  kill -TERM -- "-$pid" 2>/dev/null || true
  # The subshell ends at once. Wait for the server in it too.
  while kill -0 -- "-$pid" 2>/dev/null; do sleep 0.05; done
}
trap 'while [ \${#servers[@]} -gt 0 ]; do stop_server; done' EXIT
serve_until() {
  local pid=$! out=$1 ready=$2
  servers+=("$pid")
  until grep -qE "$ready" "$out"; do
    kill -0 "$pid" 2>/dev/null || { echo "the server ended" >>"$out"; return 1; }
    sleep 0.1
  done
}`;

async function writeStep(steps: string, index: number, block: Block, project: PageProject): Promise<string> {
  const text = project.localize(block.text);
  const stepFile = (ending: string): string => join(steps, `${index}.${ending}`);
  const begin = `echo ${index} >${quote(join(steps, "current"))}`;
  const redirect = `>${quote(stepFile("out"))} 2>&1 </dev/null`;
  if (block.file !== null && block.norun === null) {
    writeFileSync(stepFile("file"), `${text}\n`);
    return `${begin}\nmkdir -p ${quote(dirname(block.file))}\ncat ${quote(stepFile("file"))} >${quote(block.file)}`;
  }
  if (block.language === "sh" && block.norun === null) {
    writeFileSync(stepFile("sh"), `${text}\n`);
    const source = `source ${quote(stepFile("sh"))} ${redirect}`;
    if (block.serves)
      return `${begin}\n: >${quote(stepFile("out"))}\nset -m\n( ${source} ) &\nset +m\nserve_until ${quote(stepFile("out"))} ${quote(getReadyLine(block))}`;
    if (block.exit === 0) return `${begin}\n${source}`;
    const exitCheck = `[ $code -eq ${block.exit} ] || { echo "exit code $code" >>${quote(stepFile("out"))}; exit 1; }`;
    return `${begin}\ncode=0\n( ${source} ) || code=$?\n${exitCheck}`;
  }
  if (["ts", "js"].includes(block.language) && block.norun === null) {
    const file = join(project.directory, `snippet-${index}.mjs`);
    writeFileSync(file, (await transform(text, { loader: "ts" })).code);
    return `${begin}\nnode ${quote(file)} ${redirect}`;
  }
  return "";
}

/** Returns the last line that the Drover process of a block prints when it is ready. */
function getReadyLine({ text }: Block): string {
  if (/\bdrover up\b/.test(text)) return "^Dashboard: ";
  return /\bdrover runner\b/.test(text) ? "^Offers " : "^Serving ";
}

function runBash(
  script: string,
  steps: string,
  project: PageProject,
): Promise<{ code: number | null; output: string }> {
  writeFileSync(join(steps, "page.sh"), script);
  const child = spawn("bash", [join(steps, "page.sh")], { cwd: project.directory, env: project.env });
  child.stdin.end();
  let output = "";
  for (const stream of [child.stdout, child.stderr])
    stream.on("data", (chunk: Buffer) => (output += chunk.toString("utf8")));
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code) => resolve({ code, output }));
  });
}

function describeFailure(page: Page, steps: string, code: number | null, output: string): string {
  const index = Number(readFileSync(join(steps, "current"), "utf8"));
  const { line, text } = page.blocks[index]!;
  return `${page.path}:${line} failed with ${code}:\n\n${text}\n\nIt printed:\n\n${readOutput(steps, index)}${output}`;
}

function findOutputFailure(page: Page, steps: string, index: number, block: Block, project: PageProject): string[] {
  const expectedOutput = page.blocks[index + 1];
  if (expectedOutput?.language !== "output" || !existsSync(join(steps, `${index}.out`))) return [];
  const problem = compareOutput(
    block.serves ? `${expectedOutput.text}\n...` : expectedOutput.text,
    project.generalize(readOutput(steps, index)),
  );
  return problem === null ? [] : [`${page.path}:${expectedOutput.line}: ${problem}`];
}

function readOutput(steps: string, index: number): string {
  const file = join(steps, `${index}.out`);
  return existsSync(file) ? readFileSync(file, "utf8") : "";
}

const quote = (text: string): string => `'${text.replaceAll("'", String.raw`'\''`)}'`;
