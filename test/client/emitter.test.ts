/** Listeners of the client's objects: their removal, and those of one type of message. */
import { assert, describe, it } from "@effect/vitest"
import { BufferedEmitter } from "#client/buffered-emitter"

interface Events {
  readonly message: { readonly type: string; readonly data: number }
}

const emitterAfter = (early: ReadonlyArray<Events["message"]> = []) => {
  const emitter = new BufferedEmitter<Events>()
  for (const message of early) emitter.emit("message", message)
  const heard: Array<number> = []
  const hear = ({ data }: Events["message"]) => heard.push(data)
  return { emitter, hear, heard }
}

describe("a listener", () => {
  it("ends with the returned function, or with the abort of its signal", () => {
    const { emitter, hear, heard } = emitterAfter()
    emitter.flush()
    const scene = new AbortController()
    const stop = emitter.on("message", hear)
    emitter.on("message", hear, scene)
    emitter.on("message", hear, scene)
    emitter.emit("message", { type: "a", data: 1 })
    stop()
    stop()
    emitter.emit("message", { type: "a", data: 2 })
    scene.abort()
    emitter.emit("message", { type: "a", data: 3 })
    assert.deepStrictEqual(heard, [1, 1, 1, 2, 2])
  })

  it("stays out under a signal that is already aborted", () => {
    const { emitter, hear, heard } = emitterAfter()
    emitter.flush()
    emitter.on("message", hear, { signal: AbortSignal.abort() })
    emitter.emit("message", { type: "a", data: 1 })
    assert.isEmpty(heard)
  })

  it("leaves nothing at its signal when the returned function removes it", () => {
    const { emitter, hear } = emitterAfter()
    const { signal } = new AbortController()
    let listeners = 0
    const counted = new Proxy(signal, {
      get: (target, name) => {
        if (name === "addEventListener") listeners += 1
        if (name === "removeEventListener") listeners -= 1
        const value: unknown = Reflect.get(target, name, target)
        return typeof value === "function" ? value.bind(target) : value
      }
    })
    const stop = emitter.on("message", hear, { signal: counted })
    assert.strictEqual(listeners, 1)
    stop()
    assert.strictEqual(listeners, 0)
  })
})

describe("onMessage", () => {
  it("gets the messages of one type, also those before it was added", () => {
    const early = [
      { type: "move", data: 1 },
      { type: "chat", data: 2 }
    ]
    const { emitter, hear, heard } = emitterAfter(early)
    emitter.onMessage("move", hear)
    emitter.flush()
    emitter.emit("message", { type: "chat", data: 3 })
    emitter.emit("message", { type: "move", data: 4 })
    assert.deepStrictEqual(heard, [1, 4])
  })
})
