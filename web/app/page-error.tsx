import { Link } from "@tanstack/react-router";
import { describeError } from "../data/client.ts";
import { Card } from "../parts/card.tsx";

export function PageError({ error }: { error: unknown }) {
  const { message, code, next } = describeError(error);
  return (
    <Card title="This page could not be shown" note={code}>
      <p role="alert">{message}</p>
      {next ? <p className="dim">{next}</p> : null}
    </Card>
  );
}

export function NotFound() {
  return (
    <Card title="Page not found">
      <p>
        <Link to="/">Go to the overview</Link>
      </p>
    </Card>
  );
}
