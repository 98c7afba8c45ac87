/**
 * Projects, environments and keys (spec section 5, decisions 3.1.5, 3.13.3). A key opens exactly one
 * environment. Looking one up is a cache hit on a warm node; a revoked key stops working on all nodes
 * within a second.
 */
import { Cache, Cause, Context, DateTime, Effect, Exit, Layer, Option } from "effect"
import { SecureRandom } from "effect/crypto"
import { SqlClient } from "effect/sql"
import type { KeyCaller, KeyKind } from "#rpc/auth"
import { InvalidKey } from "#rpc/errors/codes"
import { type DeveloperId, type EnvironmentId, type KeyId, newId } from "#rpc/ids"
import { caches } from "#rpc/limits"
import { ProjectRepository } from "#sql/projects/repository"
import { Invalidation } from "#server/platform/invalidation"
import { randomSecret, sha256 } from "#server/platform/secrets"
import { Usage } from "#server/platform/usage"
import { type CreatedProject, makeCreateProject } from "./creation.ts"

const keyForm = /^(?:pk|sk)_[A-Za-z0-9_-]{43}$/

const keyPrefixes: Readonly<Record<KeyKind, string>> = { publishable: "pk_", secret: "sk_" }

/** How many characters of a key may be shown to tell it from others. */
const shownCharacters = 8

/** The second line of defence behind the invalidation: nothing is believed for longer. */
const trustSeconds = 60
const refusalSeconds = 5

/** The environments that keys open, and how keys come and go. */
export class Environments extends Context.Service<
  Environments,
  {
    /** The environment of a key; `invalid_key` when it is missing, unknown or revoked. */
    readonly findByKey: (key: string) => Effect.Effect<KeyCaller, InvalidKey>
    /** A new key in plain text; it is not kept. */
    readonly createKey: (
      environmentId: EnvironmentId,
      kind: KeyKind
    ) => Effect.Effect<{ readonly keyId: KeyId; readonly plain: string }>
    /**
     * Revokes a key, on all nodes within a second, and answers since when it is; none when the
     * environment has no such key.
     */
    readonly revokeKey: (
      environmentId: EnvironmentId,
      keyId: KeyId
    ) => Effect.Effect<Option.Option<DateTime.Utc>>
    /**
     * A project with both environments and a pair of keys for each, all or nothing. Its owner is its
     * first member; nobody sees a project without members.
     */
    readonly createProject: (name: string, owner?: DeveloperId) => Effect.Effect<CreatedProject>
  }
>()("server/features/projects/environments/Environments") {
  static readonly layer = Layer.effect(
    Environments,
    Effect.gen(function* () {
      const rows = yield* ProjectRepository
      const invalidation = yield* Invalidation
      const random = yield* SecureRandom.SecureRandom
      const sql = yield* SqlClient.SqlClient
      const usage = yield* Usage
      const opened = yield* openedKeys
      const createKey = Effect.fn("Environments.createKey")(
        function* (environmentId: EnvironmentId, kind: KeyKind) {
          const plain = `${keyPrefixes[kind]}${yield* randomSecret}`
          const keyId = yield* newId.key
          yield* rows.insertKey({
            id: keyId,
            environmentId,
            kind,
            hash: sha256(plain),
            prefix: plain.slice(0, shownCharacters),
            plain: kind === "publishable" ? plain : null,
            createdAt: yield* DateTime.now
          })
          return { keyId, plain }
        },
        Effect.provideService(SecureRandom.SecureRandom, random)
      )
      return Environments.of({
        findByKey: (key) =>
          keyForm.test(key)
            ? Effect.tap(Cache.get(opened, sha256(key)), ({ keyId }) => usage.keyUsed(keyId))
            : Effect.fail(new InvalidKey()),
        createKey,
        createProject: yield* makeCreateProject(createKey),
        revokeKey: Effect.fn("Environments.revokeKey")(function* (environmentId, keyId) {
          const now = yield* DateTime.now
          const revoked = yield* rows.revoke({ environmentId, keyId, now })
          if (Option.isNone(revoked)) return Option.none()
          const { hash, revokedAt } = revoked.value
          yield* sql.afterCommit(Cache.invalidate(opened, hash))
          yield* invalidation.publish({ kind: "key", id: hash })
          return Option.some(revokedAt)
        })
      })
    })
  )
}

/** What keys open, by hash; refusals are kept for a moment, so that guessing costs no database. */
const openedKeys = Effect.gen(function* () {
  const rows = yield* ProjectRepository
  const invalidation = yield* Invalidation
  const opened = yield* Cache.makeWith(
    (hash: string) =>
      Effect.flatMap(
        rows.open(hash),
        Option.match({
          onNone: () => Effect.fail(new InvalidKey()),
          onSome: (caller: KeyCaller) => Effect.succeed(caller)
        })
      ),
    {
      capacity: caches.keys,
      timeToLive: Exit.match({
        onSuccess: () => `${trustSeconds} seconds` as const,
        // A fault of the database says nothing about the key.
        onFailure: (cause) => (Cause.hasFails(cause) ? `${refusalSeconds} seconds` : 0)
      })
    }
  )
  yield* invalidation.subscribe(({ id, kind }) => {
    if (kind === "key") return Cache.invalidate(opened, id)
    return kind === "everything" ? Cache.invalidateAll(opened) : Effect.void
  })
  return opened
})
