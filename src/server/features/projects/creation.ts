/** Creation of projects: a unique slug, both environments, and a pair of API keys for each. */
import { DateTime, Effect } from "effect"
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
  const members = yield* MemberRepository
  const repository = yield* ProjectRepository
  const random = yield* SecureRandom.SecureRandom
  const sql = yield* SqlClient.SqlClient
  return Effect.fn("Environments.createProject")(
    function* (name: string, owner?: DeveloperId, wanted?: string) {
      const id = yield* newId.project
      const createdAt = yield* DateTime.now
      const candidate = wanted === undefined ? newSlug(name) : Effect.succeed(wanted)
      const insert = Effect.flatMap(candidate, (slug) =>
        Effect.flatMap(repository.insertProject({ id, name, slug, createdAt }), (inserted) =>
          inserted
            ? Effect.succeed(slug)
            : Effect.fail("Failed to insert the project: the slug is taken")
        )
      )
      const slug = yield* Effect.retry(insert, { times: slugAttempts })
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
    Effect.orDie,
    Effect.provideService(SecureRandom.SecureRandom, random)
  )
})
