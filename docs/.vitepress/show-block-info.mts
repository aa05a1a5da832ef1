import type { MarkdownRenderer } from "vitepress";

/** Shows the file name and the reason for not running of a code block. Both are in the block's info string. */
export function showBlockInfo(md: MarkdownRenderer): void {
  const render = md.renderer.rules.fence!;
  md.renderer.rules.fence = (tokens, at, options, env, self) => {
    const token = tokens[at]!;
    const { info } = token;
    const file = / \[([^\]]+)\]/.exec(info)?.[1];
    const language = info.trim().split(" ", 1)[0];
    // Output has no language, and the highlighter does not know these two.
    token.info = info.replace(/^(?:output|mermaid|text)\b/, "txt");
    const html = render(tokens, at, options, env, self);
    const title = file === undefined ? "" : `<div class="block-file">${md.utils.escapeHtml(file)}</div>`;
    return `<div class="block block-${language}">${title}${html}</div>`;
  };
}
