/**
 * API keys. A key gives access to exactly one environment. Each node caches key look-ups by hash; a
 * revoked key stops working on all nodes within a second.
 */
import { Cache, Cause, Context, DateTime, Effect, Exit, Layer, Option } from "effect"
import { SecureRandom } from "effect/crypto"
import { SqlClient } from "effect/sql"
import type { KeyCaller, KeyKind } from "#rpc/auth"
import { InvalidKey } from "#rpc/errors/codes"
import { type DeveloperId, type EnvironmentId, type KeyId, newId } from "#rpc/ids"
import { ProjectRepository } from "#sql/projects/repository"
import { Invalidation } from "#server/platform/invalidation"
import { randomSecret, sha256 } from "#server/platform/secrets"
import { Usage } from "#server/platform/usage"
import { type CreatedProject, makeCreateProject, type SlugTaken } from "./creation.ts"
import { wrongKind } from "./key-kinds.ts"

const keyPattern = /^(?:pk|sk)_[A-Za-z0-9_-]{43}$/

const bothKinds: ReadonlyArray<KeyKind> = ["publishable", "secret"]

const keyPrefixes: Readonly<Record<KeyKind, string>> = { publishable: "pk_", secret: "sk_" }

/** Length of the key prefix that the dashboard shows: `pk_` or `sk_` and five characters. */
const prefixCharacters = 8

/** Bounds how long a node uses a stale entry after a lost invalidation message. */
const cacheSeconds = 60
/** Lifetime of a cached unknown key. It keeps guesses from loading the database. */
const negativeCacheSeconds = 5

/** Looks up environments by API key, and creates and revokes keys. */
export class Environments extends Context.Service<
  Environments,
  {
    /**
     * Returns the environment of a key. Fails with `invalid_key` for a malformed, unknown or revoked
     * key, and for a key of a kind that is not in `needed`.
     */
    readonly findByKey: (
      key: string,
      needed?: ReadonlyArray<KeyKind>
    ) => Effect.Effect<KeyCaller, InvalidKey>
    /** Returns the environment of a key of either kind by the SHA-256 hash of the key. */
    readonly findByHash: (hash: string) => Effect.Effect<KeyCaller, InvalidKey>
    /** Returns the hashes of active keys among the given ones. Reads the database. */
    readonly liveKeys: (hashes: ReadonlyArray<string>) => Effect.Effect<ReadonlySet<string>>
    /**
     * Creates a key and returns it in plain text. The database stores no plain text of a secret key.
     */
    readonly createKey: (
      environmentId: EnvironmentId,
      kind: KeyKind
    ) => Effect.Effect<{ readonly keyId: KeyId; readonly plain: string }>
    /**
     * Revokes a key on all nodes within a second. Returns the time of the first revocation, or none
     * when the environment has no such key.
     */
    readonly revokeKey: (
      environmentId: EnvironmentId,
      keyId: KeyId
    ) => Effect.Effect<Option.Option<DateTime.Utc>>
    /**
     * Creates a project with both environments and a pair of keys for each, in one transaction. The
     * owner becomes its first member. A project without members is visible to nobody. The slug is made
     * from the name, with a random suffix.
     */
    readonly createProject: (name: string, owner?: DeveloperId) => Effect.Effect<CreatedProject>
    /** Creates a project with a slug of the owner's choice. */
    readonly createProjectAs: (
      slug: string,
      name: string,
      owner?: DeveloperId
    ) => Effect.Effect<CreatedProject, SlugTaken>
  }
>()("server/features/projects/environments/Environments") {
  static readonly layer = Layer.effect(
    Environments,
    Effect.gen(function* () {
      const repository = yield* ProjectRepository
      const invalidation = yield* Invalidation
      const random = yield* SecureRandom.SecureRandom
      const sql = yield* SqlClient.SqlClient
      const usage = yield* Usage
      const keyCache = yield* makeKeyCache
      const createKey = Effect.fn("Environments.createKey")(
        function* (environmentId: EnvironmentId, kind: KeyKind) {
          const plain = `${keyPrefixes[kind]}${yield* randomSecret}`
          const keyId = yield* newId.key
          yield* repository.insertKey({
            id: keyId,
            environmentId,
            kind,
            hash: sha256(plain),
            prefix: plain.slice(0, prefixCharacters),
            plain: kind === "publishable" ? plain : null,
            createdAt: yield* DateTime.now
          })
          return { keyId, plain }
        },
        Effect.provideService(SecureRandom.SecureRandom, random)
      )
      return Environments.of({
        findByKey: Effect.fnUntraced(function* (key, needed) {
          const wrong = wrongKind(key, needed ?? bothKinds)
          if (wrong !== undefined) return yield* wrong
          if (!keyPattern.test(key)) return yield* new InvalidKey()
          const caller = yield* Cache.get(keyCache, sha256(key))
          yield* usage.keyUsed(caller.keyId)
          return caller
        }),
        findByHash: (hash) => Cache.get(keyCache, hash),
        liveKeys: repository.liveKeys,
        createKey,
        ...(yield* makeCreateProject(createKey)),
        revokeKey: Effect.fn("Environments.revokeKey")(function* (environmentId, keyId) {
          const now = yield* DateTime.now
          const revoked = yield* repository.revokeKey({ environmentId, keyId, now })
          if (Option.isNone(revoked)) return Option.none()
          const { hash, revokedAt } = revoked.value
          yield* sql.afterCommit(Cache.invalidate(keyCache, hash))
          yield* invalidation.publish({ kind: "key", id: hash })
          return Option.some(revokedAt)
        })
      })
    })
  )
}

/** Per-node cache of key callers by key hash, including unknown keys. */
const makeKeyCache = Effect.gen(function* () {
  const repository = yield* ProjectRepository
  const invalidation = yield* Invalidation
  const keyCache = yield* Cache.makeWith(
    (hash: string) =>
      Effect.flatMap(
        repository.findKey(hash),
        Option.match({
          onNone: () => Effect.fail(new InvalidKey()),
          onSome: (caller: KeyCaller) => Effect.succeed(caller)
        })
      ),
    {
      capacity: 10_000,
      timeToLive: Exit.match({
        onSuccess: () => `${cacheSeconds} seconds` as const,
        // A database fault says nothing about the key: do not cache it.
        onFailure: (cause) => (Cause.hasFails(cause) ? `${negativeCacheSeconds} seconds` : 0)
      })
    }
  )
  yield* invalidation.subscribe(({ id, kind }) => {
    if (kind === "key") return Cache.invalidate(keyCache, id)
    return kind === "everything" ? Cache.invalidateAll(keyCache) : Effect.void
  })
  return keyCache
})
