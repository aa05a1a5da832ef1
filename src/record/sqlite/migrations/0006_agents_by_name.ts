/**
 * Indexes for lookups in large tables. runner_agents_by_name: finds an agent by name among those of all runners.
 * runners_lost: the runners that rescue handles. audit_rows_mismatch: the rows that retention must carry forward.
 * runs_by_origin: whether a fork still needs a session. runs_by_demand: which demands retention may remove. *_by_creator:
 * what a user without the admin role may see. runs_to_claim_of: the queue of a runner restricted to one agent.
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
