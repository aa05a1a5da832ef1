import * as z from "zod";
import {
  newScheduleSchema,
  previewSchema,
  scheduleChangesSchema,
  scheduleSchema,
  slotSchema,
} from "../../model/schedule.ts";
import { type Contract, ok } from "../contract.ts";
import * as schemas from "../schemas.ts";

export const scheduleContracts = {
  "GET /schedules": {
    id: "listSchedules",
    summary: "List schedules with their next and last slots",
    query: schemas.pageQuerySchema.extend({
      agent_name: z.string().min(1).max(400).optional(),
      name: z.string().min(1).max(400).optional(),
    }),
    responses: ok("A page of the caller's own; for an admin of all", schemas.pageOf(scheduleSchema)),
  },
  "POST /schedules": {
    id: "createSchedule",
    summary: "Create a schedule for an agent",
    body: newScheduleSchema,
    responses: {
      201: { description: "The schedule", schema: scheduleSchema },
      404: { description: "No such agent" },
      409: { description: "The caller has a schedule of this name for the agent" },
    },
  },
  "POST /schedules/preview": {
    id: "previewSchedule",
    summary: "Show when a schedule would be due, without creating one",
    body: previewSchema,
    responses: ok("The next slots, in UTC", z.object({ timezone: z.string(), next: z.array(z.string()) })),
  },
  "GET /schedules/{schedule_id}": {
    id: "getSchedule",
    summary: "Get a schedule with its next and last slots",
    responses: ok("The schedule", scheduleSchema),
  },
  "PATCH /schedules/{schedule_id}": {
    id: "changeSchedule",
    summary: "Change a schedule; one that an agent defines can be enabled and disabled",
    body: scheduleChangesSchema,
    responses: {
      200: { description: "The schedule", schema: scheduleSchema },
      409: {
        description: "Defined by an agent, the name is taken, or somebody else has changed it at the same moment",
      },
    },
  },
  "DELETE /schedules/{schedule_id}": {
    id: "deleteSchedule",
    summary: "Delete a schedule; its runs stay",
    responses: {
      204: { description: "Deleted" },
      409: { description: "Defined by an agent: remove it there, or disable it" },
    },
  },
  "POST /schedules/{schedule_id}/run": {
    id: "runSchedule",
    summary: "Run a schedule now, whatever its times and its overlap policy say",
    responses: {
      201: { description: "The run, pending", schema: schemas.runSchema },
      404: { description: "Its agent is gone" },
    },
  },
  "GET /schedules/{schedule_id}/history": {
    id: "getScheduleHistory",
    summary: "List what became of each slot, newest first",
    query: schemas.pageQuerySchema,
    responses: ok("A page of slots; run_status is as of now", schemas.pageOf(slotSchema)),
  },
} as const satisfies Record<string, Contract>;
