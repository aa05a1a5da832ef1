import type { QueuedMessage } from "../../data/message-queue.ts";
import { Button, IconButton } from "../../parts/button.tsx";
import { Icon } from "../../parts/icon.tsx";
import styles from "./composer.module.css";

/** The queued messages. `getStatusLabel` says when unsent messages will be sent. */
export function Queue({
  messages,
  getStatusLabel,
  sendNow,
  withdraw,
}: {
  messages: readonly QueuedMessage[];
  getStatusLabel: string;
  sendNow: ((message: QueuedMessage) => void) | null;
  withdraw: (message: QueuedMessage) => void;
}) {
  if (messages.length === 0) return null;
  return (
    <ol className={styles["queue"]} aria-label="Queued messages">
      {messages.map((message) => (
        <li key={message.id}>
          <Icon name={message.sent ? "send" : "wait"} />
          <span className="ellipsis grow">{message.text}</span>
          <span className="faint">{message.sent ? "sent, not read yet" : getStatusLabel}</span>
          {message.sent ? null : (
            <>
              {sendNow ? (
                <Button variant="quiet" onClick={() => sendNow(message)}>
                  Send now
                </Button>
              ) : null}
              <IconButton icon="close" label={`Withdraw ${message.text}`} onClick={() => withdraw(message)} />
            </>
          )}
        </li>
      ))}
    </ol>
  );
}
