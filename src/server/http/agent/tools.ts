/**
 * Tools of the MCP server: what an agent with a secret key can read and change in its environment. The
 * annotations tell a client which tools only read and which ones destroy something.
 */
import { Schema } from "effect"
import { HttpServerRequest } from "effect/http"
import { Tool, Toolkit } from "effect/ai"
import { AppealStatus } from "#rpc/appeals"
import { CurrentActor, CurrentEnvironment } from "#rpc/auth"
import { http as pages } from "#rpc/limits"
import { Ban } from "#rpc/moderation"

/** Reason of a tool's failure, as the agent reads it. */
export class ToolFailure extends Schema.TaggedError<ToolFailure>()("ToolFailure", {
  message: Schema.String
}) {}

const dependencies = [
  CurrentActor,
  CurrentEnvironment,
  HttpServerRequest.HttpServerRequest
] satisfies ReadonlyArray<unknown>

const common = {
  success: Schema.Record(Schema.String, Schema.Unknown),
  failure: ToolFailure,
  dependencies
}

const limit = Schema.optionalKey(
  Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: pages.pageMax }))
)

const page = {
  limit,
  cursor: Schema.optionalKey(Schema.String)
}

const playerId = Schema.String.annotate({ description: "The player's id: pl_..." })

const document = Schema.Json.annotate({ description: "The whole config document" })

const playersSearch = Tool.make("players_search", {
  ...common,
  description: "Find players by id, exact email or the beginning of a name. Without q: the newest.",
  parameters: Schema.Struct({ q: Schema.optionalKey(Schema.String), ...page })
}).annotate(Tool.Readonly, true)

const playerGet = Tool.make("player_get", {
  ...common,
  description: "Read a player: identities, bans, saves, stats and sessions",
  parameters: Schema.Struct({ playerId })
}).annotate(Tool.Readonly, true)

const playerBan = Tool.make("player_ban", {
  ...common,
  description:
    "Ban a player: signs out every device and closes live connections at once. The player sees " +
    "publicNote, never reason. Without durationHours the ban lasts until it is lifted.",
  parameters: Schema.Struct({ playerId, ...Ban.fields })
})
  .annotate(Tool.Destructive, true)
  .annotate(Tool.Idempotent, true)

const playerUnban = Tool.make("player_unban", {
  ...common,
  description: "Lift the ban of a player",
  parameters: Schema.Struct({ playerId })
})
  .annotate(Tool.Destructive, false)
  .annotate(Tool.Idempotent, true)

const appealsList = Tool.make("appeals_list", {
  ...common,
  description: "List the appeals of banned players, open ones first",
  parameters: Schema.Struct({ status: Schema.optionalKey(AppealStatus), ...page })
}).annotate(Tool.Readonly, true)

const appealResolve = Tool.make("appeal_resolve", {
  ...common,
  description: "Accept an appeal, which lifts the ban, or reject it. It cannot be resolved again.",
  parameters: Schema.Struct({
    appealId: Schema.String.annotate({ description: "The id of the appeal: apl_..." }),
    accept: Schema.Boolean,
    response: Schema.optionalKey(Schema.String.annotate({ description: "A message to the player" }))
  })
}).annotate(Tool.Destructive, true)

const configRead = Tool.make("config_read", {
  ...common,
  description: "Read the config of the environment and its version"
}).annotate(Tool.Readonly, true)

const configDiff = Tool.make("config_diff", {
  ...common,
  description:
    "Validate a config document and show how it differs from the one in force. Changes nothing. " +
    "config_push needs the configVersion that this returns.",
  parameters: Schema.Struct({ document })
}).annotate(Tool.Readonly, true)

const configPush = Tool.make("config_push", {
  ...common,
  description:
    "Put a config document in force. Call config_diff first, show the diff to a person, and pass the " +
    "configVersion that it returned: the push fails if somebody else has changed the config meanwhile.",
  parameters: Schema.Struct({
    document,
    configVersion: Schema.Int.annotate({ description: "The version that config_diff returned" })
  })
}).annotate(Tool.Destructive, true)

const featuresList = Tool.make("features_list", {
  ...common,
  description: "List the features, whether each is on, and where the config turns it on"
}).annotate(Tool.Readonly, true)

const roomsList = Tool.make("rooms_list", {
  ...common,
  description: "List the live rooms, queues and channels of the environment, up to 500 of each"
}).annotate(Tool.Readonly, true)

const deploymentsList = Tool.make("deployments_list", {
  ...common,
  description: "List the deployments of the hosted app, newest first",
  parameters: Schema.Struct({ limit })
}).annotate(Tool.Readonly, true)

const deploymentActivate = Tool.make("deployment_activate", {
  ...common,
  description: "Make a deployment live, by its id or version: a promotion or a rollback",
  parameters: Schema.Struct({
    ref: Schema.String.annotate({ description: "A deployment id or a version number" })
  })
})
  .annotate(Tool.Destructive, true)
  .annotate(Tool.Idempotent, true)

export const AgentTools = Toolkit.make(
  playersSearch,
  playerGet,
  playerBan,
  playerUnban,
  appealsList,
  appealResolve,
  configRead,
  configDiff,
  configPush,
  featuresList,
  roomsList,
  deploymentsList,
  deploymentActivate
)
