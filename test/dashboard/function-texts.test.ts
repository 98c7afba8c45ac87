/** What the view of Functions says about use and limits. */
import { assert, describe, it } from "@effect/vitest"
import { functionTexts } from "#dashboard/core/function-texts"

const { functions: own } = functionTexts

describe("the view of Functions", () => {
  it("shows use beside its limit, and no use where the service measures none", () => {
    assert.strictEqual(own.cpuUsed(1200, 30_000), "2 s of 30 s")
    assert.strictEqual(own.cpuUsed(0, 0), "No limit")
    assert.strictEqual(own.storageUsed("1.5 MiB", "1.0 GiB"), "1.5 MiB of 1.0 GiB")
    assert.strictEqual(own.storageUsed("0 B", ""), "No limit")
  })
})
