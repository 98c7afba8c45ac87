/** The time between the first and the last change that a room executed, as a player can tell it. */
import { assert, describe, it } from "@effect/vitest"
import { spanOf } from "./play-apps.ts"

const granted = (sentAt: number, grantedAt: number) => ({ change: 1, sentAt, grantedAt })

describe("the span of granted changes", () => {
  it("measures the span of granted changes without the time that a reply is on its way", () => {
    assert.strictEqual(spanOf([granted(0, 10), granted(110, 1801)]), 100)
    assert.strictEqual(spanOf([granted(0, 1000), granted(100, 1010)]), 0)
    assert.strictEqual(spanOf([granted(0, 2000)]), 0)
  })

  it("extends the span by every granted change that is sent after the first is granted", () => {
    assert.strictEqual(spanOf([granted(0, 10), granted(100, 110), granted(1600, 1610)]), 1590)
  })
})
