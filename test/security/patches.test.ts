/**
 * Attacks by patches of room and player state: prototype pollution, excessive keys, depth or size, and deletion
 * of keys that the patch does not name.
 */
import { assert, describe, it, layer } from "@effect/vitest"
import { Effect, Result, Schema } from "effect"
import * as fc from "fast-check"
import { JsonObject } from "#rpc/json"
import { emptyJsonState, patchJsonState, toJsonObject } from "#entities/room/json-state"
import { TestApp } from "#testing/app"
import { at, newPlayer, type OnlinePlayer } from "#testing/players"
import { hostilePatch } from "../support/generators.ts"
import { AppLive } from "../support/service.ts"
import { openRoom } from "../support/opened-room.ts"

/** The property descriptors of the built-in prototypes. */
const builtInPrototypes = () =>
  [Object, Array, Function, String, Number, Map].map(({ prototype }) =>
    Reflect.ownKeys(prototype).map((key) => [key, Reflect.getOwnPropertyDescriptor(prototype, key)])
  )

const nested = (levels: number, open = '{"a":', close = "}") =>
  `{"a":${open.repeat(levels)}1${close.repeat(levels)}}`
const keys = (count: number) =>
  JSON.stringify(Object.fromEntries(Array.from({ length: count }, (_, i) => [`k${i}`, 0])))

const invalid = "invalid_frame"
const tooLarge = "state_too_large"

/** Patches as JSON text, with the code of the refusal, or undefined if the service accepts the patch. */
const payloads: ReadonlyArray<readonly [patch: string, code?: string]> = [
  ['{"__proto__":{"polluted":1}}', invalid],
  ['{"__proto__":null}', invalid],
  ['{"__proto__":1,"a":1}', invalid],
  ['{"\\u005f\\u005fproto\\u005f\\u005f":{"polluted":1}}', invalid],
  ['{"a":1,"a":{"__proto__":{"polluted":1}}}', invalid],
  ['{"a":{"__proto__":{"polluted":1}}}', invalid],
  ['{"a":[{"__proto__":{"polluted":1}}]}', invalid],
  ['{"a":{"b":{"c":[[{"__proto__":[]}]]}}}', invalid],
  ['{"constructor":{"prototype":{"polluted":1}}}', invalid],
  ['{"constructor":"x"}', invalid],
  ['{"constructor":null}', invalid],
  ['{"a":[{"constructor":{"prototype":{"polluted":1}}}]}', invalid],
  ['{"prototype":{"polluted":1}}', invalid],
  ['{"a":{"prototype":0}}', invalid],
  ["null", invalid],
  ["[]", invalid],
  ['[{"__proto__":1}]', invalid],
  ['"__proto__"', invalid],
  ["1", invalid],
  ["true", invalid],
  ['{"a":1e400}', invalid],
  ['{"a":[{"b":-1e400}]}', invalid],
  [nested(33), invalid],
  [nested(33, "[", "]"), invalid],
  [nested(5000), invalid],
  [nested(20_000, "[", "]"), invalid],
  [keys(257), tooLarge],
  [`{"${"k".repeat(65)}":1}`, tooLarge],
  [`{"${"k".repeat(65)}":null}`, tooLarge],
  ['{"a":{"b":[{"prototype":{}}]}}', invalid],
  [nested(32)],
  [nested(31, "[", "]")],
  [keys(254)],
  [`{"${"k".repeat(64)}":1}`],
  ['{"toString":1,"valueOf":null,"hasOwnProperty":true}'],
  ['{"toJSON":"x"}'],
  ['{"a":{"toJSON":{"b":1}}}'],
  ['{"__defineGetter__":1,"__lookupSetter__":2}'],
  ['{"__proto":{"polluted":1},"proto__":1,"_proto_":1}'],
  ['{"Constructor":1,"CONSTRUCTOR":2,"prototypes":3}'],
  ['{"constructor ":1," __proto__":2}'],
  ['{"then":{"then":1}}'],
  ['{"length":-1,"0":"a","10":"b","2":"c"}'],
  ['{"-1":1,"1e3":2,"01":3,"4294967295":4}'],
  ['{"":1," ":2}'],
  ['{"\\u0000":1,"a\\u0000b":2}', invalid],
  ['{"é":1,"e\\u0301":2}'],
  ['{"\\ud800":1}', invalid],
  ['{"a":"__proto__","b":["constructor"]}'],
  ['{"gone":null,"also":null}'],
  ['{"a":-0,"b":9007199254740991,"c":0.1}'],
  // JSON carries these to nobody unchanged.
  ['{"a":9007199254740993}', invalid],
  ['{"a":1e400}', invalid]
]

/** `base` after a shallow merge of the patch, in which null deletes a key. */
const expected = (base: object, patch: string): object => {
  const entries = new Map<string, unknown>(Object.entries(base))
  for (const [key, value] of Object.entries(Object(JSON.parse(patch)))) {
    if (value === null) entries.delete(key)
    else entries.set(key, value)
  }
  return JSON.parse(JSON.stringify(Object.fromEntries(entries)))
}

const base = { keep: { a: 1 }, also: 2 }

/** Sends a patch as JSON text and returns the reply. */
const sendPatch = Effect.fnUntraced(function* ({ socket }: OnlinePlayer, t: string, patch: string) {
  const rid = `${t}-${socket.received.length}`
  yield* socket.sendText(`{"t":"${t}","rid":"${rid}","patch":${patch}}`)
  return yield* socket.next("reply", (frame) => frame["rid"] === rid)
})

/** The state of the room and of the player, as a snapshot contains them. */
const readState = Effect.fnUntraced(function* ({ id, socket }: OnlinePlayer, roomId: unknown) {
  yield* socket.request({ t: "join", roomId })
  const snapshot = yield* socket.next("room_joined")
  const players = at(snapshot, "room", "players")
  const self = Array.isArray(players) ? players.find((entry) => at(entry, "id") === id) : undefined
  return { setState: at(snapshot, "room", "state"), setMyState: at(self, "state") }
})

layer(AppLive, { timeout: "120 seconds", excludeTestServices: true })("patches of state", (it) => {
  it.effect.each(["setState", "setMyState"] as const)(
    "%s applies 53 hostile patches without changing a prototype or an unnamed key",
    Effect.fnUntraced(function* (t) {
      const app = yield* TestApp
      const before = builtInPrototypes()
      assert.isAtLeast(payloads.length, 50)
      const witness = yield* newPlayer(app)
      const attempt = Effect.fnUntraced(function* ([patch, code]: (typeof payloads)[number]) {
        const name = patch.slice(0, 80)
        const player = yield* newPlayer(app)
        const { roomId } = yield* openRoom([player])
        yield* player.socket.next("room_joined")
        yield* player.socket.request({ t, patch: base })
        const reply = yield* sendPatch(player, t, patch)
        assert.strictEqual(at(reply, "error", "code"), code, name)
        const { [t]: state } = yield* readState(player, roomId)
        const wanted = code === undefined ? expected(base, patch) : base
        assert.deepStrictEqual(state, wanted, name)
        assert.strictEqual(at(yield* witness.socket.request({ t: "ping" }), "ok"), true)
      })
      yield* Effect.forEach(payloads, (payload) => Effect.scoped(attempt(payload)), {
        concurrency: 8,
        discard: true
      })
      assert.deepStrictEqual(builtInPrototypes(), before)
    }),
    60_000
  )
})

describe("1,000 random sequences of patches", () => {
  it("deletes by 1,000 random sequences of patches only keys set to null, within the size limit", () => {
    const before = builtInPrototypes()
    const max = 200
    fc.assert(
      fc.property(fc.array(hostilePatch, { maxLength: 20 }), (patches) => {
        let values = emptyJsonState
        let model = new Map<string, unknown>()
        for (const patch of patches.filter(Schema.is(JsonObject))) {
          const next = new Map(model)
          for (const [key, value] of Object.entries(patch)) {
            if (value === null) next.delete(key)
            else next.set(key, value)
          }
          const fits = Buffer.byteLength(JSON.stringify(Object.fromEntries(next))) <= max
          const result = patchJsonState(values, patch, max)
          assert.strictEqual(Result.isSuccess(result), fits)
          if (Result.isSuccess(result)) {
            values = result.success
            model = next
          }
          assert.deepStrictEqual(toJsonObject(values), Object.fromEntries(model))
        }
      }),
      { numRuns: 1000 }
    )
    assert.deepStrictEqual(builtInPrototypes(), before)
  })
})
