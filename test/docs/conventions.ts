import { spawnSync } from "node:child_process";
import { parse } from "yaml";
import type { Block, Page } from "./page.ts";

/** The languages that pages may use. A block in any other would not be checked. */
const languages = ["sh", "output", "yaml", "json", "md", "ts", "js", "text", "ini", "sql", "nginx", "dockerfile"];

/** Lists the blocks of a page that violate the conventions, as `path:line: problem`. */
export function findConventionViolations(page: Page): string[] {
  return page.blocks.flatMap((block, index) => {
    const problem = block.isHidden ? findHiddenProblem(block) : findVisibleProblem(block, page.blocks[index - 1]);
    return problem === null ? [] : [`${page.path}:${block.line}: ${problem}`];
  });
}

function findVisibleProblem(block: Block, before: Block | undefined): string | null {
  const { language, text, norun, unknownWords, file } = block;
  if (!languages.includes(language))
    return `unknown language ${JSON.stringify(language)}; use one of ${languages.join(", ")}`;
  if (unknownWords.length > 0) return `unknown words in the info string: ${unknownWords.join(" ")}`;
  if (norun !== null && norun.length < 10) return "norun needs a reason that a reader understands";
  if (language === "output" && before?.language !== "sh")
    return "an output block must follow the sh block that prints it";
  if (language === "text" && /^\s*(?:\$ |(?:npx )?drover [a-z])/m.test(text)) return "commands belong in an sh block";
  if (language === "sh") return findShellProblem(text);
  if (language === "json" || (language === "yaml" && file === null)) return findSyntaxProblem(text, language);
  return null;
}

const findHiddenProblem = ({ language, text, file }: Block): string | null => {
  if (language === "sh") return findShellProblem(text);
  if (language === "model") return findSyntaxProblem(text, "yaml");
  return language === "file" && file === "" ? "name the file" : null;
};

function findShellProblem(text: string): string | null {
  const { status, stderr } = spawnSync("bash", ["-n", "-c", text], { encoding: "utf8" });
  return status === 0 ? null : `bash cannot parse it: ${stderr}`;
}

function findSyntaxProblem(text: string, language: "json" | "yaml"): string | null {
  try {
    if (language === "json") JSON.parse(text);
    else parse(text);
    return null;
  } catch (error) {
    return `not valid ${language}: ${String(error)}`;
  }
}
