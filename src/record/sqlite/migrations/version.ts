/** The schema version that this Drover writes. In a file of its own, because an up-to-date store never loads the migrations. */
export const schemaVersion = 17;
