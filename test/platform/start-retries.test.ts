/**
 * A start while the database is away for a moment, at each of its statements: the runner waits and starts.
 * @module-tag long
 */
import { connect, createServer, type Socket } from "node:net"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Schedule } from "effect"
import { TestDatabase } from "#testing/app"
import { startRunner } from "#testing/runners"
import { DatabaseLive } from "../support/service.ts"
import { dataFolder } from "../support/data-folder.ts"

/** Connections that the database refuses while it is away: the service tries again each second. */
const refusals = 3

/** Whether to cut the way to the database at a packet, by its number and its text. */
type IsCut = (packet: number, text: string) => boolean

/** A way to the database that is cut at one packet, and is closed for a while. */
const cutAt = (target: URL, isCut: IsCut) =>
  Effect.acquireRelease(
    Effect.callback<{ readonly port: number; readonly packets: () => number; close: () => void }>(
      (resume) => {
        const sockets = new Set<Socket>()
        let packets = 0
        let refused = refusals
        let isOver = false
        const cut = () => {
          isOver = true
          refused = 0
          for (const socket of sockets) socket.destroy()
        }
        const server = createServer((client) => {
          if (refused++ < refusals) return void client.destroy()
          const upstream = connect(Number(target.port), target.hostname)
          for (const [from, to] of [
            [client, upstream],
            [upstream, client]
          ] as const) {
            sockets.add(from)
            from.on("error", () => to.destroy())
            from.on("close", () => {
              sockets.delete(from)
              to.destroy()
            })
          }
          client.on("data", (data) => {
            packets += 1
            if (!isOver && isCut(packets, data.toString("latin1"))) return cut()
            upstream.write(data)
          })
          upstream.pipe(client)
        })
        server.listen(0, "127.0.0.1", () => {
          const address = server.address()
          const port = typeof address === "object" && address !== null ? address.port : 0
          const close = () => {
            for (const socket of sockets) socket.destroy()
            server.close()
          }
          resume(Effect.succeed({ port, packets: () => packets, close }))
        })
      }
    ),
    ({ close }) => Effect.sync(close)
  )

const startWithCut = Effect.fnUntraced(
  function* (isCut: IsCut) {
    const { url } = yield* TestDatabase
    const proxied = new URL(url)
    const proxy = yield* cutAt(new URL(url), isCut)
    proxied.port = `${proxy.port}`
    const dataDir = yield* dataFolder("start-")
    const runner = yield* startRunner({ databaseUrl: proxied.href, dataDir })
    yield* Effect.sync(runner.output).pipe(
      Effect.filterOrFail((output) => output.includes("Player backend listening")),
      Effect.retry({ times: 600, schedule: Schedule.spaced("100 millis") })
    )
    return proxy.packets()
  },
  Effect.scoped,
  Effect.provide(Layer.fresh(DatabaseLive))
)

describe("a start while the database is away", { timeout: 1_200_000 }, () => {
  it.live("starts a runner whose database is away for a moment at any of its statements", () =>
    Effect.gen(function* () {
      const packets = yield* startWithCut(() => false)
      assert.isAbove(packets, 20)
      const step = Math.max(1, Math.floor(packets / 16))
      for (let packet = 1; packet < packets; packet += step) {
        yield* startWithCut((number) => number === packet)
      }
    })
  )

  it.live("starts a runner whose database is away when it reads the domains of apps", () =>
    startWithCut((_, text) => text.includes("from hosted_domains d"))
  )

  it.live("starts a runner whose database is away when the cluster makes its tables", () =>
    startWithCut((_, text) => text.includes('CREATE TABLE IF NOT EXISTS "cluster_locks"'))
  )
})
