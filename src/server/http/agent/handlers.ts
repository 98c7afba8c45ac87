/** Handlers of the agent's tools: those of the API, for the environment and actor of the request. */
import { Effect, type Schema } from "effect"
import { CurrentActor, CurrentEnvironment } from "#rpc/auth"
import { diffLines } from "#rpc/config-document/diff"
import { type CodedError, toWire } from "#rpc/errors/wire"
import { throttles as limits } from "#rpc/limits"
import { takeToken } from "#server/platform/throttle-guard"
import { Throttles } from "#server/platform/throttles"
import { Audit } from "#server/features/audit/service"
import { pushEvent } from "#server/features/config/handlers"
import { Configs, etagOf, makeRequireFeature } from "#server/features/config/service"
import { makeFeatures } from "#server/features/functions/feature-list"
import { makeDeploymentHandlers } from "#server/features/hosting/handlers"
import { makeModeration } from "#server/features/moderation/handlers"
import { ProjectViews } from "#server/features/projects/views"
import { AgentTools, ToolFailure } from "./tools.ts"

/** Converts an error of the API to the text of a failed tool. */
const failureOf = (error: CodedError): ToolFailure => {
  const { code, details, message } = toWire(error)
  const more = details === undefined ? "" : ` ${JSON.stringify(details)}`
  return new ToolFailure({ message: `${code}: ${message}${more}` })
}

/** The result of a tool: an object, or the reason of its failure. */
const answer = <A extends object, E extends CodedError, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.mapBoth(effect, {
    onSuccess: (value): Record<string, unknown> => Object.fromEntries(Object.entries(value)),
    onFailure: failureOf
  })

const makeConfigTools = Effect.gen(function* () {
  const audit = yield* Audit
  const configs = yield* Configs
  const throttles = yield* Throttles
  return {
    config_read: () =>
      Effect.gen(function* () {
        const { environmentId } = yield* CurrentEnvironment
        const { document, version } = yield* configs.current(environmentId)
        return { configVersion: version, document }
      }),
    config_diff: ({ document }: { readonly document: Schema.Json }) =>
      answer(
        Effect.gen(function* () {
          const { environmentId, name: environment } = yield* CurrentEnvironment
          yield* takeToken(throttles, limits.configPushes, `config-push:${environmentId}`)
          const warnings = yield* configs.validate({ document, environment })
          const current = yield* configs.current(environmentId)
          const before = { name: `version ${current.version}`, document: current.document }
          const diff = diffLines(before, { name: "new", document })
          return { configVersion: current.version, diff: diff.join("\n"), warnings }
        })
      ),
    config_push: ({
      configVersion,
      document
    }: {
      readonly configVersion: number
      readonly document: Schema.Json
    }) =>
      answer(
        Effect.gen(function* () {
          const caller = yield* CurrentEnvironment
          const { environmentId, name: environment } = caller
          const { id: pushedBy } = yield* CurrentActor
          yield* takeToken(throttles, limits.configPushes, `config-push:${environmentId}`)
          const ifMatch = etagOf(configVersion)
          const push = configs.push({ environmentId, environment, document, pushedBy, ifMatch })
          return yield* audit.recordChange(caller, push, pushEvent)
        })
      )
  }
})

export const AgentToolsLive = AgentTools.toLayer(
  Effect.gen(function* () {
    const deployments = yield* makeDeploymentHandlers
    const features = yield* makeFeatures
    const moderation = yield* makeModeration
    const requireHosting = (yield* makeRequireFeature)("hosting")
    const views = yield* ProjectViews
    return {
      ...(yield* makeConfigTools),
      players_search: (query) =>
        answer(
          Effect.flatMap(CurrentEnvironment, ({ environmentId }) =>
            views.players(environmentId, query)
          )
        ),
      player_get: ({ playerId }) =>
        answer(
          Effect.flatMap(CurrentEnvironment, ({ environmentId }) =>
            views.player(environmentId, playerId)
          )
        ),
      player_ban: ({ playerId, ...payload }) =>
        answer(moderation.ban({ params: { playerId }, payload })),
      player_unban: ({ playerId }) => answer(moderation.unban({ params: { playerId } })),
      appeals_list: (query) => answer(moderation.appeals({ query })),
      appeal_resolve: ({ appealId, ...payload }) =>
        answer(moderation.resolve({ params: { appealId }, payload })),
      features_list: () => answer(features.list()),
      rooms_list: () =>
        answer(
          Effect.flatMap(CurrentEnvironment, ({ environmentId }) => views.realtime(environmentId))
        ),
      deployments_list: (query) =>
        answer(Effect.andThen(requireHosting, deployments.list({ query }))),
      deployment_activate: ({ ref }) =>
        answer(Effect.andThen(requireHosting, deployments.activate({ params: { ref } })))
    }
  })
)
