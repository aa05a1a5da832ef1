/**
 * Indexes for what is asked for among many rows. runner_agents_by_name: whoever submits an agent that is not a file asks
 * for one name among those of all runners. runners_lost: what rescue takes up. audit_rows_mismatch: what retention must
 * not lose. runs_by_origin: whether a fork still needs a session.
 * runs_by_demand: which demands retention may forget. *_by_creator: what whoever is no admin sees of all. runs_to_claim_of:
 * what waits for a runner that takes the runs of one agent alone.
 */
export const agentsByName = `
create index runner_agents_by_name on runner_agents (name);
create index runners_lost on runners (runner_id) where status = 'lost';
create index audit_rows_mismatch on audit_rows (no) where kind = 'head_mismatch';
create index runs_by_origin on runs (forked_from) where forked_from is not null;
create index runs_by_demand on runs (demand_id) where demand_id <> 1;
create index runs_by_creator on runs (created_by, run_id);
create index sessions_by_creator on sessions (created_by, session_id);
create index runs_to_claim_of on runs (demand_id, agent_name, priority desc, run_id) where status = 'pending' and blocked_by is null;
`;
