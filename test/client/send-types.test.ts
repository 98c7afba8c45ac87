/** Types of messages: `npm run types` checks them, the test names what they promise. */
import { assert, describe, it } from "@effect/vitest"
import type { AnyMessages, SendArguments } from "#client/client"

type CanBeLeftOut<Data> = readonly [] extends SendArguments<Data> ? true : false

describe("SendArguments", () => {
  it("requires the data of a message whose type has some", () => {
    const isOptional: CanBeLeftOut<{ readonly x: number }> = false
    assert.isFalse(isOptional)
  })

  it("lets data be left out where its type has undefined, and in a room without types", () => {
    const ofSignal: CanBeLeftOut<undefined> = true
    const ofText: CanBeLeftOut<string | undefined> = true
    const ofAny: CanBeLeftOut<AnyMessages[string]> = true
    assert.deepStrictEqual([ofSignal, ofText, ofAny], [true, true, true])
  })
})
