import { visibleText } from "./visible-text.ts";
import styles from "./code.module.css";

/** What a machine said, as it said it. */
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

/** Lines that begin with + and - in colour. Long ones fold. */
export function Diff({ text }: { text: string }) {
  const lines = visibleText(text).split("\n");
  const shown = lines.length > 400 ? lines.slice(0, 60) : lines;
  return (
    <pre className={styles["code"]} tabIndex={0} role="region" aria-label="Changes">
      {shown.map((line, index) => (
        <span
          key={index}
          className={
            line.startsWith("+")
              ? styles["add"]
              : line.startsWith("-")
                ? styles["del"]
                : line.startsWith("@@")
                  ? styles["hunk"]
                  : styles["same"]
          }
        >
          {line === "" ? " " : line}
        </span>
      ))}
      {shown.length < lines.length ? <span className="faint">{lines.length - shown.length} more lines</span> : null}
    </pre>
  );
}

/** As a diff, where a tool's input says what it would change. */
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
  // the line break at the end of a file begins no line
  return text === ""
    ? []
    : text
        .replace(/\n$/, "")
        .split("\n")
        .map((line) => sign + line);
}
