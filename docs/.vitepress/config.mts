import { existsSync } from "node:fs";
import { join } from "node:path";
import { defineConfig } from "vitepress";
import { decisions, guides, internals, operate, reference, start } from "./sidebar.mts";
import { showBlockInfo } from "./show-block-info.mts";

const docs = join(import.meta.dirname, "..");

export default defineConfig({
  title: "Drover",
  description: "Runs any agent, anywhere, on the record.",
  lang: "en",
  cleanUrls: false,
  lastUpdated: false,
  srcExclude: ["**/node_modules/**", "monitoring/**"],
  outDir: join(import.meta.dirname, "dist"),
  cacheDir: join(import.meta.dirname, "cache"),
  // Links to source files and to the README work in the repository. The site has no such pages.
  ignoreDeadLinks: [/^(?:\.\/)?(?:\.\.\/)+(?!docs\/)/],
  head: [["link", { rel: "icon", href: "/favicon.svg", type: "image/svg+xml" }]],
  markdown: {
    theme: { light: "github-light", dark: "github-dark" },
    attrs: { disable: true },
    config(md) {
      showBlockInfo(md);
      // Braces are text, not Vue expressions.
      md.renderer.rules.text = (tokens, index) =>
        md.utils.escapeHtml(tokens[index]!.content).replaceAll("{{", "&#123;&#123;");
      md.renderer.rules.code_inline = (tokens, index) =>
        `<code v-pre>${md.utils.escapeHtml(tokens[index]!.content)}</code>`;
    },
  },
  themeConfig: {
    logo: "/favicon.svg",
    search: { provider: "local" },
    outline: { level: [2, 3], label: "On this page" },
    docFooter: { prev: "Previous", next: "Next" },
    externalLinkIcon: true,
    nav: [
      { text: "Start here", link: existsSync(join(docs, "start.md")) ? "/start" : "/" },
      { text: "Guides", link: `/${guides[0]!.page}`, activeMatch: `^/(?:${pagesOf(guides, operate)})\\.html` },
      { text: "Reference", link: "/commands", activeMatch: `^/(?:${pagesOf(reference)})\\.html` },
      { text: "Internals", link: "/path-of-a-run", activeMatch: `^/(?:${pagesOf(internals)}|decisions/.*)\\.html` },
    ],
    sidebar: [
      { text: "Start here", items: start.map(toLink) },
      {
        text: "Guides",
        items: [...guides.map(toLink), { text: "Operate", collapsed: true, items: operate.map(toLink) }],
      },
      { text: "Reference", items: reference.map(toLink) },
      {
        text: "Internals",
        items: [
          ...internals.map(toLink),
          { text: "Decisions", link: "/decisions/", collapsed: true, items: decisions(docs).map(toLink) },
        ],
      },
    ],
  },
});

function toLink({ text, page }: { text: string; page: string }): { text: string; link: string } {
  return { text, link: page === "index" ? "/" : `/${page}` };
}

function pagesOf(...groups: { page: string }[][]): string {
  return groups
    .flat()
    .map(({ page }) => page)
    .join("|");
}
