/**
 * Whether a variable of this name probably holds a secret. Compares whole words: npm_config__authToken and githubtoken
 * match, but TOKENIZERS_PARALLELISM, KEYBOARD and MAX_OUTPUT_TOKENS do not.
 */
export function looksSecret(name: string): boolean {
  // Called for every variable of every command, so most names must be decided quickly.
  if (!candidatePattern.test(name)) return false;
  const words = splitIntoWords(name);
  if (words.length === 0) return false;
  if (holdsLogin(words)) return true;
  while (words.length > 1 && encodingEndings.has(words[words.length - 1]!)) words.pop();
  const last = words[words.length - 1]!;
  if (referenceEndings.has(last)) return false;
  if (secretEndings.has(last) && !(last === "KEY" && words.includes("PUBLIC"))) return true;
  // PWD and OLDPWD are directories, but MYSQL_PWD is not.
  if (last === "PWD" && words.length > 1) return true;
  if (last === "TOKENS" && words.some((word) => amountWords.has(word))) return false;
  return words.some(
    (word, index) => secretWordPattern.test(word) || (word === "KEY" && keyKinds.has(words[index - 1] ?? "")),
  );
}

function splitIntoWords(name: string): string[] {
  return name
    .replace(/([a-z0-9])([A-Z])/g, "$1_$2")
    .toUpperCase()
    .split(/[^A-Z0-9]+/)
    .filter((word) => word !== "");
}

/** Whether these words name a URL that usually contains a password, or is secret itself. */
function holdsLogin(words: readonly string[]): boolean {
  const last = words[words.length - 1]!;
  if (last === "DSN" || words.join("_").includes("CONNECTION_STRING")) return true;
  return (last === "URL" || last === "URI") && words.some((word) => loginUrls.has(word));
}

const candidatePattern = /KEY|TOKEN|SECRET|PASS|PWD|AUTH|CRED|COOKIE|JWT|BEARER|PAT(?!H)|DSN|UR[LI]|CONNECTION/i;
const secretWordPattern =
  /(TOKEN|TOKENS|SECRET|SECRETS|PASSWORD|PASSWORDS|PASSWD|PASSPHRASE|APIKEY|CREDENTIAL|CREDENTIALS|CREDS|PRIVKEY|AUTHORIZATION)$/;
const secretEndings = new Set([
  "KEY",
  "KEYS",
  "PASS",
  "AUTH",
  "PAT",
  "COOKIE",
  "COOKIES",
  "JWT",
  "BEARER",
  "PASSCODE",
  "SSHPASS",
]);
const keyKinds = new Set(["API", "ACCESS", "PRIVATE", "SIGNING", "ENCRYPTION", "MASTER"]);
const loginUrls = new Set([
  "DATABASE",
  "DB",
  "POSTGRES",
  "POSTGRESQL",
  "PG",
  "MYSQL",
  "MARIADB",
  "MONGO",
  "MONGODB",
  "REDIS",
  "AMQP",
  "RABBITMQ",
  "WEBHOOK",
]);
/** Endings that describe the encoding of a value. */
const encodingEndings = new Set(["BASE64", "B64", "HEX", "PEM", "JSON", "VALUE", "DATA", "1", "2", "3"]);
/** Endings of names that refer to a secret without holding it. */
const referenceEndings = new Set([
  "FILE",
  "PATH",
  "DIR",
  "SOCK",
  "TTL",
  "TIMEOUT",
  "EXPIRY",
  "EXPIRES",
  "URL",
  "ENDPOINT",
  "NAME",
  "TYPE",
  "LENGTH",
  "ENABLED",
]);
const amountWords = new Set(["MAX", "MIN", "LIMIT", "COUNT", "BUDGET", "NUM"]);
