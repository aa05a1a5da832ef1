import { type ReactNode, useId } from "react";
import styles from "./form.module.css";

export interface Input {
  id: string;
  "aria-invalid": true | undefined;
  "aria-describedby": string | undefined;
}

/** A labelled input with its validation message below it, or its help text if it has none. */
export function Field({
  label,
  help,
  error,
  required = false,
  children,
}: {
  label: string;
  help?: ReactNode;
  error?: string | undefined;
  required?: boolean;
  children: (input: Input) => ReactNode;
}) {
  const id = useId();
  const hint = error ?? help;
  return (
    <div className={styles["field"]}>
      <label htmlFor={id}>
        {label}
        {required ? <span className={styles["required"]}> required</span> : null}
      </label>
      {children({
        id,
        "aria-invalid": error === undefined ? undefined : true,
        "aria-describedby": hint === undefined ? undefined : `${id}-hint`,
      })}
      {hint === undefined ? null : (
        <p id={`${id}-hint`} className={error === undefined ? styles["help"] : styles["fault"]}>
          {hint}
        </p>
      )}
    </div>
  );
}
