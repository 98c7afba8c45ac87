/** Calls of the tests of blocks, and checks whether messages pass. */
import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { at, type OnlinePlayer, type TestPlayer, type TestTarget } from "#testing/players"
import { play } from "./moderation-calls.ts"

export const putBlock = (target: TestTarget, player: TestPlayer, blockedId: string) =>
  play(target, player, "PUT", `social/blocks/${blockedId}`)

export const endBlock = (target: TestTarget, player: TestPlayer, blockedId: string) =>
  play(target, player, "DELETE", `social/blocks/${blockedId}`)

/** Blocks a player, and asserts the answer. */
export const block = Effect.fnUntraced(function* (
  target: TestTarget,
  player: TestPlayer,
  { id }: Pick<TestPlayer, "id">
) {
  const answer = yield* putBlock(target, player, id)
  assert.deepStrictEqual([answer.status, answer.body], [200, {}])
})

/** Most messages until a change must have taken effect. */
const attemptsMax = 500

let probes = 0

/**
 * Sends messages until they pass, or until they do not. `send` sends one, and then what always passes with
 * the same number.
 */
const until = Effect.fnUntraced(function* (
  passes: boolean,
  [sender, receiver]: readonly [OnlinePlayer, OnlinePlayer],
  send: (number: number) => Effect.Effect<unknown>,
  arrives: (number: number) => Effect.Effect<unknown>
) {
  for (let attempt = 0; attempt < attemptsMax; attempt++) {
    const before = receiver.socket.received.length
    const number = ++probes
    yield* send(number)
    yield* arrives(number)
    const got = receiver.socket.received
      .slice(before)
      .some(({ from, t }) => /^(channel_)?message$/.test(t) && from === sender.id)
    if (got === passes) return
  }
  assert.fail(passes ? "no message arrived" : "messages still arrive")
})

/** Sends messages in a room until they pass, or until they do not; state always passes. */
export const untilInRoom = (passes: boolean, sender: OnlinePlayer, receiver: OnlinePlayer) =>
  until(
    passes,
    [sender, receiver],
    (probe) =>
      Effect.andThen(
        sender.socket.request({ t: "send", type: "chat", data: probe }),
        sender.socket.request({ t: "setMyState", patch: { probe } })
      ),
    (probe) =>
      receiver.socket.next("player_state", (frame) => at(frame, "patch", "probe") === probe)
  )

/** Sends messages in a channel until they pass, or until they do not; those of a third member do. */
export const untilInChannel = (
  passes: boolean,
  channel: string,
  [sender, receiver, third]: readonly [OnlinePlayer, OnlinePlayer, OnlinePlayer]
) =>
  until(
    passes,
    [sender, receiver],
    (data) =>
      Effect.andThen(
        sender.socket.request({ t: "channelSend", channel, type: "chat", data }),
        third.socket.request({ t: "channelSend", channel, type: "chat", data })
      ),
    (probe) =>
      receiver.socket.next(
        "channel_message",
        (frame) => frame["data"] === probe && frame["from"] === third.id
      )
  )
