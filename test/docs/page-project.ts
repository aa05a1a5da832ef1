import { chmodSync, mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { parse } from "yaml";
import { clientNames, prepareClient } from "../clients/clients.ts";
import type { Rule } from "../model-server/script.ts";
import { type ModelServer, startModelServer } from "../model-server/server.ts";
import { freshDatabase } from "../postgres/fresh-database.ts";
import { reservePort } from "../reserve-port.ts";
import { type Page, root } from "./page.ts";

/** The address that pages use for a PostgreSQL database. */
const pageDatabase = "postgres://drover:SECRET@db.example/drover";

/** An empty project with its own HOME, in which the commands of one page run. */
export interface PageProject {
  directory: string;
  env: Record<string, string>;
  /** Replaces the ports and addresses of the page with those of this project. */
  localize(text: string): string;
  /** The reverse, for output, so that a page can show it as its readers see it. */
  generalize(text: string): string;
  remove(): Promise<void>;
}

export async function createPageProject(page: Page): Promise<PageProject> {
  const top = realpathSync(mkdtempSync(join(tmpdir(), "drover-page-")));
  const [directory, home] = [join(top, "project"), join(top, "home")];
  for (const path of [directory, home]) mkdirSync(path);
  linkPackages(top);
  const port = await reservePort();
  writeProgram(join(top, "bin", "drover"), droverScript);
  writeProgram(join(top, "bin", "npx"), '#!/bin/bash\n[ "$1" = drover ] || exit 127\nexec "$@"\n');
  const env: Record<string, string> = {
    PATH: `${join(top, "bin")}:${process.env["PATH"] ?? ""}`,
    HOME: home,
    LANG: "C.UTF-8",
    PAGE_PORT: String(port),
    NODE_PROGRAM: process.execPath,
    DROVER_PROGRAM: join(root, "bin", "drover.js"),
  };
  const model = await startModel(page);
  if (model) {
    for (const name of clientNames) {
      const client = prepareClient(name, { home, url: model.url });
      symlinkSync(client.bin, join(top, "bin", name));
      Object.assign(env, client.env);
    }
    env["OPENAI_BASE_URL"] = `${model.url}/v1`;
  }
  const database = page.blocks.some(({ language }) => language === "postgres") ? await freshDatabase() : null;
  const replacements: [string, string][] = database ? [[pageDatabase, database.url]] : [];
  for (const pagePort of new Set(page.text.match(pagePorts)))
    replacements.push([pagePort, String(pagePort === defaultPort ? port : await reservePort())]);
  const shownPaths: [string, string][] = [
    [directory, "/home/you/project"],
    [home, "/home/you"],
  ];
  return {
    directory,
    env,
    localize: (text) => replaceAll(text, replacements),
    generalize: (text) =>
      replaceAll(text, [...replacements.map(([from, to]): [string, string] => [to, from]), ...shownPaths]),
    async remove() {
      await model?.stop();
      await database?.drop();
      rmSync(top, { recursive: true, force: true });
    },
  };
}

/** Pages may name any of these ports. Each becomes a free one. */
const pagePorts = /\b87\d\d\b/g;
const defaultPort = "8765";

/** `drover`, except that `up` and `coordinator` without a port take this page's instead of the default one. */
const droverScript = `#!/bin/bash
case "$1 $*" in
  *--port*) ;;
  "up "* | "coordinator "*) set -- "$@" --port "$PAGE_PORT" ;;
esac
exec "$NODE_PROGRAM" "$DROVER_PROGRAM" "$@"
`;

function writeProgram(file: string, text: string): void {
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
  chmodSync(file, 0o755);
}

/** The packages that snippets may import. */
function linkPackages(top: string): void {
  const packages = join(top, "node_modules");
  mkdirSync(join(packages, "@anthropic-ai"), { recursive: true });
  symlinkSync(root, join(packages, "drover"));
  symlinkSync(join(root, "node_modules", "zod"), join(packages, "zod"));
  const sdk = "@anthropic-ai/claude-agent-sdk";
  symlinkSync(join(root, "test", "clients", "node_modules", sdk), join(packages, sdk));
}

/** Starts the scripted model of the page's `<!-- model` comment. A `when` between slashes is a regular expression. */
async function startModel(page: Page): Promise<ModelServer | null> {
  const block = page.blocks.find(({ language }) => language === "model");
  if (!block) return null;
  const rules = parse(block.text) as (Rule & { when: string })[];
  return startModelServer(
    rules.map(({ when, turns }) => {
      const pattern = /^\/(.*)\/$/s.exec(when)?.[1];
      return { when: pattern === undefined ? when : new RegExp(pattern), turns };
    }),
  );
}

function replaceAll(text: string, replacements: readonly (readonly [string, string])[]): string {
  return replacements.reduce((result, [from, to]) => result.replaceAll(from, to), text);
}
