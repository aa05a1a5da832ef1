import type { ReactNode } from "react";
import styles from "./table.module.css";

export interface Column<T> {
  head: string;
  cell: (row: T) => ReactNode;
  /** Aligns numbers, ages and buttons to the right. */
  right?: boolean;
  tone?: "dim" | "faint";
  mono?: boolean;
  /** Truncates long text and shows all of it on hover. */
  title?: (row: T) => string;
  /** Hides the column's header from sight but not from screen readers, for columns of buttons. */
  hideHeader?: boolean;
}

/** On a phone each row becomes a block: the first cell is its heading, the others follow with their column headers. */
export function Table<T>({
  label,
  columns,
  rows,
  getKey,
}: {
  label: string;
  columns: readonly Column<T>[];
  rows: readonly T[];
  getKey: (row: T) => string;
}) {
  return (
    <div className={styles["frame"]}>
      <div className={styles["scroll"]} tabIndex={0} role="region" aria-label={label}>
        <table className={styles["table"]}>
          <thead>
            <tr>
              {columns.map(({ head, right, hideHeader }) => (
                <th key={head} scope="col" className={right ? styles["right"] : undefined}>
                  {hideHeader ? <span className="visually-hidden">{head}</span> : head}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rows.map((row) => (
              <tr key={getKey(row)}>
                {columns.map((column) => (
                  <td
                    key={column.head}
                    className={toClassName(column)}
                    title={column.title?.(row)}
                    data-head={column.hideHeader ? undefined : column.head}
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

function toClassName<T>({ right, tone, mono, title }: Column<T>): string {
  return [tone, mono && "mono", right && styles["right"], title && styles["wide"]].filter(Boolean).join(" ");
}

export const tableLink = styles["link"];
