/** store: one row, made here once. A backup has it too: what is restored from one is the same record. */
export const storeId = `
create table store (store_id text not null);
insert into store values (lower(hex(randomblob(16))));
`;
