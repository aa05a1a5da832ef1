import styles from "./ansi.module.css";

// oxlint-disable-next-line no-control-regex -- matches control characters on purpose
const escapePattern = /\u001B\[([0-9;]*)([A-Za-z])|\u001B\][^\u0007]*\u0007|[\u0000-\u0008\u000B-\u001F\u007F]/g;

interface TextStyle {
  colour: number | null;
  bold: boolean;
  dim: boolean;
}

/** Renders terminal colours as CSS classes and drops all other escape sequences. */
export function Ansi({ text }: { text: string }) {
  if (!text.includes("\u001B")) return <>{text}</>;
  const parts: { text: string; style: TextStyle }[] = [];
  let style: TextStyle = { colour: null, bold: false, dim: false };
  let from = 0;
  for (const match of text.matchAll(escapePattern)) {
    if (match.index > from) parts.push({ text: text.slice(from, match.index), style });
    from = match.index + match[0].length;
    if (match[2] === "m") style = applyCodes(style, match[1] ?? "");
  }
  if (from < text.length) parts.push({ text: text.slice(from), style });
  return (
    <>
      {parts.map((part, index) => (
        <span key={index} className={toClassName(part.style)}>
          {part.text}
        </span>
      ))}
    </>
  );
}

/** Strips escape sequences, for places that show no colours. */
export function stripAnsi(text: string): string {
  return text.includes("\u001B") ? text.replaceAll(escapePattern, "") : text;
}

function applyCodes(previous: TextStyle, codes: string): TextStyle {
  let style = previous;
  for (const code of codes === "" ? [0] : codes.split(";").map(Number)) {
    if (code === 0) style = { colour: null, bold: false, dim: false };
    else if (code === 1) style = { ...style, bold: true };
    else if (code === 2) style = { ...style, dim: true };
    else if (code === 22) style = { ...style, bold: false, dim: false };
    else if (code === 39) style = { ...style, colour: null };
    else if ((code >= 30 && code <= 37) || (code >= 90 && code <= 97)) style = { ...style, colour: code % 10 };
  }
  return style;
}

function toClassName({ colour, bold, dim }: TextStyle): string {
  return [colour === null ? "" : styles[`c${colour}`], bold ? styles["bold"] : "", dim ? styles["dim"] : ""].join(" ");
}
