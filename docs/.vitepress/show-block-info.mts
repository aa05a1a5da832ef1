import type { MarkdownRenderer } from "vitepress";

/** Languages that the highlighter does not know. */
const plain = ["output", "text"];

/** Shows the file name of a code block above it. CONTRIBUTING.md describes what else is in the info string. */
export function showBlockInfo(md: MarkdownRenderer): void {
  const render = md.renderer.rules.fence!;
  md.renderer.rules.fence = (tokens, index, options, env, self) => {
    const token = tokens[index]!;
    const file = / \[([^\]]+)\]/.exec(token.info)?.[1];
    const language = token.info.trim().split(" ", 1)[0] ?? "";
    // VitePress would take the other words for line numbers.
    token.info = plain.includes(language) ? "txt" : language;
    const html = render(tokens, index, options, env, self);
    const title = file === undefined ? "" : `<div class="block-file">${md.utils.escapeHtml(file)}</div>`;
    return `<div class="block block-${language}">${title}${html}</div>`;
  };
}
