/** Channels whose members are on two runners. */
import { assert } from "@effect/vitest"
import { PgClient } from "@effect/sql-pg"
import { Effect, Redacted, Schedule } from "effect"
import { Reactivity } from "effect/reactivity"
import { newPlayer, type OnlinePlayer } from "#testing/players"
import { manage } from "./channel-calls.ts"
import { TwoRunners } from "./two-runners.ts"

/** The node that wrote the channel's row. */
export const nodeOf = (url: string, name: string) =>
  Effect.gen(function* () {
    const sql = yield* PgClient.make({ url: Redacted.make(url) })
    const [row] = yield* sql<{ node: string }>`select node from channels where name = ${name}`
    return row?.node ?? (yield* Effect.fail("no row"))
  }).pipe(
    Effect.scoped,
    Effect.retry({ times: 100, schedule: Schedule.spaced(50) }),
    Effect.provide(Reactivity.layer),
    Effect.orDie
  )

/** A managed channel with a player on each runner, and who owns it. */
export const twoMembers = Effect.fnUntraced(function* (name: string, settings: object = {}) {
  const { at1, at2, databaseUrl, first, second } = yield* TwoRunners
  yield* manage(at1, "PUT", name, settings)
  const ada = yield* newPlayer(at1, "Ada")
  const bob = yield* newPlayer(at2, "Bob")
  yield* ada.socket.request({ t: "channelJoin", channel: name })
  yield* bob.socket.request({ t: "channelJoin", channel: name })
  yield* ada.socket.next("channel_player_joined")
  yield* ada.socket.next("channel_joined")
  yield* bob.socket.next("channel_joined")
  const node = yield* nodeOf(databaseUrl, name)
  const ownerIsFirst = node === first.node
  return ownerIsFirst
    ? { name, owner: first, near: ada, far: bob, nearAt: at1, farAt: at2 }
    : { name, owner: second, near: bob, far: ada, nearAt: at2, farAt: at1 }
})

/** Sends a message, and asserts that the other player receives it. */
export const assertDelivery = (
  from: OnlinePlayer,
  to: OnlinePlayer,
  channel: string,
  type: string
) =>
  Effect.gen(function* () {
    const reply = yield* from.socket.request({ t: "channelSend", channel, type })
    assert.strictEqual(reply["ok"], true, JSON.stringify(reply))
    const message = yield* to.socket.next("channel_message", (frame) => frame["type"] === type)
    assert.strictEqual(message["from"], from.id)
  })
