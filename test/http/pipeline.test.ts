/** Requests of one connection: their order, and what a connection keeps of responses that were sent. */
import { IncomingMessage, ServerResponse } from "node:http"
import { Socket } from "node:net"
import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Predicate } from "effect"
import { Pipeline } from "#server/http/pipeline"

/** A request of the connection, and its response. */
const exchange = (socket: Socket) => {
  const request = new IncomingMessage(socket)
  return { request, response: new ServerResponse(request) }
}

/** The next turn of the event loop. */
const nextTurn = Effect.callback<void>((resume) => {
  setImmediate(() => resume(Effect.void))
})

/** Collects garbage until nothing holds the value; fails if something does. */
const collected = Effect.fnUntraced(function* (value: WeakRef<object>) {
  setFlagsFromString("--expose-gc")
  const gc: unknown = runInNewContext("gc")
  let held = true
  for (let attempt = 0; attempt < 50 && held; attempt++) {
    // A reference that was read lives until the end of its turn of the event loop.
    yield* nextTurn
    if (Predicate.isFunction(gc)) gc()
    held = value.deref() !== undefined
  }
  assert.isFalse(held, "something holds the response")
})

describe("the requests of one connection", () => {
  it.live("keeps no response that was sent: its body would live as long as the connection", () =>
    Effect.gen(function* () {
      const socket = new Socket()
      const pipeline = new Pipeline()
      const send = () => {
        const { request, response } = exchange(socket)
        pipeline.add(request, response, () => undefined)
        response.emit("close")
        return new WeakRef(response)
      }
      yield* collected(send())
      assert.isUndefined(pipeline.pending(socket))
    })
  )

  it("runs the next request of a connection when the response before it has been sent", () => {
    const socket = new Socket()
    const pipeline = new Pipeline()
    const ran: Array<string> = []
    const first = exchange(socket)
    const second = exchange(socket)
    pipeline.add(first.request, first.response, () => ran.push("first"))
    pipeline.add(second.request, second.response, () => ran.push("second"))
    assert.deepStrictEqual(ran, ["first"])
    first.response.emit("close")
    assert.deepStrictEqual(ran, ["first", "second"])
    assert.strictEqual(pipeline.pending(socket), second.response)
  })
})
