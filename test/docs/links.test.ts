import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, normalize } from "node:path";
import { expect, it } from "vitest";
import { readPages, root } from "./page.ts";

const pages = new Map(readPages().map(({ path, text }) => [path, text]));

it("has no dead link and no dead anchor on any page", () => {
  const dead = [...pages].flatMap(([path, text]) =>
    listLinks(text).flatMap((link) => {
      const problem = findLinkProblem(path, link);
      return problem === null ? [] : [`${path}: ${link}: ${problem}`];
    }),
  );
  expect(dead).toEqual([]);
});

it("names only pages that exist in messages and comments of the source", () => {
  const dead = ["src", "bundled", "examples", "scripts"].flatMap((directory) =>
    readdirSync(join(root, directory), { recursive: true, encoding: "utf8" })
      .filter((file) => /\.(?:ts|mjs|md|json|yaml)$/.test(file))
      .flatMap((file) => {
        const text = readFileSync(join(root, directory, file), "utf8");
        const namedPages = text.match(/\bdocs\/[\w/-]+\.md\b/g) ?? [];
        return namedPages
          .filter((page) => !existsSync(join(root, page)))
          .map((page) => `${directory}/${file}: ${page}`);
      }),
  );
  expect(dead).toEqual([]);
});

/** Lists Markdown links outside of code. */
function listLinks(text: string): string[] {
  const prose = text.replaceAll(/^( *)(`{3,})[^]*?^\1\2$/gm, "").replaceAll(/`[^`\n]*`/g, "code");
  return [...prose.matchAll(/\]\(([^)\s]+)\)/g)].map(([, link = ""]) => link);
}

function findLinkProblem(from: string, link: string): string | null {
  if (/^https?:|^mailto:/.test(link)) return null;
  const [file = "", anchor] = link.split("#");
  const target = file === "" ? from : normalize(join(dirname(from), file));
  if (!existsSync(join(root, target))) return "no such file";
  if (anchor === undefined) return null;
  const text = pages.get(target);
  return text !== undefined && listAnchors(text).has(anchor) ? null : "no such heading";
}

/** Lists the anchors that GitHub and the site give to headings. */
function listAnchors(text: string): Set<string> {
  const prose = text.replaceAll(/^( *)(`{3,})[^]*?^\1\2$/gm, "");
  const seen = new Map<string, number>();
  const anchors = [...prose.matchAll(/^#{1,6} (.+)$/gm)].map(([, heading = ""]) => {
    const slug = slugify(heading);
    const count = seen.get(slug) ?? 0;
    seen.set(slug, count + 1);
    return count === 0 ? slug : `${slug}-${count}`;
  });
  return new Set(anchors);
}

function slugify(heading: string): string {
  return heading
    .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, "$1")
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N} _-]/gu, "")
    .replaceAll(" ", "-");
}
