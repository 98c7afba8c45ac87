/**
 * Attacks on age rules: sequences of declarations and signals, concurrent ones, and a child that signs in
 * another way to appear older.
 */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer, Redacted, Schema } from "effect"
import { SqlClient } from "effect/sql"
import { type AgeBand, ageBandOf } from "#rpc/ages"
import { EnvironmentId, PlayerId } from "#rpc/ids"
import { AgeRepository } from "#sql/ages"
import { poolLayer } from "#sql/database"
import { TestApp, TestDatabase } from "#testing/app"
import { at, configure, guest, newPlayer, type TestPlayer, type TestTarget } from "#testing/players"
import { anotherDevice, inAppBrowser, link } from "../support/devices.ts"
import { codeOf, play, refresh } from "../support/moderation-calls.ts"
import { DatabaseLive } from "../support/service.ts"

/** The service, and its age repository on the same database. */
const App = Layer.mergeAll(
  TestApp.layerWith(),
  AgeRepository.layer.pipe(
    Layer.provideMerge(
      Layer.unwrap(
        Effect.map(TestDatabase, ({ url }) =>
          poolLayer({ url: Redacted.make(url), connections: 1 })
        )
      )
    )
  )
).pipe(Layer.provide(DatabaseLive))

const bands = ["child", "teen", "adult"] as const
const rank = (band: AgeBand): number => bands.indexOf(band)

/** The stored age columns of a player. */
interface Stored {
  readonly declared: AgeBand | null
  readonly signalled: "child" | "teen" | null
}

const steps = [
  { kind: "declare", band: "child" },
  { kind: "declare", band: "teen" },
  { kind: "declare", band: "adult" },
  { kind: "signal", band: "child" },
  { kind: "signal", band: "teen" }
] as const

const Owner = Schema.Struct({ id: PlayerId, environmentId: EnvironmentId })

/** Applies one step to a state with the service's own SQL statements. */
const makeTransition = Effect.fnUntraced(function* (undeclared: AgeBand, player: string) {
  const rows = yield* AgeRepository
  const sql = yield* SqlClient.SqlClient
  const [found] = yield* sql`select id, environment_id from players where id = ${player}`
  const { environmentId, id: playerId } = yield* Schema.decodeUnknownEffect(Owner)(found)
  return Effect.fnUntraced(function* (
    { declared, signalled }: Stored,
    step: (typeof steps)[number]
  ) {
    yield* sql`
      update players set declared_age_band = ${declared}, signalled_age_band = ${signalled}
      where id = ${playerId}`
    if (step.kind === "declare") yield* rows.declare({ environmentId, playerId, band: step.band })
    else yield* rows.signal({ environmentId, playerId, band: step.band, undeclared })
    const [row] = yield* sql`
      select declared_age_band as declared, signalled_age_band as signalled from players
      where id = ${playerId}`
    const after = (field: string) => bands.find((band) => band === at(row, field)) ?? null
    const band = after("signalled")
    return { declared: after("declared"), signalled: band === "adult" ? null : band }
  })
})

const profile = (target: TestTarget, player: Pick<TestPlayer, "accessToken">) =>
  Effect.map(play(target, player, "GET", "social/profile"), ({ body }) => body)

const declare = (target: TestTarget, player: Pick<TestPlayer, "accessToken">, band: AgeBand) =>
  play(target, player, "PUT", "social/age", { band })

const signal = (target: TestTarget, player: TestPlayer, upperBound: number) =>
  play(target, player, "POST", "players/me/age-signal", {
    platform: "ios",
    status: "declared",
    upperBound
  })

layer(App, { timeout: "120 seconds", excludeTestServices: true })("an age band", (it) => {
  it.effect("never relaxes an age band in any sequence of declarations and signals", () =>
    Effect.gen(function* () {
      const app = yield* TestApp
      const { id } = yield* guest(app)
      for (const audience of ["general", "mixed", "kids"] as const) {
        const transition = yield* makeTransition(ageBandOf(audience, null), id)
        const known = new Set<string>()
        const open: Array<Stored> = [{ declared: null, signalled: null }]
        // Visits every reachable state and takes every step from it.
        for (let state = open.pop(); state !== undefined; state = open.pop()) {
          if (known.has(JSON.stringify(state))) continue
          known.add(JSON.stringify(state))
          for (const step of steps) {
            const after: Stored = yield* transition(state, step)
            const context: string = JSON.stringify({ audience, state, step, after })
            const first = state.declared === null && step.kind === "declare"
            const before = first ? "adult" : ageBandOf(audience, state.declared)
            assert.isAtMost(rank(ageBandOf(audience, after.declared)), rank(before), context)
            if (state.declared !== null) assert.isNotNull(after.declared, context)
            if (state.signalled !== null) {
              assert.isAtMost(rank(after.signalled ?? "adult"), rank(state.signalled), context)
            }
            if (after.declared !== null && after.signalled !== null) {
              assert.isAtMost(rank(after.declared), rank(after.signalled), context)
            }
            open.push(after)
          }
        }
        assert.isAbove(known.size, 5, audience)
      }
    })
  )

  it.effect("ends with the strictest age band of concurrent declarations and signals", () =>
    Effect.gen(function* () {
      const app = yield* TestApp
      const mixes = [
        { strictest: "child", declared: ["adult", "teen", "adult"], signalled: [17, 12] },
        { strictest: "child", declared: ["adult", "child", "teen"], signalled: [17, 17] },
        { strictest: "teen", declared: ["adult", "adult", "adult"], signalled: [17, 17] },
        { strictest: "teen", declared: ["adult", "teen", "adult"], signalled: [] }
      ] as const
      const races = Array.from({ length: 5 }, () => mixes).flat()
      for (const { declared, signalled, strictest } of races) {
        const ada = yield* guest(app)
        const changes = [
          ...declared.map((band) => declare(app, ada, band)),
          ...signalled.map((upperBound) => signal(app, ada, upperBound))
        ]
        yield* Effect.all(changes, { concurrency: "unbounded" })
        const context = JSON.stringify({ strictest, declared, signalled })
        const after = yield* profile(app, ada)
        assert.deepInclude(after, { ageBand: strictest, declaredAgeBand: strictest }, context)
        for (const band of bands.slice(rank(strictest) + 1)) {
          const refused = yield* declare(app, ada, band)
          assert.strictEqual(codeOf(refused), "age_change_not_allowed", context)
        }
      }
    })
  )

  it.effect("keeps the age band of a player across sessions and identities", () =>
    Effect.gen(function* () {
      const app = yield* TestApp
      yield* configure(app, { features: { emailLogin: true, multiplayer: true }, ...inAppBrowser })
      const ada = yield* newPlayer(app)
      yield* declare(app, ada, "child")
      for (const provider of ["email", "google"] as const) yield* link(ada, provider)
      const refreshed = yield* refresh(app, ada.refreshToken)
      const devices = [
        ada,
        { ...ada, accessToken: String(at(refreshed.body, "accessToken")) },
        yield* anotherDevice(app, ada)
      ]
      for (const device of devices) {
        assert.strictEqual(at(yield* profile(app, device), "ageBand"), "child")
        for (const band of ["teen", "adult"] as const) {
          assert.strictEqual(codeOf(yield* declare(app, device, band)), "age_change_not_allowed")
        }
      }
    })
  )
})
