/** The promises of the test kit, under plain vitest as a game has it. */
import { afterAll, assert, beforeAll, describe, expect, inject, it } from "vitest"
import { isError } from "#client/client"
import { type RunningTestApp, startTestApp } from "#testing/promises"

let app: RunningTestApp

beforeAll(async () => {
  app = await startTestApp({
    server: inject("postgres"),
    env: { SVC_FEATURES: "multiplayer,saves" }
  })
}, 120_000)

afterAll(() => app.stop())

describe("the test kit without Effect", () => {
  it("shows the move of a player to the other", async () => {
    const [ada, bob] = [app.client(), app.client()]
    const room = await ada.rooms.create({ mode: "default" })
    const joined = await bob.rooms.join(room.code)
    const moved = new Promise((resolve) => room.on("message", resolve))
    joined.send("move", { x: 1 })
    expect(await moved).toMatchObject({ type: "move", data: { x: 1 } })
  })

  it("pushes a config by a promise, and rejects with what the service says of a wrong one", async () => {
    const mode = { key: "duel", minPlayers: 2, maxPlayers: 2 }
    const features = { multiplayer: true }
    await app.configure({ features, multiplayer: { modes: [mode] } })
    const room = await app.client().rooms.create({ mode: "duel" })
    assert.strictEqual(room.mode, "duel")
    const wrong = await app.configure({ features: { chess: true } }).catch(String)
    assert.match(String(wrong), /invalid_config/)
  })

  it("stops a service that a promise started, with its clients and its address", async () => {
    const other = await startTestApp({ server: inject("postgres") })
    const client = other.client()
    const room = await client.rooms.create({ mode: "default" })
    await other.stop()
    assert.strictEqual(room.closed?.reason, "closed")
    const late = await client.rooms.list().catch((error: unknown) => error)
    assert.isTrue(isError(late, "network_error"))
  })
})
