import type { ButtonHTMLAttributes, ReactNode } from "react";
import { Icon, type IconName } from "./icon.tsx";
import styles from "./button.module.css";

export type Look = "plain" | "primary" | "quiet" | "bad";

interface Props extends ButtonHTMLAttributes<HTMLButtonElement> {
  look?: Look;
  icon?: IconName;
  /** Only shown on the button. The page binds the key itself. */
  shortcut?: string;
  children?: ReactNode;
  /** Why the button is disabled. It stays focusable, so that screen readers can read the reason. */
  disabledBecause?: string | null | undefined;
}

export function Button({ look = "plain", icon, shortcut, children, disabledBecause, onClick, ...rest }: Props) {
  const off = Boolean(disabledBecause);
  return (
    <button
      type="button"
      className={buttonClass(look)}
      aria-disabled={off || undefined}
      title={disabledBecause ?? rest.title}
      onClick={off ? undefined : onClick}
      {...rest}
    >
      {icon ? <Icon name={icon} /> : null}
      {children}
      {shortcut ? <kbd aria-hidden="true">{shortcut}</kbd> : null}
    </button>
  );
}

export function IconButton({
  icon,
  label,
  ...rest
}: { icon: IconName; label: string } & ButtonHTMLAttributes<HTMLButtonElement>) {
  return (
    <button type="button" className={styles["bare"]} aria-label={label} title={label} {...rest}>
      <Icon name={icon} />
    </button>
  );
}

export function buttonClass(look: Look = "plain"): string {
  return `${styles["button"]} ${styles[look]}`;
}
