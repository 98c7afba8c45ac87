/** What the tests of channels ask of a service: the server API's calls, anonymous sockets. */
import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { SecureRandom } from "effect/crypto"
import { at, type OnlinePlayer, request, type TestTarget } from "#testing/players"
import { connectSocket, type HeardFrame } from "#testing/socket-client"

/** The code of a refusal; undefined when it is none. */
export const code = (reply: HeardFrame): unknown => at(reply, "error", "code")

export const heardTypes = ({ socket }: OnlinePlayer): ReadonlyArray<string> =>
  socket.heard.map(({ t }) => t)

/** A name that no other test uses. */
export const uniqueName = Effect.gen(function* () {
  const random = yield* SecureRandom.SecureRandom
  return `room-${(yield* random.uuidV4()).slice(0, 13)}`
}).pipe(Effect.provide(SecureRandom.layerWebCrypto))

/** A call of the server API on a channel. */
export const manage = (
  { secretKey, url }: TestTarget,
  method: "GET" | "PUT" | "DELETE" | "POST",
  path: string,
  body?: object
) =>
  request(`${url}/v1/realtime/channels/${path}`, {
    method,
    headers: { "x-svc-key": secretKey },
    ...(body === undefined ? {} : { body })
  })

export const moderate = Effect.fnUntraced(function* (
  target: TestTarget,
  name: string,
  act: { readonly op: string; readonly playerId: string; readonly seconds?: number }
) {
  const answer = yield* manage(target, "POST", `${name}/moderate`, act)
  assert.strictEqual(answer.status, 200, JSON.stringify(answer.body))
  assert.deepStrictEqual(answer.body, {})
})

/** Is the player in? A message that comes back says so. */
export const member = Effect.fnUntraced(function* ({ socket }: OnlinePlayer, channel: string) {
  const reply = yield* socket.ask({ t: "channelSend", channel, type: "here" })
  assert.strictEqual(reply["ok"], true, JSON.stringify(reply))
})

/** A socket without a player, welcome. */
export const anonymous = Effect.fnUntraced(function* (target: TestTarget) {
  const socket = yield* connectSocket(`${target.url.replace("http", "ws")}/v1/realtime`)
  yield* socket.say({ t: "auth", key: target.publishableKey, anon: true })
  yield* socket.next("welcome")
  return socket
})
