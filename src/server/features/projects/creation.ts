/** Creation of projects: a unique slug, both environments, and a pair of API keys for each. */
import { Data, DateTime, Effect } from "effect"
import { SecureRandom } from "effect/crypto"
import { SqlClient } from "effect/sql"
import type { EnvironmentName, KeyKind } from "#rpc/auth"
import { type DeveloperId, type EnvironmentId, newId, type ProjectId } from "#rpc/ids"
import { MemberRepository, ProjectRepository } from "#sql/projects/repository"
import { randomSecret } from "#server/platform/secrets"

/** API keys of an environment in plain text. The service shows them once, after creation. */
export interface PlainKeys {
  readonly publishableKey: string
  readonly secretKey: string
}

/** New project. */
export interface CreatedProject {
  readonly projectId: ProjectId
  readonly slug: string
  readonly environments: Readonly<Record<EnvironmentName, EnvironmentId>>
  readonly keys: Readonly<Record<EnvironmentName, PlainKeys>>
}

/** Another project has the slug, perhaps a deleted one. */
export class SlugTaken extends Data.TaggedError("SlugTaken") {}

/** Builds a slug that is a valid host name label: `Café Royale` becomes `cafe-royale-x7k2`. */
const slugOf = (name: string, suffix: string): string => {
  const kebab = name
    .normalize("NFKD")
    .toLowerCase()
    .replace(/\p{M}/gu, "")
    .replace(/[^a-z0-9]+/g, "-")
    .slice(0, 40)
    .replace(/^-+|-+$/g, "")
  return `${kebab === "" ? "project" : kebab}-${suffix}`
}

const suffixCharacters = 4
const slugAttempts = 20

/** Builds a slug with a random suffix; a collision is unlikely, and the insert detects it. */
const newSlug = (name: string) =>
  Effect.map(randomSecret, (random) => {
    const suffix = random.toLowerCase().replace(/[^a-z0-9]/g, "")
    return slugOf(name, suffix.slice(0, suffixCharacters))
  })

/** Creates a key in an environment and returns its plain text. */
type CreateKey = (
  environmentId: EnvironmentId,
  kind: KeyKind
) => Effect.Effect<{ readonly plain: string }>

/** Creates projects; `createKey` issues the first keys of each environment. */
export const makeCreateProject = Effect.fnUntraced(function* (createKey: CreateKey) {
  const create = yield* makeCreate(createKey)
  return {
    /** Retries with another random suffix while the slug is taken. */
    createProject: Effect.fn("Environments.createProject")((name: string, owner?: DeveloperId) =>
      Effect.orDie(Effect.retry(create(newSlug(name), name, owner), { times: slugAttempts }))
    ),
    createProjectAs: Effect.fn("Environments.createProjectAs")(
      (slug: string, name: string, owner?: DeveloperId) => create(Effect.succeed(slug), name, owner)
    )
  }
})

const makeCreate = Effect.fnUntraced(function* (createKey: CreateKey) {
  const members = yield* MemberRepository
  const repository = yield* ProjectRepository
  const random = yield* SecureRandom.SecureRandom
  const sql = yield* SqlClient.SqlClient
  return Effect.fnUntraced(
    function* (
      candidate: Effect.Effect<string, never, SecureRandom.SecureRandom>,
      name: string,
      owner: DeveloperId | undefined
    ) {
      const id = yield* newId.project
      const createdAt = yield* DateTime.now
      const slug = yield* candidate
      const isNew = yield* repository.insertProject({ id, name, slug, createdAt })
      if (!isNew) return yield* new SlugTaken()
      const createEnvironment = Effect.fnUntraced(function* (environmentName: EnvironmentName) {
        const environmentId = yield* newId.environment
        const row = { id: environmentId, projectId: id, name: environmentName, createdAt }
        yield* repository.insertEnvironment(row)
        const publishable = yield* createKey(environmentId, "publishable")
        const secret = yield* createKey(environmentId, "secret")
        const keys: PlainKeys = { publishableKey: publishable.plain, secretKey: secret.plain }
        return { id: environmentId, keys }
      })
      if (owner !== undefined) {
        yield* members.insert({ projectId: id, developerId: owner, createdAt })
      }
      const development = yield* createEnvironment("development")
      const production = yield* createEnvironment("production")
      return {
        projectId: id,
        slug,
        environments: { development: development.id, production: production.id },
        keys: { development: development.keys, production: production.keys }
      }
    },
    sql.withTransaction,
    Effect.catchTag("SqlError", Effect.die),
    Effect.provideService(SecureRandom.SecureRandom, random)
  )
})
