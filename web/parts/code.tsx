import { useState } from "react";
import { Button } from "./button.tsx";
import { count } from "./numbers.ts";
import { visibleText } from "./visible-text.ts";
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
      {visibleText(text)}
    </pre>
  );
}

const manyLines = 400;
const fewLines = 60;

/** A diff with added and removed lines in colour. A long diff, such as a lockfile's, starts folded. */
export function Diff({ text }: { text: string }) {
  const [all, setAll] = useState(false);
  const lines = visibleText(text).split("\n");
  const shown = lines.length > manyLines && !all ? lines.slice(0, fewLines) : lines;
  return (
    <>
      <pre className={styles["code"]} tabIndex={0} role="region" aria-label="Changes">
        {shown.map((line, index) => (
          <span key={index} className={styles[kindOf(line)]}>
            {line === "" ? " " : line}
          </span>
        ))}
      </pre>
      {shown.length < lines.length ? (
        <Button look="quiet" icon="down" onClick={() => setAll(true)}>
          Show {count(lines.length - shown.length)} more lines
        </Button>
      ) : null}
    </>
  );
}

/** The number of lines a diff adds and removes. */
export function Changes({ diff }: { diff: string }) {
  const kinds = diff.split("\n").map(kindOf);
  const number = (kind: "add" | "del"): number => kinds.filter((one) => one === kind).length;
  return (
    <span className={styles["changes"]}>
      {number("add") > 0 ? <span className={styles["plus"]}>+{number("add")}</span> : null}{" "}
      {number("del") > 0 ? <span className={styles["minus"]}>−{number("del")}</span> : null}
    </span>
  );
}

function kindOf(line: string): "add" | "del" | "hunk" | "same" {
  if (/^(?:@@|\+\+\+ |--- |diff |index )/.test(line)) return "hunk";
  return line.startsWith("+") ? "add" : line.startsWith("-") ? "del" : "same";
}

/** Builds a diff from a tool's input if the input describes a change to a file. */
export function diffOf(input: unknown): string | null {
  if (typeof input !== "object" || input === null) return null;
  const at = (key: string): unknown => Reflect.get(input, key);
  for (const key of ["patch", "diff"]) {
    const value = at(key);
    if (typeof value === "string" && /^[-+@]/m.test(value)) return value;
  }
  for (const [before, after] of [
    ["old_string", "new_string"],
    ["old", "new"],
    ["search", "replace"],
  ] as const) {
    const [old, now] = [at(before), at(after)];
    if (typeof old === "string" && typeof now === "string")
      return [...marked(old, "-"), ...marked(now, "+")].join("\n");
  }
  const content = at("content");
  if (typeof content === "string" && (typeof at("path") === "string" || typeof at("file_path") === "string"))
    return marked(content, "+").join("\n");
  return null;
}

function marked(text: string, sign: string): string[] {
  // A trailing line break does not start another line.
  return text === ""
    ? []
    : text
        .replace(/\n$/, "")
        .split("\n")
        .map((line) => sign + line);
}
