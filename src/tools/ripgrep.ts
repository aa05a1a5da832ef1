import { createRequire } from "node:module";
import { join } from "node:path";
import { ToolFailure } from "./tool-failure.ts";

/** Finds the program from `@vscode/ripgrep`, which has a separate package for each platform. */
export function findRipgrep(): string {
  // A CommonJS bundle has only __dirname; an ES module has only import.meta.dirname.
  const directory = typeof __dirname === "string" ? __dirname : import.meta.dirname;
  const platform = `${process.platform}-${process.arch}`;
  try {
    const wrapper = createRequire(join(directory, "ripgrep.js")).resolve("@vscode/ripgrep");
    return createRequire(wrapper).resolve(`@vscode/ripgrep-${platform}/bin/rg`);
  } catch (error) {
    if (!(error instanceof Error && "code" in error && error.code === "MODULE_NOT_FOUND")) throw error;
    throw new ToolFailure(
      "dependency_missing",
      `file.search needs ripgrep, but npm has not installed it for ${platform}. Run npm install again with optional dependencies.`,
    );
  }
}
