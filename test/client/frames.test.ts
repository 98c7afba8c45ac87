/** The client's frames: bounded, and tolerant of newer services. */
import { assert, describe, it } from "@effect/vitest"
import { ClientError, isError } from "#client/errors"
import { decodeFrame, encodeFrame, readReply } from "#client/frames"
import { PendingReplies } from "#client/pending"

/** The code with which a step fails, or `done`. */
const codeOf = (step: () => unknown): string => {
  try {
    step()
    return "done"
  } catch (error) {
    return isError(error) ? error.code : String(error)
  }
}

describe("frames of the client", () => {
  it("builds frames with type, rid and payload", () => {
    const frame = encodeFrame("send", { type: "move", data: { x: 1 } }, "7")
    assert.deepStrictEqual(JSON.parse(frame), {
      t: "send",
      rid: "7",
      type: "move",
      data: { x: 1 }
    })
    assert.strictEqual(encodeFrame("leave", undefined), '{"t":"leave"}')
  })

  it("refuses data that is not JSON before sending", () => {
    assert.strictEqual(
      codeOf(() => encodeFrame("send", { type: "big", data: 1n })),
      "invalid_frame"
    )
  })

  it("limits frames in bytes, not characters", () => {
    const sized = (data: string) => codeOf(() => encodeFrame("send", { type: "t", data }))
    assert.strictEqual(sized("a".repeat(60_000)), "done")
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

  it("accepts fields, values and types that this version does not know", () => {
    for (const frame of [
      { t: "locked", locked: false, by: "ada" },
      { t: "player_left", playerId: "ada", reason: "kicked" },
      { t: "fireworks" }
    ]) {
      assert.deepEqual<unknown>(decodeFrame(JSON.stringify(frame)), frame)
    }
  })

  it("ignores what is no frame", () => {
    for (const text of ["nonsense", "[]", "null", "1", '{"t":1}', "{}"]) {
      assert.isUndefined(decodeFrame(text))
    }
  })

  it("ignores state that could reach a prototype", () => {
    const text = '{"t":"state","patch":{"a":{"__proto__":{"admin":true}}},"from":"eve","version":1}'
    assert.isUndefined(decodeFrame(text))
  })
})

describe("replies", () => {
  const failure = (reply: object) => {
    try {
      return readReply("join", { t: "reply", rid: "1", ok: false, ...reply })
    } catch (error) {
      return error
    }
  }

  it("fails a refused call with code, message and details of the service", () => {
    const error = { code: "already_in_room", message: "no", details: { roomId: "rm_2" } }
    const failed = failure({ error })
    assert(isError(failed, "already_in_room"))
    assert.strictEqual(failed.details.roomId, "rm_2")
    assert.strictEqual(failed.message, "no")
    assert.instanceOf(failed, ClientError)
  })

  it("keeps a code that this version does not know", () => {
    const failed = failure({
      error: { code: "room_haunted", message: "no", details: { ghosts: 3 } }
    })
    assert(isError(failed))
    assert.strictEqual(String(failed.code), "room_haunted")
    assert.deepEqual<unknown>(failed.details, { ghosts: 3 })
  })

  it("returns the data of a reply, or fails the call if it has none", () => {
    const seat = { roomId: "rm_1", code: "7KMB2P" }
    assert.deepStrictEqual(failure({ ok: true, data: seat }), seat)
    assert.isTrue(isError(failure({ ok: true }), "unreadable_response"))
    assert.isTrue(isError(failure({}), "unreadable_response"))
  })

  it("settles each call with its own reply, once", () => {
    const pending = new PendingReplies()
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
