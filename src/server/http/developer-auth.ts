/**
 * Middleware for developers: verifies the session of a `kds_` token, and that the developer is a member
 * of the project in the path. Other projects get 404, as if they did not exist.
 */
import { Context, Effect, Layer, Option, Redacted, Schema } from "effect"
import { HttpRouter, HttpServerRequest } from "effect/http"
import {
  type Actor,
  CurrentActor,
  CurrentDeveloper,
  CurrentEnvironment,
  CurrentProject,
  type DeveloperCaller,
  OptionalDeveloper,
  DeveloperSession,
  EnvironmentMember,
  EnvironmentName,
  SessionOnly,
  OpenToDeleted,
  OptionalDeveloperSession,
  ProjectMember
} from "#rpc/auth"
import { NotFound } from "#rpc/errors/codes"
import { ProjectId } from "#rpc/ids"
import { MemberRepository } from "#sql/projects/repository"
import { provideCredentials } from "#server/platform/credential-check"
import { takeToken } from "#server/platform/throttle-guard"
import { Throttles } from "#server/platform/throttles"
import { DeveloperSessions } from "#server/features/developers/sessions"
import { takeCallerRate } from "./caller-rate.ts"
import { makeDashboardSession } from "./dashboard-session.ts"

/** Requests of one developer session (`kds_`). */
const developerApi = { burst: 600, seconds: 60 } as const

const isProjectId = Schema.is(ProjectId)
const isEnvironmentName = Schema.is(EnvironmentName)

const actorOf = ({ developerId, email, name }: DeveloperCaller): Actor => ({
  kind: "developer",
  id: developerId,
  name: name ?? email
})

/** Requires a developer session, and rate limits the developer. */
const DeveloperSessionLive = Layer.effect(
  DeveloperSession,
  Effect.gen(function* () {
    const sessions = yield* DeveloperSessions
    const dashboard = yield* makeDashboardSession
    const throttles = yield* Throttles
    return DeveloperSession.of({
      developerSession: Effect.fnUntraced(function* (handler, { credential }) {
        const request = yield* HttpServerRequest.HttpServerRequest
        const bearer = Redacted.value(credential)
        const token = bearer === "" ? dashboard.tokenOf(request) : bearer
        const verified = sessions.verify(token ?? "")
        const developer = yield* verified
        yield* takeToken(throttles, developerApi, `developer:${developer.developerId}`)
        return yield* handler.pipe(
          Effect.provideService(CurrentDeveloper, developer),
          Effect.provideService(CurrentActor, actorOf(developer)),
          provideCredentials(Effect.asVoid(verified))
        )
      })
    })
  })
)

const bearer = /^Bearer +(\S+)$/i

/** The developer of a valid session, if any. */
const OptionalDeveloperSessionLive = Layer.effect(
  OptionalDeveloperSession,
  Effect.gen(function* () {
    const sessions = yield* DeveloperSessions
    const dashboard = yield* makeDashboardSession
    return OptionalDeveloperSession.of(
      Effect.fnUntraced(function* (handler) {
        const request = yield* HttpServerRequest.HttpServerRequest
        const { authorization } = request.headers
        const token =
          authorization === undefined ? dashboard.tokenOf(request) : bearer.exec(authorization)?.[1]
        const developer = yield* Effect.option(sessions.verify(token ?? ""))
        return yield* Effect.provideService(
          handler,
          OptionalDeveloper,
          Option.getOrUndefined(developer)
        )
      })
    )
  })
)

const keyForm = /^[ps]k_[A-Za-z0-9_-]{43}$/

/** Refuses a key of an environment, unless a developer session comes with it. */
const SessionOnlyLive = Layer.succeed(
  SessionOnly,
  SessionOnly.of(
    Effect.fnUntraced(function* (handler) {
      const { headers } = yield* HttpServerRequest.HttpServerRequest
      const hasKey = keyForm.test(headers["x-svc-key"] ?? "")
      const hasSession = headers["authorization"]?.startsWith("Bearer kds_") === true
      return yield* hasKey && !hasSession ? new NotFound() : handler
    })
  )
)

/** Fails with `not_found` for what a developer may not see, as if it did not exist. */
const orNotFound = <A, R>(look: Effect.Effect<Option.Option<A>, never, R>) =>
  Effect.flatMap(look, (found) =>
    Option.isSome(found) ? Effect.succeed(found.value) : Effect.fail(new NotFound())
  )

const ProjectMemberLive = Layer.effect(
  ProjectMember,
  Effect.gen(function* () {
    const members = yield* MemberRepository
    return ProjectMember.of(
      Effect.fnUntraced(function* (handler, { endpoint }) {
        const { developerId } = yield* CurrentDeveloper
        const { projectId } = yield* HttpRouter.params
        if (!isProjectId(projectId)) return yield* new NotFound()
        const evenDeleted = Context.get(endpoint.annotations, OpenToDeleted)
        const find = orNotFound(members.project({ developerId, projectId, evenDeleted }))
        const found = yield* find
        return yield* handler.pipe(
          Effect.provideService(CurrentProject, found),
          provideCredentials(Effect.asVoid(find))
        )
      })
    )
  })
)

const EnvironmentMemberLive = Layer.effect(
  EnvironmentMember,
  Effect.gen(function* () {
    const members = yield* MemberRepository
    const throttles = yield* Throttles
    return EnvironmentMember.of(
      Effect.fnUntraced(function* (handler, { endpoint }) {
        const { developerId } = yield* CurrentDeveloper
        const { env, projectId } = yield* HttpRouter.params
        if (!isProjectId(projectId) || !isEnvironmentName(env)) return yield* new NotFound()
        const find = orNotFound(members.environment({ developerId, projectId, env }))
        const found = yield* find
        yield* takeCallerRate(throttles, endpoint, found.environmentId, undefined)
        return yield* handler.pipe(
          Effect.provideService(CurrentEnvironment, found),
          provideCredentials(Effect.asVoid(find))
        )
      })
    )
  })
)

/** All developer middleware. */
export const DeveloperAuthLive = Layer.mergeAll(
  DeveloperSessionLive,
  OptionalDeveloperSessionLive,
  SessionOnlyLive,
  ProjectMemberLive,
  EnvironmentMemberLive
)
