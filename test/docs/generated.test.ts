import { join } from "node:path";
import { expect, it } from "vitest";
import { commands } from "../../src/cli/commands.ts";
import type { OpenApiDocument } from "../../src/serve/openapi-document.ts";
import { createDirectory } from "../e2e/drover.ts";
import { startCoordinator } from "../e2e/coordinator-process.ts";
import { root } from "./page.ts";
import { renderCommands } from "./render-commands.ts";
import { renderRoutes } from "./render-routes.ts";

// `npm test -- test/docs/generated.test.ts -u` updates both pages.

it("lists every command and option in docs/all-commands.md", async () => {
  const specs = await Promise.all(Object.values(commands).map(([, load]) => load()));
  await expect(renderCommands(specs)).toMatchFileSnapshot(join(root, "docs", "all-commands.md"));
});

it("lists every route of a running coordinator in docs/routes.md", async () => {
  const { url } = await startCoordinator(createDirectory());
  const document = (await (await fetch(`${url}/openapi.json`)).json()) as OpenApiDocument;
  await expect(renderRoutes(document)).toMatchFileSnapshot(join(root, "docs", "routes.md"));
});
