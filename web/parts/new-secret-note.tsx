import type { ReactNode } from "react";
import { Command } from "./command.tsx";
import styles from "./new-secret-note.module.css";

/** Shows a new secret. Drover returns each secret only once. */
export function NewSecretNote({
  description,
  text,
  copyLabel = "Copy the secret",
  children,
}: {
  description: string;
  text: string;
  copyLabel?: string;
  children?: ReactNode;
}) {
  return (
    <div className={styles["once"]} role="status">
      <p>
        {description} <b>This is the only time it is shown.</b>
      </p>
      <Command text={text} label={copyLabel} />
      {children}
    </div>
  );
}
