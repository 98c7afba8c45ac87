/** Projects, keys and dashboard views over HTTP: `/v1/projects`. */
import { Effect, Layer } from "effect"
import { Api } from "#rpc/api"
import { CurrentDeveloper, CurrentEnvironment, CurrentKey, CurrentProject } from "#rpc/auth"
import { InProcessApi } from "#rpc/in-process"
import { secondsPerHour } from "#rpc/units"
import { apiGroup, mounted, type RequestOf } from "#server/platform/api-group"
import { takeToken } from "#server/platform/throttle-guard"
import { Throttles } from "#server/platform/throttles"
import { Audit } from "../audit/service.ts"
import { Projects } from "./service.ts"
import { ProjectViews } from "./views.ts"

/** Look-ups of what a key opens, by key. */
const keyDescription = { burst: 600, seconds: 60 } as const

/** Renames of one project. */
const projectRenames = { limit: 20, seconds: secondsPerHour } as const

const KeyGroup = apiGroup(
  Api,
  "key",
  Effect.fn(function* (handlers) {
    const projects = yield* Projects
    const throttles = yield* Throttles
    return handlers.handleAll({
      describe: Effect.fnUntraced(function* () {
        const { keyId, keyKind, keyPrefix, name: environment, projectId } = yield* CurrentKey
        // Each call reads the database, and everybody has the publishable key of a game.
        yield* takeToken(throttles, keyDescription, `key-description:${keyId}`)
        const { id, name, slug } = yield* projects.find(projectId)
        return { kind: keyKind, prefix: keyPrefix, environment, project: { id, name, slug } }
      })
    })
  })
)

const ProjectsGroup = apiGroup(
  Api,
  "projects",
  Effect.fn(function* (handlers) {
    const projects = yield* Projects
    return handlers.handleAll({
      list: Effect.fnUntraced(function* () {
        const { developerId } = yield* CurrentDeveloper
        return {
          projects: yield* projects.list(developerId),
          deleted: yield* projects.listDeleted(developerId)
        }
      }),
      restore: Effect.fnUntraced(function* ({ params }) {
        const { developerId } = yield* CurrentDeveloper
        return { project: yield* projects.restore(developerId, params.projectId) }
      }),
      create: Effect.fnUntraced(function* ({ payload }) {
        const { developerId } = yield* CurrentDeveloper
        return yield* projects.create(developerId, payload.name, payload.slug)
      })
    })
  })
)

const ProjectGroup = apiGroup(
  Api,
  "project",
  Effect.fn(function* (handlers) {
    const audit = yield* Audit
    const projects = yield* Projects
    const throttles = yield* Throttles
    return handlers.handleAll({
      get: Effect.fnUntraced(function* () {
        const { projectId } = yield* CurrentProject
        return { project: yield* projects.find(projectId) }
      }),
      rename: Effect.fnUntraced(function* ({ payload: { name } }) {
        const { projectId } = yield* CurrentProject
        if (yield* projects.isNewName(projectId, name)) {
          yield* takeToken(throttles, projectRenames, `rename:${projectId}`)
        }
        const rename = projects.rename(projectId, name)
        return yield* audit.recordChange(
          { projectId },
          rename,
          ({ changed, previousName, project }) =>
            changed
              ? {
                  action: "project.rename",
                  target: { kind: "project", id: projectId },
                  details: { before: previousName, after: project.name }
                }
              : undefined
        )
      }),
      delete: Effect.fnUntraced(function* () {
        const { projectId } = yield* CurrentProject
        const restorableUntil = yield* projects.remove(projectId)
        return { deleted: true as const, restorableUntil }
      }),
      revokeKey: Effect.fnUntraced(function* ({ params }) {
        const { projectId } = yield* CurrentProject
        return { key: yield* projects.revokeKey(projectId, params.keyId) }
      })
    })
  })
)

const makeViews = Effect.map(ProjectViews, (views) => ({
  overview: Effect.fnUntraced(function* () {
    return yield* views.overview(yield* CurrentEnvironment)
  }),
  players: Effect.fnUntraced(function* ({ query }: RequestOf<"environmentViews", "players">) {
    const { environmentId } = yield* CurrentEnvironment
    return yield* views.players(environmentId, query)
  }),
  player: Effect.fnUntraced(function* ({ params }: RequestOf<"environmentViews", "player">) {
    const { environmentId } = yield* CurrentEnvironment
    return { player: yield* views.player(environmentId, params.playerId) }
  }),
  realtime: Effect.fnUntraced(function* () {
    const { environmentId } = yield* CurrentEnvironment
    return yield* views.realtime(environmentId)
  })
}))

const ViewGroups = mounted(makeViews, (views) => [
  apiGroup(
    Api,
    "environment",
    Effect.fn(function* (handlers) {
      const audit = yield* Audit
      const projects = yield* Projects
      return handlers.handleAll({
        ...views,
        createKey: Effect.fnUntraced(function* ({ endpoint, payload }) {
          const { environmentId } = yield* CurrentEnvironment
          const create = projects.createKey(environmentId, payload.kind)
          return yield* audit.recordOperation(
            endpoint,
            create,
            ({ key: { id, kind, prefix } }) => ({
              target: { kind: "key", id },
              details: { kind, prefix }
            })
          )
        })
      })
    })
  ),
  apiGroup(InProcessApi, "environmentViews", (handlers) => handlers.handleAll(views))
])

/** The groups `key`, `projects`, `project`, `environment` and `environmentViews`. */
export const ProjectsHttp = Layer.mergeAll(KeyGroup, ProjectsGroup, ProjectGroup, ViewGroups).pipe(
  Layer.provide(ProjectViews.layer),
  Layer.provide(Projects.layer)
)
