/** store: one row, created here once. A backup contains it too, so a restored record is the same record. */
export const storeId = `
create table store (store_id text not null);
insert into store values (lower(hex(randomblob(16))));
`;
