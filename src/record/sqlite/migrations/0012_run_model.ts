/** model: the model that a run requested instead of its agent's own, so that a retry can request the same. */
export const runModel = `
alter table runs add column model text;
`;
