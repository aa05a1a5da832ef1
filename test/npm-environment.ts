/** The environment for npm, which may need the certificates that vitest.config.mts keeps from all other processes. */
export function getNpmEnvironment(): Record<string, string | undefined> {
  const certificates = process.env["DROVER_TEST_CERTIFICATES"];
  return { ...process.env, ...(certificates === undefined ? {} : { NODE_EXTRA_CA_CERTS: certificates }) };
}
