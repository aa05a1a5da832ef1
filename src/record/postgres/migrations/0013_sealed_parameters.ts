/**
 * run_bodies.sealed: the encrypted parameters and prompt of a run whose stored ones are redacted, kept until it ends.
 * runs.sealed: 1 if the run has such values. store.restored_at: when this record was last restored with its tokens revoked.
 */
export const sealedParameters = `
alter table runs add column sealed integer not null default 0;
alter table run_bodies add column sealed text collate "C";
alter table store add column restored_at text collate "C";
`;
