/** The client's frames: derived from the definitions, bounded, and tolerant of newer services. */
import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import { AlreadyInRoom, RoomFull } from "#rpc/errors/codes"
import { closeCodes } from "#rpc/realtime"
import { create, join, leave, send, setState } from "#rpc/rooms"
import { ServiceError } from "#client/errors"
import { decodeFrame, encodeFrame, readReply } from "#client/frames"
import { makePendingReplies } from "#client/pending"
import { afterClose } from "#client/reconnect"

const textOf = (encoded: ReturnType<typeof encodeFrame>): unknown =>
  JSON.parse(Result.getOrThrow(encoded))

const tagOf = (encoded: Result.Result<unknown, { readonly _tag: string }>): string =>
  Result.isFailure(encoded) ? encoded.failure._tag : "sent"

describe("frames of the client", () => {
  it("builds frames with type, rid and the fields of the definition, and no others", () => {
    const frame = encodeFrame(send, { type: "move", data: { x: 1 } }, "7")
    assert.deepStrictEqual(textOf(frame), { t: "send", rid: "7", type: "move", data: { x: 1 } })
    assert.deepStrictEqual(textOf(encodeFrame(leave, undefined)), { t: "leave" })
  })

  it("refuses a frame before sending if the service would refuse it", () => {
    assert.strictEqual(tagOf(encodeFrame(create, { mode: "" })), "invalid_frame")
    assert.strictEqual(tagOf(encodeFrame(join, {})), "invalid_frame")
    const hostile = JSON.parse('{"deep":{"__proto__":1}}')
    assert.strictEqual(tagOf(encodeFrame(setState, { patch: hostile })), "invalid_frame")
    assert.strictEqual(tagOf(encodeFrame(send, { type: "big", data: 1n })), "invalid_frame")
  })

  it("limits frames in bytes, not characters", () => {
    const sized = (data: string) => tagOf(encodeFrame(send, { type: "t", data }))
    assert.strictEqual(sized("a".repeat(60_000)), "sent")
    assert.strictEqual(sized("é".repeat(60_000)), "payload_too_large")
    assert.strictEqual(sized("a".repeat(70_000)), "payload_too_large")
  })
})

describe("frames of the service", () => {
  it("decodes frames of the service as events and replies", () => {
    const locked = { t: "locked", locked: true } as const
    assert.deepStrictEqual(decodeFrame(JSON.stringify(locked)), locked)
    const reply = { t: "reply", rid: "1", ok: true, data: {} } as const
    assert.deepStrictEqual(decodeFrame(JSON.stringify(reply)), reply)
  })

  it("accepts unknown fields in frames of the service", () => {
    const text = JSON.stringify({ t: "locked", locked: false, by: "ada" })
    assert.deepStrictEqual(decodeFrame(text), { t: "locked", locked: false })
  })

  it("reports a frame with a new type or value as unknown, without an error", () => {
    assert.deepStrictEqual(decodeFrame('{"t":"fireworks"}'), { t: "unknown", type: "fireworks" })
    const kicked = { t: "player_left", playerId: "ada", reason: "kicked" }
    assert.deepStrictEqual(decodeFrame(JSON.stringify(kicked)), {
      t: "unknown",
      type: "player_left"
    })
    assert.deepStrictEqual(decodeFrame("nonsense"), { t: "unknown", type: undefined })
  })

  it("reports a frame as unknown when its patch could reach a prototype", () => {
    const text = '{"t":"state","patch":{"__proto__":{"admin":true}},"from":"eve","version":1}'
    assert.deepStrictEqual(decodeFrame(text), { t: "unknown", type: "state" })
  })
})

describe("replies", () => {
  const refused = (code: string, details?: unknown) =>
    readReply(join, {
      t: "reply",
      rid: "1",
      ok: false,
      error: { code, message: "no", ...(details === undefined ? {} : { details }) }
    })

  it("fails a refused call with the class of the error's code", () => {
    assert.deepStrictEqual(refused("room_full"), Result.fail(new RoomFull({ message: "no" })))
    const details = { roomId: "rm_2" }
    const elsewhere = Result.fail(new AlreadyInRoom({ message: "no", details }))
    assert.deepStrictEqual(refused("already_in_room", details), elsewhere)
  })

  it("fails a call that is refused with an unknown code with service_error", () => {
    const failed = refused("room_haunted", { ghosts: 3 })
    assert(Result.isFailure(failed) && failed.failure instanceof ServiceError)
    assert.strictEqual(failed.failure.code, "room_haunted")
    assert.deepStrictEqual(failed.failure.details, { ghosts: 3 })
  })

  it("returns the data of a reply by its definition, or fails the call", () => {
    const reply = (data: unknown) => readReply(join, { t: "reply", rid: "1", ok: true, data })
    const seat = { roomId: "rm_1", code: "7KMB2P" }
    assert.deepStrictEqual(reply({ ...seat, more: 1 }), Result.succeed(seat))
    assert.strictEqual(tagOf(reply({ roomId: 1 })), "service_error")
  })

  it("settles each call with its own reply, once", () => {
    const pending = makePendingReplies()
    const heard: Array<string | undefined> = []
    const wait = () => pending.add((reply) => heard.push(reply?.rid))
    const [first, second, third] = [wait(), wait(), wait()]
    const reply = (rid: string) => pending.settle({ t: "reply", rid, ok: true })
    reply(second)
    reply(second)
    reply("unasked")
    pending.forget(first)
    reply(first)
    assert.deepStrictEqual(heard, [second])
    pending.end()
    reply(third)
    assert.deepStrictEqual(heard, [second, undefined])
  })
})

describe("after a close", () => {
  const delay = (code: number, failures: number, random = 0.5) => {
    const next = afterClose(code, failures, random)
    return next.reconnect ? next.delayMillis : "never"
  }

  it("does not reconnect after it was refused or replaced", () => {
    const { forbidden, replaced, unauthorized, unsupported } = closeCodes
    for (const code of [unauthorized, forbidden, replaced, unsupported]) {
      assert.strictEqual(delay(code, 1), "never")
    }
  })

  it("reconnects at once after 1012 and 4002, only the first time", () => {
    for (const code of [closeCodes.draining, closeCodes.tokenExpired]) {
      assert.strictEqual(delay(code, 1), 0)
      assert.isAbove(Number(delay(code, 2)), 0)
    }
  })

  it("doubles the delay between reconnects up to a bound, with full jitter", () => {
    assert.deepStrictEqual(
      [1, 2, 3, 20].map((failures) => delay(1006, failures)),
      [250, 500, 1000, 7500]
    )
    assert.strictEqual(delay(1006, 20, 0), 0)
    assert.isAtMost(Number(delay(closeCodes.idle, 20, 0.999)), 15_000)
  })

  it("waits at least five seconds to reconnect after a close for abuse", () => {
    assert.isAtLeast(Number(delay(closeCodes.abuse, 1, 0)), 5000)
  })
})
