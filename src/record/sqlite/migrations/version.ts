/**
 * The schema version that this version of Drover writes. It is in a file of its own, because an up-to-date store never
 * loads the migrations.
 */
export const schemaVersion = 17;
