import { describeError } from "../data/client.ts";
import { Icon } from "./icon.tsx";
import styles from "./error-note.module.css";

/** An error's message, code and suggested next step. */
export function ErrorNote({ error }: { error: unknown }) {
  const { message, code, next } = describeError(error);
  return (
    <div className={styles["note"]} role="alert">
      <Icon name="warn" />
      <div>
        <p>
          {message} {code ? <code className="faint">{code}</code> : null}
        </p>
        {next ? <p className="dim">{next}</p> : null}
      </div>
    </div>
  );
}
