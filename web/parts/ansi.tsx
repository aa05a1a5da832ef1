import styles from "./ansi.module.css";

// oxlint-disable-next-line no-control-regex -- matches control characters on purpose
const sequence = /\u001B\[([0-9;]*)([A-Za-z])|\u001B\][^\u0007]*\u0007|[\u0000-\u0008\u000B-\u001F\u007F]/g;

interface Look {
  colour: number | null;
  bold: boolean;
  dim: boolean;
}

/** Renders terminal colours as CSS classes and drops all other escape sequences. */
export function Ansi({ text }: { text: string }) {
  if (!text.includes("\u001B")) return <>{text}</>;
  const parts: { text: string; look: Look }[] = [];
  let look: Look = { colour: null, bold: false, dim: false };
  let from = 0;
  for (const match of text.matchAll(sequence)) {
    if (match.index > from) parts.push({ text: text.slice(from, match.index), look });
    from = match.index + match[0].length;
    if (match[2] === "m") look = lookAfter(look, match[1] ?? "");
  }
  if (from < text.length) parts.push({ text: text.slice(from), look });
  return (
    <>
      {parts.map((part, index) => (
        <span key={index} className={classOf(part.look)}>
          {part.text}
        </span>
      ))}
    </>
  );
}

/** Strips escape sequences, for places too small to show colours. */
export function withoutAnsi(text: string): string {
  return text.includes("\u001B") ? text.replaceAll(sequence, "") : text;
}

function lookAfter(before: Look, codes: string): Look {
  let look = before;
  for (const code of codes === "" ? [0] : codes.split(";").map(Number)) {
    if (code === 0) look = { colour: null, bold: false, dim: false };
    else if (code === 1) look = { ...look, bold: true };
    else if (code === 2) look = { ...look, dim: true };
    else if (code === 22) look = { ...look, bold: false, dim: false };
    else if (code === 39) look = { ...look, colour: null };
    else if ((code >= 30 && code <= 37) || (code >= 90 && code <= 97)) look = { ...look, colour: code % 10 };
  }
  return look;
}

function classOf({ colour, bold, dim }: Look): string {
  return [colour === null ? "" : styles[`c${colour}`], bold ? styles["bold"] : "", dim ? styles["dim"] : ""].join(" ");
}
