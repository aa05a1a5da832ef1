import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { api } from "../../data/client.ts";
import { queries } from "../../data/queries.ts";
import { Button } from "../../parts/button.tsx";
import { Card } from "../../parts/card.tsx";
import { getTheme, setTheme, themes } from "../../parts/theme.ts";
import { toastError } from "../../parts/toasts.tsx";
import { Icon } from "../../parts/icon.tsx";
import { Tokens } from "./tokens.tsx";
import styles from "./page.module.css";

export function Page() {
  const me = useQuery(queries.me()).data;
  const [theme, setSelected] = useState(getTheme());
  const signOut = (): void => void api.signIn.end().then(() => location.reload(), toastError);
  return (
    <>
      <h1 style={{ marginBottom: 12 }}>Settings</h1>
      <div className="stack" style={{ maxWidth: 920 }}>
        <Card title="Appearance">
          <div className={styles["themes"]} role="radiogroup" aria-label="Theme">
            {themes.map(({ name, label, icon }) => (
              <label key={name} className={styles["theme"]} data-selected={theme === name || undefined}>
                <input
                  type="radio"
                  name="theme"
                  className="visually-hidden"
                  checked={theme === name}
                  onChange={() => {
                    setTheme(name);
                    setSelected(name);
                  }}
                />
                <Icon name={icon} /> {label}
              </label>
            ))}
          </div>
        </Card>
        {me ? (
          <Card title="You" note={`Drover ${me.version}`}>
            <div className="row wrap">
              <Icon name="user" />
              <span>
                <b>{me.subject}</b>, {me.role}
              </span>
              <span className="dim">
                {me.by === "auth_off" ? "authentication is off on this machine" : "signed in with a link"}
              </span>
              {me.by === "browser" ? (
                <span className="push">
                  <Button icon="signOut" onClick={signOut}>
                    Sign out
                  </Button>
                </span>
              ) : null}
            </div>
          </Card>
        ) : null}
        {me && (me.role === "admin" || me.role === "user") ? (
          <Tokens isAdmin={me.role === "admin"} currentTokenId={me.token_id} />
        ) : null}
      </div>
    </>
  );
}
