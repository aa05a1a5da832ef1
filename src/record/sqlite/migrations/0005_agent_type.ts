/** agent_revs.type: tells whether its runs can be continued, without parsing the body. */
export const agentType = `
alter table agent_revs add column type text not null default '';
update agent_revs set type = json_extract(body, '$.type');
`;
