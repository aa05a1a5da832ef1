import type { ButtonHTMLAttributes, ReactNode } from "react";
import { Icon, type IconName } from "./icon.tsx";
import styles from "./button.module.css";

export type Variant = "plain" | "primary" | "quiet" | "danger";

interface Props extends ButtonHTMLAttributes<HTMLButtonElement> {
  variant?: Variant;
  icon?: IconName;
  /** The key shown on the button. The page itself handles the key. */
  shortcut?: string;
  children?: ReactNode;
  /** If set, disables the button and explains why. The button stays focusable, so that screen readers can read the reason. */
  disabledReason?: string | null | undefined;
}

export function Button({ variant = "plain", icon, shortcut, children, disabledReason, onClick, ...rest }: Props) {
  const isDisabled = Boolean(disabledReason);
  return (
    <button
      type="button"
      className={getButtonClass(variant)}
      aria-disabled={isDisabled || undefined}
      title={disabledReason ?? rest.title}
      onClick={isDisabled ? undefined : onClick}
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

export function getButtonClass(variant: Variant = "plain"): string {
  // The plain variant has no rules of its own.
  return [styles["button"], styles[variant]].filter(Boolean).join(" ");
}
