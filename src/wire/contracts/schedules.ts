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
    responses: ok(
      "A page of the caller's own schedules; for an admin, of all schedules",
      schemas.createPageSchema(scheduleSchema),
    ),
  },
  "POST /schedules": {
    id: "createSchedule",
    summary: "Create a schedule for an agent",
    body: newScheduleSchema,
    responses: {
      201: { description: "The schedule", schema: scheduleSchema },
      404: { description: "No such agent" },
      409: { description: "The caller already has a schedule with this name for the agent" },
    },
  },
  "POST /schedules/preview": {
    id: "previewSchedule",
    summary: "Preview when a schedule would be due, without creating it",
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
    summary: "Change a schedule; a schedule that an agent defines can only be enabled or disabled",
    body: scheduleChangesSchema,
    responses: {
      200: { description: "The schedule", schema: scheduleSchema },
      409: {
        description:
          "An agent defines this schedule, the name is taken, or another request changed it at the same time",
      },
    },
  },
  "DELETE /schedules/{schedule_id}": {
    id: "deleteSchedule",
    summary: "Delete a schedule, but not its runs",
    responses: {
      204: { description: "Deleted" },
      409: { description: "An agent defines this schedule: remove it from the agent's definition, or disable it" },
    },
  },
  "POST /schedules/{schedule_id}/run": {
    id: "runSchedule",
    summary: "Run a schedule now, regardless of its times and its overlap policy",
    responses: {
      201: { description: "The run, pending", schema: schemas.runSchema },
      404: { description: "The schedule's agent no longer exists" },
    },
  },
  "GET /schedules/{schedule_id}/history": {
    id: "getScheduleHistory",
    summary: "List past slots and their outcomes, newest first",
    query: schemas.pageQuerySchema,
    responses: ok("A page of slots; run_status is the current status", schemas.createPageSchema(slotSchema)),
  },
} as const satisfies Record<string, Contract>;
