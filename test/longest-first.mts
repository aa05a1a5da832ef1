import { relative } from "node:path";
import { BaseSequencer, type TestSpecification } from "vitest/node";

/** The slowest files on an idle machine, slowest first. Files not listed are fast. */
const slow = [
  "test/browser/accessible.test.ts",
  "test/e2e/deploy.test.ts",
  "test/e2e/gates.test.ts",
  "test/e2e/fleet.test.ts",
  "test/e2e/reliability.test.ts",
  "test/e2e/agents/client-faults.test.ts",
  "test/e2e/agents/moving.test.ts",
  "test/browser/walk.test.ts",
  "test/e2e/host-faults.test.ts",
  "test/e2e/package.test.ts",
  "test/browser/hostile.test.ts",
  "test/e2e/agents/gemini.test.ts",
  "test/e2e/agents/hostile-repositories.test.ts",
  "test/e2e/exec.test.ts",
  "test/e2e/record-moves.test.ts",
  "test/e2e/agents/claude.test.ts",
  "test/e2e/agents/errors.test.ts",
  "src/serve/token-watch.test.ts",
  "src/llm/claude-code/claude-code.test.ts",
  "src/record/postgres/contract.test.ts",
  "src/record/copy/copy-record.test.ts",
  "src/execute/executors/claude-sdk/questions.test.ts",
  "src/process/contract.test.ts",
  "src/process/limits.test.ts",
  "test/postgres/server.test.ts",
  "src/record/copy/migrate-record.test.ts",
];

/**
 * Runs tests of whole programs first and the fast files that share a process last, so that no long file runs alone at the
 * end. Files that share a process stay together, because the process would otherwise have to restart.
 */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = (file: TestSpecification): number => {
      const index = slow.indexOf(relative(this.ctx.config.root, file.moduleId));
      return (file.project.config.isolate ? 0 : 1000) + (index === -1 ? slow.length : index);
    };
    return (await super.sort(files)).toSorted((a, b) => rank(a) - rank(b));
  }
}
