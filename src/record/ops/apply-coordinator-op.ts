import type { Op, RunOp, StoreResult } from "../../model/store.ts";
import type { Work } from "../query.ts";
import type { Transaction } from "../transaction.ts";
import { addUpload } from "./add-upload.ts";
import { deleteAgent, putAgent } from "./agents.ts";
import { answerQuestion, resumeRun, sendInput } from "./answer-question.ts";
import { claimRuns } from "./claim-runs.ts";
import { claimDeliveries, redeliver, settleDelivery } from "./deliveries.ts";
import { applyHeartbeat } from "./heartbeat.ts";
import { leaveRunner } from "./lose-runner.ts";
import { refuseChain } from "./refuse-chain.ts";
import { registerRunner } from "./register-runner.ts";
import { renewIdle } from "./renew-idle.ts";
import { drainRunner, rescue } from "./rescue.ts";
import { fireSchedule } from "./fire-schedule.ts";
import { saveSession } from "./save-session.ts";
import { deleteSchedule, putSchedule, syncSchedules } from "./schedules.ts";
import { bindSessionId, deleteSession } from "./sessions.ts";
import { stopRuns } from "./stop-runs.ts";
import { putToken, revokeSubject, revokeToken, rotateToken, useEnrolment, useLink } from "./tokens.ts";
import { deleteHook, deleteWebhook, putHook, putWebhook } from "./webhooks.ts";

export type ApplyCoordinatorOp = typeof applyCoordinatorOp;

/** Applies the operations of a coordinator. `exec` needs only those in ./apply-op.ts, so these load separately. */
export function applyCoordinatorOp(tx: Transaction, op: Exclude<Op, RunOp>): Work<StoreResult> {
  switch (op.op) {
    case "register_runner":
      return registerRunner(tx, op);
    case "claim_runs":
      return claimRuns(tx, op);
    case "heartbeat":
      return applyHeartbeat(tx, op);
    case "renew_idle":
      return renewIdle(tx, op);
    case "leave_runner":
      return leaveRunner(tx, op);
    case "drain_runner":
      return drainRunner(tx, op);
    case "stop_runs":
      return stopRuns(tx, op);
    case "rescue":
      return rescue(tx, op);
    case "put_token":
      return putToken(op);
    case "revoke_token":
      return revokeToken(op);
    case "revoke_subject":
      return revokeSubject(tx, op);
    case "use_enrolment":
      return useEnrolment(tx, op);
    case "use_link":
      return useLink(tx, op);
    case "rotate_token":
      return rotateToken(tx, op);
    case "put_agent":
      return putAgent(tx, op);
    case "delete_agent":
      return deleteAgent(op);
    case "bind_session":
      return bindSessionId(tx, op);
    case "delete_session":
      return deleteSession(op);
    case "save_session":
      return saveSession(tx, op);
    case "add_upload":
      return addUpload(tx, op);
    case "answer_question":
      return answerQuestion(tx, op);
    case "resume_run":
      return resumeRun(tx, op);
    case "send_input":
      return sendInput(tx, op);
    case "put_schedule":
      return putSchedule(tx, op);
    case "sync_schedules":
      return syncSchedules(tx, op);
    case "delete_schedule":
      return deleteSchedule(tx, op);
    case "fire_schedule":
      return fireSchedule(tx, op);
    case "put_hook":
      return putHook(op);
    case "delete_hook":
      return deleteHook(op);
    case "put_webhook":
      return putWebhook(op);
    case "delete_webhook":
      return deleteWebhook(op);
    case "claim_deliveries":
      return claimDeliveries(tx, op);
    case "settle_delivery":
      return settleDelivery(tx, op);
    case "redeliver":
      return redeliver(tx, op);
    case "refuse_chain":
      return refuseChain(tx, op);
    default:
      return op satisfies never;
  }
}
