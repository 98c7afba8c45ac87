/** Calls of channel tests to a service: the server API, and anonymous sockets. */
import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { SecureRandom } from "effect/crypto"
import { at, type OnlinePlayer, request, type TestTarget } from "#testing/players"
import { connectSocket, type ReceivedFrame } from "#testing/socket-client"

/** Returns the error code of a reply; undefined if it is no error. */
export const errorCode = (reply: ReceivedFrame): unknown => at(reply, "error", "code")

/** Returns the types of all frames that a player received. */
export const receivedTypes = ({ socket }: OnlinePlayer): ReadonlyArray<string> =>
  socket.received.map(({ t }) => t)

/** A unique channel name. */
export const uniqueName = Effect.gen(function* () {
  const random = yield* SecureRandom.SecureRandom
  return `room-${(yield* random.uuidV4()).slice(0, 13)}`
}).pipe(Effect.provide(SecureRandom.layerWebCrypto))

/** Calls the server API on a channel. */
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
  operation: { readonly op: string; readonly playerId: string; readonly seconds?: number }
) {
  const response = yield* manage(target, "POST", `${name}/moderate`, operation)
  assert.strictEqual(response.status, 200, JSON.stringify(response.body))
  assert.deepStrictEqual(response.body, {})
})

/** Asserts that the player is a member, with a message that only members can send. */
export const assertMember = Effect.fnUntraced(function* (
  { socket }: OnlinePlayer,
  channel: string
) {
  const reply = yield* socket.request({ t: "channelSend", channel, type: "here" })
  assert.strictEqual(reply["ok"], true, JSON.stringify(reply))
})

/** Connects an anonymous socket, and waits for its welcome. */
export const connectAnonymously = Effect.fnUntraced(function* (target: TestTarget) {
  const socket = yield* connectSocket(`${target.url.replace("http", "ws")}/v1/realtime`)
  yield* socket.send({ t: "auth", key: target.publishableKey, anon: true })
  yield* socket.next("welcome")
  return socket
})
