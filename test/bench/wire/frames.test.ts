/** The load generator's own WebSocket code: what it miscounts, no benchmark would notice. */
import { assert, describe, it } from "@effect/vitest"
import { encodeFrame, opcodes, readFrames } from "./frames.ts"
import { deliveryTime, MessageTemplate } from "./message.ts"

const texts = ["a", "b".repeat(125), "c".repeat(126), "d".repeat(70_000)]
const stream = Buffer.concat(texts.map((text) => encodeFrame(opcodes.text, Buffer.from(text))))

const read = (bytes: Buffer) => {
  const found: Array<string> = []
  const used = readFrames(bytes, (_, start, end) => found.push(bytes.toString("utf8", start, end)))
  return { found, used }
}

describe("frames", () => {
  it("reads frames of every length form", () => {
    assert.deepStrictEqual(read(stream), { found: texts, used: stream.length })
  })

  it("leaves a frame that is not all there", () => {
    const whole = read(stream.subarray(0, -1))
    assert.deepStrictEqual(whole.found, texts.slice(0, 3))
    for (let cut = 0; cut <= 12; cut++) {
      const rest = stream.subarray(whole.used, whole.used + cut)
      assert.deepStrictEqual(read(rest), { found: [], used: 0 })
    }
  })

  it("refuses fragments, compression and masked frames", () => {
    assert.throws(() => readFrames(Buffer.from([0x01, 0]), () => {}), /fragmented/)
    assert.throws(() => readFrames(Buffer.from([0xc1, 0]), () => {}), /compressed/)
    const masked = encodeFrame(opcodes.text, Buffer.from("x"), Buffer.from([1, 2, 3, 4]))
    assert.throws(() => readFrames(masked, () => {}), /masked/)
  })
})

describe("messages", () => {
  it("masks the filled template into valid JSON with the numbers given", () => {
    const frame = new MessageTemplate((data) => `{"t":"send","data":${data}}`).fill(
      7,
      1_234_567_890
    )
    const [mask, payload] = [frame.subarray(2, 6), frame.subarray(6)]
    const text = Buffer.from(payload.map((byte, i) => byte ^ mask[i & 3]!)).toString()
    const data = { x: 1234.567, y: 8901.234, seq: 100_007, ts: 1_234_567_890 }
    assert.deepStrictEqual(JSON.parse(text), { t: "send", data })
  })

  it("finds the time of a delivery within its own frame only", () => {
    const text = '{"t":"message","data":{"ts":1234567890},"at":1}{"t":"locked"}'
    const end = text.indexOf("}{") + 1
    const bytes = Buffer.from(text)
    assert.strictEqual(deliveryTime(bytes, 0, end), 1_234_567_890)
    assert.strictEqual(deliveryTime(bytes, end, bytes.length), -1)
  })
})
