/**
 * Reports whether the value of a sensitive name is a secret and not ordinary text. `token: string`,
 * `password=getPassword`, `secret: ${{ secrets.X }}` and `tokens: 123` are ordinary. An unknown value counts as a
 * secret only if it cannot be an identifier, a number, a placeholder, a path or an address: at least six characters,
 * with a digit or a symbol, not only digits. Most patterns look only at the start of the value, so the
 * verdict is the same if redaction later sees only its first part, and redacting twice changes nothing.
 */
export function isLikelySecret(value: string): boolean {
  if (value.length < 6 || !/[0-9!@#$%^*+?]/.test(value) || /^[\d.,:_-]+$/.test(value)) return false;
  return !ordinaryText.test(value);
}

/** Reports whether the value starts like a placeholder, such as `${TOKEN}`, `<token>` or `***`. */
export function isPlaceholder(value: string): boolean {
  return placeholder.test(value);
}

const placeholder = /^(?:\$\{|\$\(|\$[A-Za-z_]|\{\{|%\(|%[A-Z_]{4}|<|\*{3}|x{4}|X{4}|\.{3}|%s|%v|\{[a-z_]*\})/;
const ordinaryText = new RegExp(
  [
    placeholder.source,
    String.raw`^(?:\.{0,2}|~)/[a-z_.-]*/`,
    String.raw`^[a-z]+://`,
    String.raw`^(?:process|os|env|self|this|config|settings|secrets|options|params|args|props|request|req|ctx|vars?)\.`,
    String.raw`^(?:Big)?(?:Ui|I|Floa)n?t\d+`,
    String.raw`^0x[0-9a-fA-F]{1,16}$`,
    String.raw`^[!@#$%^*+?=]+$`,
  ].join("|"),
);

/**
 * Returns the word that marks a name as sensitive. It must be at the end of the name: `token_count` is not sensitive.
 * Redaction marks show only this word, because the rest of the name may belong to another secret.
 */
export function findSensitiveWord(name: string): string | undefined {
  return sensitiveName.exec(name)?.[0].replace(/^[_-]/, "").toLowerCase();
}

const sensitiveName =
  /(?:authorization|passw(?:or)?d|passphrase|pwd|[_-]pass|secret|token|credentials?|_auth|(?:api|access|secret|private|account|signing|encryption|auth|master)[_.-]?key)$/i;
