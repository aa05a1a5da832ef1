/** agent_revs.type: whether runs of it can be continued, known without a look into the body. */
export const agentType = `
alter table agent_revs add column type text not null default '';
update agent_revs set type = json_extract(body, '$.type');
`;
