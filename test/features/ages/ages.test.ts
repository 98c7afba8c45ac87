/** Age bands: declarations of players, signals of platforms, settings of operators. */
import { assert, describe, it, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import * as fc from "fast-check"
import { type AgeBand, type AgeSignal, ageBandOf, bandOfSignal } from "#rpc/ages"
import { at, guest, type TestPlayer, type TestTarget } from "#testing/players"
import {
  addressOfNode,
  configure,
  makeTenants,
  nodeWith,
  SharedDatabase
} from "../../support/http-stack.ts"
import { codeOf, operate, play } from "../../support/moderation-calls.ts"

const Node = nodeWith().pipe(Layer.provideMerge(SharedDatabase.layer))

type Audience = Parameters<typeof ageBandOf>[0]

/** A new player in an environment with an audience. */
const playerOf = Effect.fnUntraced(function* (audience: Audience) {
  const url = yield* addressOfNode
  const { development } = yield* makeTenants
  yield* configure(development, { audience })
  const target: TestTarget = { url, ...development }
  return { target, ada: yield* guest(target, "Ada") }
})

const profile = (target: TestTarget, player: TestPlayer) =>
  Effect.map(play(target, player, "GET", "social/profile"), ({ body }) => body)

const declare = (target: TestTarget, player: TestPlayer, band: unknown) =>
  play(target, player, "PUT", "social/age", { band })

const signal = (target: TestTarget, player: TestPlayer, said: object) =>
  play(target, player, "POST", "players/me/age-signal", { platform: "ios", ...said })

const bands = ["child", "teen", "adult"] as const

const rank = (band: AgeBand): number => bands.indexOf(band)

describe("an age signal", () => {
  const cases: ReadonlyArray<readonly [Omit<AgeSignal, "platform">, AgeBand | undefined]> = [
    [{ status: "declared", lowerBound: 0, upperBound: 12 }, "child"],
    [{ status: "declared", lowerBound: 13, upperBound: 15 }, "teen"],
    [{ status: "declared", lowerBound: 16, upperBound: 17 }, "teen"],
    [{ status: "declared", lowerBound: 10, upperBound: 13 }, "teen"],
    [{ status: "declared", lowerBound: 18 }, undefined],
    [{ status: "declared", lowerBound: 13 }, undefined],
    [{ status: "declared", upperBound: 18 }, undefined],
    [{ status: "declared" }, undefined],
    [{ status: "declared", lowerBound: 13, supervised: true }, "teen"],
    [{ status: "declared", supervised: true }, "child"],
    [{ status: "verified", lowerBound: 18 }, undefined],
    [{ status: "verified", upperBound: 12 }, "child"],
    [{ status: "verified", upperBound: 17, source: "platform" }, "teen"],
    [{ status: "supervised", lowerBound: 13, upperBound: 17 }, "teen"],
    [{ status: "supervised", lowerBound: 0, upperBound: 12 }, "child"],
    [{ status: "supervised" }, "child"],
    [{ status: "supervised", lowerBound: 13 }, "teen"],
    [{ status: "supervised", lowerBound: 18 }, undefined],
    [{ status: "supervised_pending", lowerBound: 13, upperBound: 15 }, "teen"],
    [{ status: "supervised_pending" }, "child"],
    [{ status: "supervised_denied", lowerBound: 16, upperBound: 17 }, "teen"],
    [{ status: "supervised_denied", upperBound: 12, source: "guardianDeclared" }, "child"],
    [{ status: "declined" }, undefined],
    [{ status: "declined", upperBound: 12, supervised: true }, undefined],
    [{ status: "unknown" }, undefined],
    [{ status: "unknown", lowerBound: 0, upperBound: 12 }, undefined]
  ]

  it.each(cases)("maps the age signal %o to %s", (said, band) => {
    assert.strictEqual(bandOfSignal({ platform: "web", ...said }), band)
  })
})

const step = fc.oneof(
  fc.record({ kind: fc.constant("declare" as const), band: fc.constantFrom(...bands) }),
  fc.record({
    kind: fc.constant("signal" as const),
    status: fc.constantFrom("declared", "supervised", "declined"),
    upperBound: fc.constantFrom(12, 13, 17, 18)
  })
)
type Step = typeof step extends fc.Arbitrary<infer S> ? S : never

/** Runs steps for a new player and checks the age band after each one. */
const runSteps = Effect.fnUntraced(function* (
  target: TestTarget,
  audience: Audience,
  steps: ReadonlyArray<Step>
) {
  const ada = yield* guest(target)
  let declared: AgeBand | null = null
  let strictest: AgeBand = "adult"
  for (const one of steps) {
    const before: AgeBand = ageBandOf(audience, declared)
    if (one.kind === "declare") yield* declare(target, ada, one.band)
    else yield* signal(target, ada, { status: one.status, upperBound: one.upperBound })
    if (one.kind === "signal" && one.status !== "declined") {
      const signalled = bands.find((_, index) => one.upperBound <= ([12, 17, 150][index] ?? 0))
      if (signalled !== undefined && rank(signalled) < rank(strictest)) strictest = signalled
    }
    const seen = yield* profile(target, ada)
    const after = bands.find((band) => band === seen.declaredAgeBand) ?? null
    const context: string = JSON.stringify({ audience, steps, one, declared, after })
    assert.strictEqual(seen.ageBand, ageBandOf(audience, after), context)
    const isFirst = declared === null && one.kind === "declare"
    if (!isFirst) assert.isAtMost(rank(ageBandOf(audience, after)), rank(before), context)
    if (declared !== null) assert.isNotNull(after, context)
    if (after !== null) assert.isAtMost(rank(after), rank(strictest), context)
    declared = after
  }
})

layer(Node)("ages", (it) => {
  it.effect("derives the age band before a declaration from the audience", () =>
    Effect.gen(function* () {
      for (const [audience, ageBand] of [
        ["general", "adult"],
        ["mixed", "child"],
        ["kids", "child"]
      ] as const) {
        const { ada, target } = yield* playerOf(audience)
        const grown = ageBand === "adult"
        assert.deepStrictEqual(yield* profile(target, ada), {
          ageBand,
          declaredAgeBand: null,
          capabilities: {
            directConnections: grown,
            voice: grown,
            openChat: grown,
            showName: grown,
            news: grown
          }
        })
      }
    })
  )

  it.effect("accepts any age band as the first declaration, then only stricter ones", () =>
    Effect.gen(function* () {
      for (const first of ["child", "teen", "adult"] as const) {
        const { ada, target } = yield* playerOf("mixed")
        const answer = yield* declare(target, ada, first)
        assert.deepInclude(answer.body, { ageBand: first, declaredAgeBand: first })
        for (const next of ["adult", "teen", "child"] as const) {
          const fresh = yield* guest(target)
          yield* declare(target, fresh, first)
          const again = yield* declare(target, fresh, next)
          const isStricter = rank(next) <= rank(first)
          assert.strictEqual(again.status, isStricter ? 200 : 403, `${first} to ${next}`)
          if (!isStricter) assert.strictEqual(codeOf(again), "age_change_not_allowed")
          const after = isStricter ? next : first
          assert.strictEqual(at(yield* profile(target, fresh), "declaredAgeBand"), after)
        }
      }
    })
  )

  it.effect("treats every player as a child in an app for kids, whatever was declared", () =>
    Effect.gen(function* () {
      const { ada, target } = yield* playerOf("kids")
      const answer = yield* declare(target, ada, "adult")
      assert.deepInclude(answer.body, { ageBand: "child", declaredAgeBand: "adult" })
      assert.strictEqual(answer.body.capabilities.openChat, false)
    })
  )

  it.effect("makes the age band only stricter by a signal, and returns the profile", () =>
    Effect.gen(function* () {
      const { ada, target } = yield* playerOf("general")
      const teen = yield* signal(target, ada, { status: "declared", upperBound: 17 })
      assert.deepInclude(teen.body, { ageBand: "teen", declaredAgeBand: "teen" })
      const adult = yield* signal(target, ada, { status: "verified", lowerBound: 18 })
      assert.deepInclude(adult.body, { ageBand: "teen", declaredAgeBand: "teen" })
      const child = yield* signal(target, ada, { status: "supervised", upperBound: 12 })
      assert.deepInclude(child.body, { ageBand: "child", declaredAgeBand: "child" })
      const older = yield* signal(target, ada, { status: "declared", upperBound: 15 })
      assert.deepInclude(older.body, { ageBand: "child", declaredAgeBand: "child" })
      assert.strictEqual(codeOf(yield* declare(target, ada, "teen")), "age_change_not_allowed")
    })
  )

  it.effect("bounds a declaration by an earlier signal, which never loosens the band", () =>
    Effect.gen(function* () {
      const { ada, target } = yield* playerOf("mixed")
      const signalled = yield* signal(target, ada, { status: "declared", upperBound: 17 })
      assert.deepInclude(signalled.body, { ageBand: "child", declaredAgeBand: null })
      assert.strictEqual(codeOf(yield* declare(target, ada, "adult")), "age_change_not_allowed")
      const declared = yield* declare(target, ada, "teen")
      assert.deepInclude(declared.body, { ageBand: "teen", declaredAgeBand: "teen" })
    })
  )

  it.effect("lets an operator set any age band, even above a signal", () =>
    Effect.gen(function* () {
      const { ada, target } = yield* playerOf("mixed")
      yield* signal(target, ada, { status: "declared", upperBound: 12 })
      const set = yield* operate(target, "PUT", `players/${ada.id}/age`, { band: "adult" })
      assert.deepInclude(set.body, { ageBand: "adult", declaredAgeBand: "adult" })
      assert.strictEqual((yield* declare(target, ada, "teen")).status, 200)
    })
  )

  it.effect("refuses an invalid age band or signal with its path", () =>
    Effect.gen(function* () {
      const { ada, target } = yield* playerOf("general")
      for (const band of ["baby", "", null, 12, undefined]) {
        assert.strictEqual(codeOf(yield* declare(target, ada, band)), "invalid_request")
      }
      for (const [said, path] of [
        [{}, "status"],
        [{ status: "old" }, "status"],
        [{ status: "declared", platform: "tv" }, "platform"],
        [{ status: "declared", lowerBound: -1 }, "lowerBound"],
        [{ status: "declared", upperBound: 12.5 }, "upperBound"],
        [{ status: "declared", upperBound: 151 }, "upperBound"],
        [{ status: "declared", lowerBound: 13, upperBound: 12 }, "upperBound"],
        [{ status: "declared", upperBound: "12" }, "upperBound"],
        [{ status: "declared", source: "friend" }, "source"],
        [{ status: "declared", supervised: "yes" }, "supervised"]
      ] as const) {
        const answer = yield* signal(target, ada, said)
        assert.strictEqual(codeOf(answer), "invalid_request", JSON.stringify(said))
        assert.strictEqual(at(answer.body, "error", "details", "issues", 0, "path"), path)
      }
      assert.strictEqual(at(yield* profile(target, ada), "declaredAgeBand"), null)
    })
  )

  it.effect("applies the strictest of concurrent declarations", () =>
    Effect.gen(function* () {
      const { target } = yield* playerOf("general")
      for (let round = 0; round < 20; round++) {
        const ada = yield* guest(target)
        const wanted = ["adult", "child", "teen", "adult", "teen"] as const
        const answers = yield* Effect.all(
          wanted.map((band) => declare(target, ada, band)),
          { concurrency: "unbounded" }
        )
        assert.strictEqual(answers[1]?.status, 200)
        assert.strictEqual(at(yield* profile(target, ada), "declaredAgeBand"), "child")
      }
    })
  )

  it.effect("makes age bands only stricter in any sequence of declarations and signals", () =>
    Effect.gen(function* () {
      const url = yield* addressOfNode
      for (const audience of ["general", "mixed", "kids"] as const) {
        const { development } = yield* makeTenants
        yield* configure(development, { audience })
        const target: TestTarget = { url, ...development }
        const sequences = fc.sample(fc.array(step, { minLength: 1, maxLength: 8 }), 30)
        yield* Effect.forEach(sequences, (steps) => runSteps(target, audience, steps), {
          concurrency: 5,
          discard: true
        })
      }
    })
  )
})
