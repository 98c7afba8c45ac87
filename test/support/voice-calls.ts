/** Players in voice calls, for tests on the public interface. */
import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { at, configure, newPlayer, type OnlinePlayer, type TestTarget } from "#testing/players"
import { manage, uniqueName } from "./channel-calls.ts"

/** Enables voice, with what else a test needs. */
export const enableVoice = (target: TestTarget, document: object = {}) =>
  configure(target, { features: { realtimeChannels: true, voice: true }, ...document })

/** A managed channel with voice. */
export const voiceChannel = Effect.fnUntraced(function* (target: TestTarget, settings: object) {
  const name = yield* uniqueName
  const answer = yield* manage(target, "PUT", name, settings)
  assert.strictEqual(answer.status, 200, JSON.stringify(answer.body))
  return name
})

/** A new player who is a member of the channel. */
export const newMember = Effect.fnUntraced(function* (target: TestTarget, channel: string) {
  const player = yield* newPlayer(target)
  const reply = yield* player.socket.request({ t: "channelJoin", channel })
  assert.strictEqual(reply["ok"], true, JSON.stringify(reply))
  return player
})

/** Joins the call; returns the data of the reply. */
export const joinCall = Effect.fnUntraced(function* (
  { socket }: OnlinePlayer,
  channel: string,
  fields: object = {}
) {
  const reply = yield* socket.request({ t: "voiceJoin", channel, ...fields })
  assert.strictEqual(reply["ok"], true, JSON.stringify(reply))
  return reply["data"]
})

/** The ids in a list of members. */
export const idsOf = (state: unknown): ReadonlyArray<unknown> =>
  Array.from(Object(at(state, "members")), (member) => at(member, "id"))

/** Waits until the list of members has exactly these players. */
export const awaitCall = ({ socket }: OnlinePlayer, players: ReadonlyArray<OnlinePlayer>) =>
  socket.next("voice_state", (state) => {
    const ids = idsOf(state)
    return ids.length === players.length && players.every(({ id }) => ids.includes(id))
  })
