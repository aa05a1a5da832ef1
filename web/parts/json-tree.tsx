import { revealDirectionMarks } from "./reveal-direction-marks.ts";
import styles from "./json-tree.module.css";

const maxEntries = 200;

/** Formatted, foldable JSON. Shows only the first entries of a long list. */
export function JsonTree({ value, name, depth = 0 }: { value: unknown; name?: string; depth?: number }) {
  const key = name === undefined ? null : <span className={styles["key"]}>{revealDirectionMarks(name)}: </span>;
  if (typeof value !== "object" || value === null)
    return (
      <div className={styles["leaf"]}>
        {key}
        <span className={styles[value === null ? "null" : typeof value]}>{formatValue(value)}</span>
      </div>
    );
  const isArray = Array.isArray(value);
  const entries = Object.entries(value);
  const [open, close] = isArray ? ["[", "]"] : ["{", "}"];
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
          {entries.length} {isArray ? (entries.length === 1 ? "item" : "items") : entries.length === 1 ? "key" : "keys"}{" "}
          {close}
        </span>
      </summary>
      <div className={styles["inside"]}>
        {entries.slice(0, maxEntries).map(([childName, child]) => (
          <JsonTree key={childName} name={childName} value={child} depth={depth + 1} />
        ))}
        {entries.length > maxEntries ? <span className="faint">and {entries.length - maxEntries} more</span> : null}
      </div>
    </details>
  );
}

function formatValue(value: unknown): string {
  return revealDirectionMarks(typeof value === "string" ? JSON.stringify(value) : String(value));
}
