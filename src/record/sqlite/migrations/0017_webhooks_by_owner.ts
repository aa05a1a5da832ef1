/**
 * webhooks.sealed: the original address and payload, encrypted; null if they hold no secret. The other columns then have
 * marks in place of the secrets.
 *
 * The indexes count and list the hooks and webhooks of one owner.
 */
export const webhooksByOwner = `
alter table webhooks add column sealed text;
create index hooks_by_owner on hooks (created_by, name);
create index webhooks_by_owner on webhooks (created_by, name);
`;
