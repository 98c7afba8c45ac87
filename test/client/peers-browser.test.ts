/**
 * The mesh of a peer-to-peer room between pages in Chromium, over a TURN server.
 *
 * @module-tag long
 */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import type { Page } from "playwright-core"
import type { Client } from "#client/client"
import { TestApp } from "#testing/app"
import { configure } from "#testing/players"
import { Chromium, installed, needsChromium, newVisitor } from "../support/client/chromium.ts"
import { GamePages } from "../support/client/game-pages.ts"
import { DatabaseLive } from "../support/service.ts"
import { TurnServer, turnSecret } from "../support/turn-server.ts"

declare global {
  /** Globals of the game's pages. */
  interface Window {
    received: Array<readonly [from: string, type: string, data: unknown]>
  }
}

const AppLive = Layer.unwrap(
  Effect.map(TurnServer, ({ port }) =>
    TestApp.layerWith({
      SVC_TURN_URLS: `turn:127.0.0.1:${port}`,
      SVC_TURN_SECRET: turnSecret
    })
  )
).pipe(Layer.provide(DatabaseLive), Layer.provideMerge(TurnServer.layerLoopback))

const BrowserLive = Layer.mergeAll(Chromium.layer, GamePages.layer).pipe(
  Layer.provideMerge(AppLive)
)

const ask = <A>(run: () => Promise<A>) => Effect.promise(run)

/** A page of a guest in the room with this id, or in a new one. */
const play = Effect.fnUntraced(function* (roomId?: string) {
  const { url } = yield* GamePages
  const visitor = yield* newVisitor()
  const page = yield* ask(() => visitor.newPage())
  yield* ask(() => page.goto(url))
  yield* ask(() => page.waitForFunction(() => document.title === "Ready"))
  const joined = yield* ask(() => page.evaluate(enter, roomId))
  return { page, ...joined }
})

const enter = async (roomId?: string) => {
  const client: Client = window.client
  const player = await client.sessions.ensure()
  const held = await client.rooms.resume()
  const room =
    held ?? (await (roomId ? client.rooms.join({ roomId }) : client.rooms.create({ mode: "mesh" })))
  window.received = []
  room.on("message", ({ data, from, type }) => window.received.push([from, type, data]))
  await room.peers.connect()
  return { id: player.id, roomId: room.id }
}

/** Waits until messages to a member travel directly. */
const direct = (page: Page, id: string) =>
  ask(() =>
    page.waitForFunction((id) => window.client.rooms.current?.peers.route(id) === "direct", id)
  )

const received = (page: Page, count: number) =>
  ask(async () => {
    await page.waitForFunction((count) => window.received.length >= count, count)
    return page.evaluate(() => window.received)
  })

layer(BrowserLive, { timeout: "120 seconds", excludeTestServices: true })(
  `room.peers in Chromium${needsChromium}`,
  (it) => {
    it.effect.skipIf(!installed)(
      "connects two pages over the relay, also after a reload",
      () =>
        Effect.gen(function* () {
          const app = yield* TestApp
          const mesh = { key: "mesh", minPlayers: 2, transport: "p2p" }
          yield* configure(app, { features: { multiplayer: true }, multiplayer: { modes: [mesh] } })
          const ada = yield* play()
          const bob = yield* play(ada.roomId)
          yield* direct(ada.page, bob.id)
          yield* direct(bob.page, ada.id)
          // The service is not on the way.
          yield* ask(() =>
            ada.page.evaluate(() => {
              const room = window.client.rooms.current
              WebSocket.prototype.send = () => undefined
              room?.peers.send("reliable", { x: 1 })
              room?.peers.send("fast", "y", { reliable: false })
            })
          )
          const both = yield* received(bob.page, 2)
          assert.sameDeepMembers(
            [...both],
            [
              [ada.id, "reliable", { x: 1 }],
              [ada.id, "fast", "y"]
            ]
          )
          yield* ask(() => ada.page.reload())
          yield* ask(() => ada.page.waitForFunction(() => document.title === "Ready"))
          yield* ask(() => ada.page.evaluate(enter, ada.roomId))
          yield* direct(ada.page, bob.id)
          yield* ask(() =>
            bob.page.evaluate(() => {
              WebSocket.prototype.send = () => undefined
              window.client.rooms.current?.peers.send("again")
            })
          )
          assert.deepStrictEqual(yield* received(ada.page, 1), [[bob.id, "again", undefined]])
          assert.include((yield* TurnServer).log(), bob.id)
        }),
      120_000
    )
  }
)
