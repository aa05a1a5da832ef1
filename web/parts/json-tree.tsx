import { visibleText } from "./visible-text.ts";
import styles from "./json-tree.module.css";

const manyAtOnce = 200;

/** Formatted, foldable JSON. Long lists are shown in parts. */
export function JsonTree({ value, name, depth = 0 }: { value: unknown; name?: string; depth?: number }) {
  const key = name === undefined ? null : <span className={styles["key"]}>{visibleText(name)}: </span>;
  if (typeof value !== "object" || value === null)
    return (
      <div className={styles["leaf"]}>
        {key}
        <span className={styles[value === null ? "null" : typeof value]}>{textOf(value)}</span>
      </div>
    );
  const list = Array.isArray(value);
  const entries = Object.entries(value);
  const [open, close] = list ? ["[", "]"] : ["{", "}"];
  if (entries.length === 0)
    return (
      <div className={styles["leaf"]}>
        {key}
        {open}
        {close}
      </div>
    );
  return (
    <details className={styles["branch"]} open={depth < 2}>
      <summary>
        {key}
        {open}
        <span className="faint">
          {" "}
          {entries.length} {list ? (entries.length === 1 ? "item" : "items") : entries.length === 1 ? "key" : "keys"}{" "}
          {close}
        </span>
      </summary>
      <div className={styles["inside"]}>
        {entries.slice(0, manyAtOnce).map(([inner, one]) => (
          <JsonTree key={inner} name={inner} value={one} depth={depth + 1} />
        ))}
        {entries.length > manyAtOnce ? <span className="faint">and {entries.length - manyAtOnce} more</span> : null}
      </div>
    </details>
  );
}

function textOf(value: unknown): string {
  return visibleText(typeof value === "string" ? JSON.stringify(value) : String(value));
}
