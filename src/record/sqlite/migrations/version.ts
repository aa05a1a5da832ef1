/** The schema this Drover writes. Apart from the texts, which a store that is up to date never loads. */
export const schemaVersion = 16;
