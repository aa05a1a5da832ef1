import { memo } from "react";
import ReactMarkdown, { type Components } from "react-markdown";
import remarkGfm from "remark-gfm";
import remend from "remend";
import styles from "./markdown.module.css";

/**
 * Renders untrusted Markdown from models and files. Raw HTML is shown as text, images are not loaded, and every link
 * shows its host.
 */
const components: Components = {
  a: ({ href = "", children }) =>
    /^https?:\/\//.test(href) ? (
      <a href={href} target="_blank" rel="noreferrer noopener nofollow" title={href}>
        {children} <span className="faint">({getHost(href)})</span>
      </a>
    ) : (
      <span>{children}</span>
    ),
  img: ({ alt, src }) => (
    <span className={styles["image"]}>
      [image{alt ? `: ${alt}` : ""}] <code>{String(src ?? "")}</code>
    </span>
  ),
};

export const Markdown = memo(function Markdown({ text, streaming = false }: { text: string; streaming?: boolean }) {
  return (
    <div className={styles["markdown"]}>
      <ReactMarkdown remarkPlugins={[remarkGfm]} components={components} skipHtml={false}>
        {streaming ? remend(text) : text}
      </ReactMarkdown>
    </div>
  );
});

function getHost(url: string): string {
  return URL.canParse(url) ? new URL(url).host : "invalid URL";
}
