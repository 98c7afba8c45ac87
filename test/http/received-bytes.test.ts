/** The bytes of a body as they arrive, and the memory that they take meanwhile. */
import { assert, describe, it } from "@effect/vitest"
import { ReceivedBytes } from "#server/http/received-bytes"

const mebibyte = 1024 * 1024
const pieceBytes = 16 * 1024

const piece = Buffer.alloc(pieceBytes, "x")

/** Bytes of all array buffers, those that wait for a garbage collection included. */
const taken = (): number => process.memoryUsage().arrayBuffers

const receive = (bytes: number): ReceivedBytes => {
  const received = new ReceivedBytes()
  while (received.length < bytes) received.append(piece)
  return received
}

describe("the received bytes of a body", () => {
  it("returns the bytes of all pieces of a body in their order", () => {
    const received = new ReceivedBytes()
    const text = Array.from({ length: 200 }, (_, n) => `piece ${n};`.repeat(n)).join("")
    for (let at = 0; at < text.length; at += 777) {
      received.append(Buffer.from(text.slice(at, at + 777)))
    }
    assert.strictEqual(received.length, text.length)
    assert.strictEqual(Buffer.from(received.take()).toString(), text)
  })

  it("leaves a piece of a body that Node has read unchanged, also when its memory is freed", () => {
    const read = Buffer.from("a body in one piece")
    const received = new ReceivedBytes()
    assert.strictEqual(received.append(read), read.length)
    received.free()
    received.append(read)
    received.append(read)
    received.free()
    assert.strictEqual(read.toString(), "a body in one piece")
  })

  it("leaves the taken bytes of a body to the caller when the rest is freed", () => {
    const received = receive(4 * pieceBytes)
    const whole = received.take()
    received.free()
    assert.strictEqual(whole.byteLength, 4 * pieceBytes)
  })

  it("takes no more memory for a body than its bytes, however often it has grown", () => {
    const before = taken()
    const bodies = Array.from({ length: 20 }, () => receive(mebibyte))
    assert.isBelow(taken() - before, bodies.length * 1.1 * mebibyte)
    for (const body of bodies) body.free()
  })

  it("gives the memory of a body back at once, without a garbage collection", () => {
    const before = taken()
    for (let n = 0; n < 20; n++) receive(mebibyte).free()
    assert.isBelow(taken() - before, mebibyte)
  })
})
