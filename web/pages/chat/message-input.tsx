import { useState } from "react";
import { Button } from "../../parts/button.tsx";
import { toastError } from "../../parts/toasts.tsx";
import styles from "./composer.module.css";

/** The text field of the composer with its buttons. */
export function MessageInput({
  text,
  setText,
  removeSent,
  placeholder,
  sendLabel,
  send,
  fork,
  stop,
}: {
  text: string;
  setText: (text: string) => void;
  /** Removes a message that was sent, but keeps what was typed since. */
  removeSent: (sent: string) => void;
  placeholder: string;
  sendLabel: string;
  send: () => Promise<void>;
  /** Sends the message in a copy of the whole conversation. */
  fork: (() => Promise<void>) | null;
  stop: (() => void) | null;
}) {
  const [sending, setSending] = useState(false);
  const submit = (action: () => Promise<void>): void => {
    if (text.trim() === "" || sending) return;
    setSending(true);
    action()
      .then(() => removeSent(text), toastError)
      .finally(() => setSending(false));
  };
  return (
    <>
      <textarea
        rows={3}
        aria-label="Message"
        placeholder={placeholder}
        value={text}
        onChange={(event) => setText(event.target.value)}
        onKeyDown={(event) => {
          if (event.key !== "Enter" || event.shiftKey || event.nativeEvent.isComposing) return;
          event.preventDefault();
          submit(send);
        }}
      />
      <div className={styles["foot"]}>
        <span className="faint">
          <kbd>Enter</kbd> sends, <kbd>Shift+Enter</kbd> adds a line
        </span>
        {fork ? (
          <Button
            icon="fork"
            disabled={sending}
            onClick={() => submit(fork)}
            title="Send the message in a copy of this conversation"
          >
            Fork
          </Button>
        ) : null}
        {stop ? (
          <Button variant="danger" icon="stop" onClick={stop}>
            Stop
          </Button>
        ) : null}
        <Button
          variant="primary"
          icon={sendLabel === "Fork" ? "fork" : "send"}
          disabled={sending}
          onClick={() => submit(send)}
        >
          {sendLabel}
        </Button>
      </div>
    </>
  );
}
