import { useState } from "react";
import { Button } from "./button.tsx";
import { formatCount } from "./numbers.ts";
import { revealDirectionMarks } from "./reveal-direction-marks.ts";
import styles from "./code.module.css";

/** Preformatted text, such as a command or its output. */
export function Code({ text, label, tall = false }: { text: string; label?: string; tall?: boolean }) {
  return (
    <pre
      className={`${styles["code"]} ${tall ? styles["tall"] : ""}`}
      tabIndex={0}
      aria-label={label}
      role={label ? "region" : undefined}
    >
      {revealDirectionMarks(text)}
    </pre>
  );
}

const maxUnfoldedLines = 400;
const foldedLines = 60;

/** A diff with added and removed lines in colour. A long diff, such as a lockfile's, starts folded. */
export function Diff({ text }: { text: string }) {
  const [isExpanded, setIsExpanded] = useState(false);
  const lines = revealDirectionMarks(text).split("\n");
  const visibleLines = lines.length > maxUnfoldedLines && !isExpanded ? lines.slice(0, foldedLines) : lines;
  return (
    <>
      <pre className={styles["code"]} tabIndex={0} role="region" aria-label="Changes">
        {visibleLines.map((line, index) => (
          <span key={index} className={styles[getLineKind(line)]}>
            {line === "" ? " " : line}
          </span>
        ))}
      </pre>
      {visibleLines.length < lines.length ? (
        <Button variant="quiet" icon="down" onClick={() => setIsExpanded(true)}>
          Show {formatCount(lines.length - visibleLines.length)} more lines
        </Button>
      ) : null}
    </>
  );
}

/** Shows how many lines a diff adds and removes. */
export function DiffCounts({ diff }: { diff: string }) {
  const kinds = diff.split("\n").map(getLineKind);
  const countLines = (kind: "add" | "del"): number => kinds.filter((candidate) => candidate === kind).length;
  return (
    <span className={styles["changes"]}>
      {countLines("add") > 0 ? <span className={styles["plus"]}>+{countLines("add")}</span> : null}{" "}
      {countLines("del") > 0 ? <span className={styles["minus"]}>−{countLines("del")}</span> : null}
    </span>
  );
}

function getLineKind(line: string): "add" | "del" | "hunk" | "same" {
  if (/^(?:@@|\+\+\+ |--- |diff |index )/.test(line)) return "hunk";
  return line.startsWith("+") ? "add" : line.startsWith("-") ? "del" : "same";
}

/** Converts a tool's input to a diff. Returns null if the input does not describe a change to a file. */
export function toDiff(input: unknown): string | null {
  if (typeof input !== "object" || input === null) return null;
  const field = (key: string): unknown => Reflect.get(input, key);
  for (const key of ["patch", "diff"]) {
    const value = field(key);
    if (typeof value === "string" && /^[-+@]/m.test(value)) return value;
  }
  for (const [oldKey, newKey] of [
    ["old_string", "new_string"],
    ["old", "new"],
    ["search", "replace"],
  ] as const) {
    const [oldText, newText] = [field(oldKey), field(newKey)];
    if (typeof oldText === "string" && typeof newText === "string")
      return [...prefixLines(oldText, "-"), ...prefixLines(newText, "+")].join("\n");
  }
  const content = field("content");
  if (typeof content === "string" && (typeof field("path") === "string" || typeof field("file_path") === "string"))
    return prefixLines(content, "+").join("\n");
  return null;
}

function prefixLines(text: string, sign: string): string[] {
  // A trailing line break does not start another line.
  return text === ""
    ? []
    : text
        .replace(/\n$/, "")
        .split("\n")
        .map((line) => sign + line);
}
