/** The pure rules of bans and appeals, tested with random sequences of events. */
import { assert, describe, it } from "@effect/vitest"
import { DateTime, Result } from "effect"
import * as fc from "fast-check"
import { AppealId, EnvironmentId, PlayerId, SanctionId } from "#rpc/ids"
import type { SanctionRow } from "#sql/moderation"
import { appeal, closeExpiredAppeal, resolve } from "#server/features/moderation/appeal-rules"
import { ban, lift } from "#server/features/moderation/bans"
import { isActive } from "#server/features/players/active-ban"

const id = (prefix: string, n: number) => `${prefix}_${String(n).padStart(26, "0")}`

const player = {
  environmentId: EnvironmentId.make(id("env", 0)),
  playerId: PlayerId.make(id("pl", 0))
}

const at = (millis: number) => DateTime.makeUnsafe(millis)

/** Random events, each some time after the previous one. */
const step = fc.record({
  after: fc.nat(100),
  act: fc.oneof(
    fc.record({
      t: fc.constant("ban" as const),
      hours: fc.option(fc.integer({ min: 1, max: 200 }))
    }),
    fc.record({ t: fc.constant("lift" as const) }),
    fc.record({ t: fc.constant("appeal" as const) }),
    fc.record({ t: fc.constant("resolve" as const), accept: fc.boolean() })
  )
})
type Act = Parameters<Parameters<typeof step.map>[0]>[0]["act"]

interface Life {
  readonly last: SanctionRow | undefined
  readonly refusal: string | undefined
}

const begin: Life = { last: undefined, refusal: undefined }

const outcome = (
  last: SanctionRow,
  result: Result.Result<SanctionRow, { readonly _tag: string }>
): Life =>
  Result.isSuccess(result)
    ? { last: result.success, refusal: undefined }
    : { last, refusal: result.failure._tag }

/** Applies events to a player's bans; ids count the steps, and an hour is a millisecond. */
const live = ({ last }: Life, act: Act, n: number, now: DateTime.Utc): Life => {
  if (act.t === "ban") {
    const expiresAt = act.hours === null ? null : DateTime.add(now, { milliseconds: act.hours })
    const next = { ...player, id: SanctionId.make(id("snc", n)), reason: `${n}`, note: null }
    return { last: ban(last, { ...next, expiresAt }, now), refusal: undefined }
  }
  if (last === undefined) return begin
  switch (act.t) {
    case "lift":
      return { last: lift(last, now), refusal: undefined }
    case "appeal":
      return outcome(
        last,
        appeal(last, { id: AppealId.make(id("apl", n)), message: "Please." }, now)
      )
    case "resolve":
      return outcome(last, resolve(last, { accept: act.accept, response: "Well." }, now))
  }
}

const check = (before: Life, after: Life, act: Act, now: DateTime.Utc): void => {
  const was = before.last
  const is = after.last
  const stood = isActive(was, now)
  if (after.refusal !== undefined) assert.strictEqual(is, was, "a refusal changes nothing")
  if (act.t === "ban") {
    assert.isTrue(isActive(is, now))
    assert.strictEqual(is?.id === was?.id, stood, "another ban only when none is in force")
    if (stood) assert.strictEqual(is?.appealId, was?.appealId, "the appeal stays")
  }
  if (act.t === "lift") assert.isFalse(isActive(is, now))
  if (act.t === "appeal" && was !== undefined) {
    const appealed = was.appealId !== null
    const expected = stood ? (appealed ? "already_appealed" : undefined) : "sanction_inactive"
    assert.strictEqual(after.refusal, expected)
  }
  if (act.t === "resolve" && was !== undefined) {
    const open = was.appealStatus === "open" && stood
    assert.strictEqual(after.refusal, open ? undefined : "already_resolved")
    if (open) assert.strictEqual(isActive(is, now), !act.accept)
  }
  if (is === undefined) return
  const shown = closeExpiredAppeal(is, now)
  assert.deepStrictEqual(closeExpiredAppeal(shown, now), shown)
  if (shown.appealStatus === "open")
    assert.isTrue(isActive(is, now), "no open appeal without a ban")
  assert.strictEqual(shown.appealStatus === null, shown.appealId === null)
  assert.strictEqual(
    shown.resolvedAt === null,
    shown.appealStatus !== "accepted" && shown.appealStatus !== "rejected"
  )
  if (was !== undefined && is.id === was.id && !stood) {
    assert.isFalse(isActive(is, now), "what is over never begins again")
  }
}

describe("the rules of bans", () => {
  it("keeps the invariants of bans for any sequence of events", () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 30 }), (steps) => {
        let now = 0
        let life = begin
        steps.forEach(({ act, after }, n) => {
          now += after
          const next = live(life, act, n, at(now))
          check(life, next, act, at(now))
          life = next
        })
      }),
      { numRuns: 2000 }
    )
  })

  it("ends a ban at its expiry millisecond and accepts its open appeal", () => {
    const banned = live(begin, { t: "ban", hours: 10 }, 1, at(0))
    const { last } = live(banned, { t: "appeal" }, 2, at(1))
    if (last === undefined) return assert.fail("Expected a ban")
    assert.isTrue(isActive(last, at(9)))
    assert.isFalse(isActive(last, at(10)))
    assert.deepInclude(closeExpiredAppeal(last, at(10)), {
      appealStatus: "accepted",
      appealResponse: null,
      resolvedAt: at(10)
    })
  })
})
