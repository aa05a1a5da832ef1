import type { ReactNode } from "react";
import styles from "./table.module.css";

export interface Column<T> {
  head: string;
  cell: (row: T) => ReactNode;
  /** Numbers, ages and buttons stand on the right. */
  right?: boolean;
  tone?: "dim" | "faint";
  mono?: boolean;
  /** Cut off where it is long, with all of it on hover. */
  title?: (row: T) => string;
  /** Its head is for screen readers only, as that of buttons. */
  quiet?: boolean;
}

/** On a phone each row becomes a block: its first cell is the heading, the others follow with their heads. */
export function Table<T>({
  label,
  columns,
  rows,
  keyOf,
}: {
  label: string;
  columns: readonly Column<T>[];
  rows: readonly T[];
  keyOf: (row: T) => string;
}) {
  return (
    <div className={styles["frame"]}>
      <div className={styles["scroll"]} tabIndex={0} role="region" aria-label={label}>
        <table className={styles["table"]}>
          <thead>
            <tr>
              {columns.map(({ head, right, quiet }) => (
                <th key={head} scope="col" className={right ? styles["right"] : undefined}>
                  {quiet ? <span className="hidden-visually">{head}</span> : head}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rows.map((row) => (
              <tr key={keyOf(row)}>
                {columns.map((column) => (
                  <td
                    key={column.head}
                    className={classOf(column)}
                    title={column.title?.(row)}
                    data-head={column.quiet ? undefined : column.head}
                  >
                    {column.cell(row)}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </div>
  );
}

function classOf<T>({ right, tone, mono, title }: Column<T>): string {
  return [tone, mono && "mono", right && styles["right"], title && styles["wide"]].filter(Boolean).join(" ");
}

export const tableLink = styles["link"];
