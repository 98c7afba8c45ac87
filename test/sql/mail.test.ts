/** The outbox is shared fairly: places in it by developer, and turns in sending by environment. */
import { assert, layer } from "@effect/vitest"
import { DateTime, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { type EnvironmentId, newId } from "#rpc/ids"
import { MailRepository } from "#sql/mail"
import { coreOfNode, makeDeveloper, makeTenantsOf, SharedDatabase } from "../support/http-stack.ts"

const limit = 20

/** Stores a mail in an outbox of 20 places. */
const insert = Effect.fnUntraced(function* (environmentId: EnvironmentId) {
  const mails = yield* MailRepository
  const createdAt = yield* DateTime.now
  return yield* mails.insert({
    id: yield* newId.mail,
    environmentId,
    playerId: null,
    purpose: "reset",
    sealed: "x",
    createdAt,
    expiresAt: DateTime.add(createdAt, { hours: 1 }),
    limit
  })
})

/** Stores mails until one is refused; returns how many. */
const fill = Effect.fnUntraced(function* (environmentId: EnvironmentId) {
  for (let count = 0; ; count++) if (!(yield* insert(environmentId))) return count
})

const claim = Effect.fnUntraced(function* (count: number, busy: ReadonlyArray<EnvironmentId>) {
  const mails = yield* MailRepository
  const now = yield* DateTime.now
  const until = DateTime.add(now, { minutes: 2 })
  const claimed = yield* mails.claim({ now, until, limit: count, busy })
  return claimed.map(({ environmentId }) => environmentId)
})

const clear = Effect.flatMap(SqlClient.SqlClient, (sql) => sql`delete from mails`)

const Core = coreOfNode().pipe(Layer.provideMerge(SharedDatabase.layer))

layer(Core, { excludeTestServices: true })("the outbox of all environments", (it) => {
  it.effect("gives the projects of one developer at most as many places as remain free", () =>
    Effect.gen(function* () {
      yield* clear
      const { developerId } = yield* makeDeveloper
      const first = yield* makeTenantsOf(developerId)
      const second = yield* makeTenantsOf(developerId)
      const { developerId: other } = yield* makeDeveloper
      const others = yield* makeTenantsOf(other)
      assert.strictEqual(yield* fill(first.development.environmentId), limit / 2)
      assert.strictEqual(yield* fill(first.production.environmentId), 0)
      assert.strictEqual(yield* fill(second.production.environmentId), 0)
      assert.strictEqual(yield* fill(others.production.environmentId), limit / 4)
      // A project without members is one of its own.
      const alone = yield* makeTenantsOf()
      assert.isAbove(yield* fill(alone.production.environmentId), 0)
    })
  )

  it.effect("sends a mail of each environment in turn, however many one of them has", () =>
    Effect.gen(function* () {
      yield* clear
      const many = (yield* makeTenantsOf()).production.environmentId
      const few = (yield* makeTenantsOf()).production.environmentId
      for (let n = 0; n < 8; n++) assert.isTrue(yield* insert(many))
      for (let n = 0; n < 2; n++) assert.isTrue(yield* insert(few))
      assert.sameMembers(yield* claim(2, []), [many, few])
      // One place is free, and the process is sending four mails of the first environment.
      assert.deepStrictEqual(yield* claim(1, [many, many, many, many]), [few])
      assert.deepStrictEqual(yield* claim(2, [few]), [many, many])
    })
  )
})
