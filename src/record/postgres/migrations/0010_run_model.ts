/** model: what a run was asked to use in place of its agent's own model, so that a retry can ask for the same. */
export const runModel = `
alter table runs add column model text collate "C";
`;
