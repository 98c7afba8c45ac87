/** API keys: look-up, revocation on all nodes, storage and project slugs. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer, Option, Schedule } from "effect"
import { SqlClient } from "effect/sql"
import { newId } from "#rpc/ids"
import { Configs } from "#server/features/config/service"
import { Environments } from "#server/features/projects/environments"
import {
  buildAnother,
  configure,
  coreOfNode,
  makeTenants,
  SharedDatabase
} from "../../support/http-stack.ts"

const Core = coreOfNode().pipe(Layer.provideMerge(SharedDatabase.layer))

/** A second node on the same database. */
const otherNode = Effect.map(
  buildAnother(coreOfNode()),
  (context) =>
    <A, E>(effect: Effect.Effect<A, E, Environments | Configs>) =>
      Effect.provideContext(effect, context)
)

const codeOf = (key: string) =>
  Effect.flatMap(Environments, (environments) =>
    Effect.match(environments.findByKey(key), {
      onSuccess: ({ name }) => name,
      onFailure: (error) => error._tag
    })
  )

layer(Core)("keys", (it) => {
  it.effect("resolves each key to its environment and kind", () =>
    Effect.gen(function* () {
      const environments = yield* Environments
      const { environments: ids, keys, projectId } = yield* environments.createProject("One")
      for (const name of ["development", "production"] as const) {
        for (const keyKind of ["publishable", "secret"] as const) {
          const plain = keys[name][`${keyKind}Key`]
          assert.match(plain, keyKind === "secret" ? /^sk_[\w-]{43}$/ : /^pk_[\w-]{43}$/)
          const { keyId, keyPrefix, ...opened } = yield* environments.findByKey(plain)
          assert.match(keyId, /^key_/)
          assert.strictEqual(keyPrefix, plain.slice(0, 8))
          assert.deepStrictEqual(opened, { projectId, environmentId: ids[name], name, keyKind })
        }
      }
    })
  )

  it.effect("rejects any text that is no key with invalid_key", () =>
    Effect.gen(function* () {
      const { development } = yield* makeTenants
      const { publishableKey } = development
      const others = [
        "",
        "pk_",
        publishableKey.slice(0, -1),
        `${publishableKey}A`,
        ` ${publishableKey}`,
        publishableKey.replace("pk_", "sk_"),
        publishableKey.replace("pk_", "kds_"),
        `pk_${"A".repeat(43)}`,
        `pk_${"A".repeat(100_000)}`,
        "pk_' or 1=1 --"
      ]
      for (const key of others) assert.strictEqual(yield* codeOf(key), "invalid_key", key)
    })
  )

  it.effect("disables a revoked key on all nodes and keeps the other keys working", () =>
    Effect.gen(function* () {
      const environments = yield* Environments
      const there = yield* otherNode
      const { development } = yield* makeTenants
      const { environmentId, publishableKey } = development
      const extra = yield* environments.createKey(environmentId, "publishable")
      assert.strictEqual(yield* there(codeOf(extra.plain)), "development")
      assert.strictEqual(yield* codeOf(extra.plain), "development")

      const foreign = yield* newId.environment
      assert.isTrue(Option.isNone(yield* environments.revokeKey(foreign, extra.keyId)))
      const revokedAt = yield* environments.revokeKey(environmentId, extra.keyId)
      assert.isTrue(Option.isSome(revokedAt))
      assert.strictEqual(yield* codeOf(extra.plain), "invalid_key")
      yield* there(codeOf(extra.plain)).pipe(Effect.repeat({ until: (it) => it === "invalid_key" }))
      assert.strictEqual(yield* codeOf(publishableKey), "development")
      assert.deepStrictEqual(yield* environments.revokeKey(environmentId, extra.keyId), revokedAt)
    })
  )

  it.effect("stores the plain text of publishable keys only", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { development } = yield* makeTenants
      const rows = yield* sql`
        select kind, plain from keys where environment_id = ${development.environmentId}
        order by kind`
      assert.deepStrictEqual(rows, [
        { kind: "publishable", plain: development.publishableKey },
        { kind: "secret", plain: null }
      ])
    })
  )

  it.effect("builds unique slugs that are valid host name labels", () =>
    Effect.gen(function* () {
      const environments = yield* Environments
      const names = ["Café Royale!", "  --  ", "東京", "a".repeat(80), "www", "www"]
      const slugs = yield* Effect.forEach(names, (name) =>
        Effect.map(environments.createProject(name), ({ slug }) => slug)
      )
      assert.match(slugs[0] ?? "", /^cafe-royale-[a-z0-9]{4}$/)
      for (const slug of slugs) {
        assert.match(slug, /^[a-z0-9](?:-?[a-z0-9]+)*$/)
        assert.isAtMost(slug.length, 45)
      }
      assert.lengthOf(new Set(slugs), slugs.length)
    })
  )
})

layer(Core, { excludeTestServices: true })("invalidation", (it) => {
  it.effect("reloads changes that a node missed while its listening session was down", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { development } = yield* makeTenants
      const { environmentId } = development
      const configs = yield* Configs
      yield* configs.current(environmentId)
      // End the listening session, then change the config without a notification.
      const ended = yield* sql`
        select pg_terminate_backend(pid, 5000) from pg_stat_activity
        where datname = current_database() and query ilike 'listen%'`
      assert.isAtLeast(ended.length, 1)
      yield* sql`
        insert into configs (environment_id, version, document, pushed_by, created_at)
        values (${environmentId}, 1, '{"features":{"saves":true}}', 'test', now())`
      const current = yield* configs
        .current(environmentId)
        .pipe(
          Effect.repeat({ until: ({ version }) => version === 1, schedule: Schedule.spaced(10) })
        )
      assert.isTrue(current.config.features.saves)
      yield* configure(development, { features: { saves: false } })
      assert.strictEqual((yield* configs.current(environmentId)).version, 2)
    })
  )
})
