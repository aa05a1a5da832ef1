import { expect, test } from "vitest";
import { looksSecret } from "./secret-names.ts";

const secret = [
  "API_KEY", "OPENAI_API_KEY", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "githubtoken", "apiKey",
  "npm_config__authToken", "DB_PASS", "MYSQL_PWD", "PGPASSWORD", "SECRET", "SECRET_KEY_BASE", "DATABASE_URL", "SENTRY_DSN",
  "SLACK_WEBHOOK_URL", "SIGNING_KEY_BASE64", "GITHUB_PAT", "BASIC_AUTH", "GOOGLE_APPLICATION_CREDENTIALS", "SESSION_COOKIE",
  "AZURE_STORAGE_CONNECTION_STRING", "REFRESH_TOKENS", "client-secret", "DROVER_API_KEY", "VAULT_TOKEN_2", "ANTHROPIC_AUTH_TOKEN",
];
const plain = [
  "PATH", "HOME", "PWD", "OLDPWD", "LANG", "TERM", "SSH_AUTH_SOCK", "TOKENIZERS_PARALLELISM", "KEYBOARD", "MAX_OUTPUT_TOKENS",
  "PUBLIC_KEY", "SECRET_FILE", "TOKEN_URL", "AUTH_ENABLED", "XAUTHORITY", "GIT_ASKPASS", "PATTERN", "COMPASS", "MONKEY",
  "DBUS_SESSION_BUS_ADDRESS", "HTTP_PROXY", "PUBLIC_URL", "", "_", "NODE_ENV", "AUTHOR", "DROVER_RUN_ID",
];

test.each(secret)("%s looks like a secret", (name) => expect(looksSecret(name)).toBe(true));
test.each(plain)("%j does not look like a secret", (name) => expect(looksSecret(name)).toBe(false));
